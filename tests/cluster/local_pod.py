"""The scaler's pod as a process of this machine: it gets what a kubelet would give it, and no more.

Four things differ from a pod's container, all of them here:

- the program is this checkout's, not an image's;
- `--listen` and `--http-listen` are loopback ports, and `--address` has 127.0.0.1 too, for no Service name resolves;
- what is mounted lies in a folder, and the paths in the arguments say so;
- the ServiceAccount's token comes in a kubeconfig (`KUBECONFIG`) instead of /var/run/secrets.
"""

from __future__ import annotations

import base64
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.cluster.control_plane import ControlPlane, Manifest
from tests.cluster.programs import Program
from tests.protocol.process import COMMAND


@dataclass(frozen=True, slots=True)
class LocalPod:
    """A pod that runs."""

    program: Program
    arguments: tuple[str, ...]
    grpc: str
    """`host:port`."""
    http: str

    def is_ready(self) -> bool:
        """What the readiness probe says."""
        try:
            return httpx.get(f"http://{self.http}/readyz", trust_env=False).is_success
        except httpx.TransportError:
            return False


def run_pod(plane: ControlPlane, namespace: str, spec: Manifest, name: str) -> LocalPod:
    """Runs the one container of a pod's spec; it ends with the control plane."""
    (container,) = spec["containers"]
    root = plane.folder / "pods" / name
    files = {mount["name"]: root / mount["mountPath"].lstrip("/") for mount in container["volumeMounts"]}
    for volume in spec["volumes"]:
        _mount(plane, namespace, volume, files[volume["name"]])
    environment = _environment(container, namespace, name)
    listen, http = (f"127.0.0.1:{plane.reserve_port(name)}" for _ in range(2))
    mounted = [mount["mountPath"] for mount in container["volumeMounts"]]
    arguments = tuple(
        _local(argument, listen, http, root, mounted, environment) for argument in container.get("args", ())
    )
    account = plane.service_account_kubeconfig(namespace, spec["serviceAccountName"])
    settings = {
        **environment,
        "KUBECONFIG": str(account),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    bare = ["env", "--ignore-environment", *(f"{name}={value}" for name, value in settings.items())]
    return LocalPod(plane.run(name, [*bare, *COMMAND, *arguments]), arguments, listen, http)


def _local(
    argument: str, listen: str, http: str, root: Path, mounted: list[str], environment: Mapping[str, str]
) -> str:
    """An argument as it must be on this machine."""
    option, _, value = argument.partition("=")
    match option:
        case "--listen":
            return f"{option}={listen}"
        case "--http-listen":
            return f"{option}={http}"
        case "--address":
            return f"{option}={value},127.0.0.1"
    argument = re.sub(r"\$\((\w+)\)", lambda found: environment[found[1]], argument)
    if any(value.startswith(f"{path}/") for path in mounted):
        return argument.replace("=/", f"={root}/", 1)
    return argument


def _environment(container: Manifest, namespace: str, name: str) -> dict[str, str]:
    """The container's variables, those from the pod's own fields too."""
    fields = {"metadata.name": name, "metadata.namespace": namespace}
    return {
        variable["name"]: variable["value"]
        if "value" in variable
        else fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        for variable in container.get("env", ())
    }


def _mount(plane: ControlPlane, namespace: str, volume: Manifest, folder: Path) -> None:
    """Writes the files of a ConfigMap or a Secret; any other volume is an empty folder."""
    folder.mkdir(parents=True, exist_ok=True)
    contents: dict[str, bytes] = {}
    items = None
    if "configMap" in volume:
        items = volume["configMap"].get("items")
        found = plane.get(f"/api/v1/namespaces/{namespace}/configmaps/{volume['configMap']['name']}") or {}
        contents = {key: text.encode() for key, text in found["data"].items()}
    elif "secret" in volume:
        items = volume["secret"].get("items")
        found = plane.get(f"/api/v1/namespaces/{namespace}/secrets/{volume['secret']['secretName']}") or {}
        contents = {key: base64.b64decode(text) for key, text in found["data"].items()}
    for item in items if items is not None else [{"key": key, "path": key} for key in contents]:
        (folder / item["path"]).write_bytes(contents[item["key"]])
