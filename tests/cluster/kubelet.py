"""The part of a kubelet that forwards ports, played by kwok: for one pod, whose program runs on this machine."""

from __future__ import annotations

import ssl
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
import yaml

from tests.cluster import toolchain
from tests.cluster.control_plane import ControlPlane
from tests.cluster.workload_objects import delete, set_status


@contextmanager
def forwarded_pod(
    plane: ControlPlane, namespace: str, template: Mapping[str, Any], port: int, address: str
) -> Iterator[None]:
    """A pod made of a workload's template that runs; what reaches its `port` comes to an address of this machine."""
    name = f"forwarded-{uuid.uuid4().hex[:8]}"
    kubelet = _start(plane, name, port, address)
    container = template["spec"]["containers"][0]
    spec = {"nodeName": name, "containers": [{key: container[key] for key in ("name", "image", "ports")}]}
    metadata = {"name": name, "labels": template["metadata"]["labels"]}
    plane.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
    node = {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]}
    set_status(plane, f"/api/v1/nodes/{name}", {**node, "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet}}})
    plane.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, namespace=namespace)
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    set_status(plane, f"/api/v1/namespaces/{namespace}/pods/{name}", ready)
    try:
        yield
    finally:
        plane.programs.pop(name).stop()
        for path in (f"/api/v1/namespaces/{namespace}/pods/{name}", f"/api/v1/nodes/{name}"):
            delete(plane, path)


def _start(plane: ControlPlane, name: str, port: int, address: str) -> int:
    """Run kwok, which carries no node and no pod; returns the port at which it is a kubelet."""
    host, _, number = address.rpartition(":")
    folder = plane.folder / name
    folder.mkdir()
    file = folder / "forward.yaml"
    forward = {"ports": [port], "target": {"address": host, "port": int(number)}}
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kwok.x-k8s.io/v1alpha1",
                "kind": "ClusterPortForward",
                "metadata": {"name": name},
                "spec": {"forwards": [forward]},
            }
        )
    )
    listens = plane.reserve_port(name)
    pair = plane.authority.issue(name, "kubelet", hosts=("127.0.0.1",))
    stages = toolchain.module_dir("kwok") / "kustomize" / "stage" / "node" / "fast" / "node-initialize.yaml"
    plane.run(
        name,
        [
            toolchain.binary("kwok"),
            f"--kubeconfig={plane.kubeconfig}",
            f"--manage-nodes-with-label-selector=carried-by={name}",  # none has it
            f"--server-address=127.0.0.1:{listens}",
            f"--tls-cert-file={pair.certificate}",
            f"--tls-private-key-file={pair.key}",
            f"--config={stages}",  # it insists on some
            f"--config={file}",
        ],
    )
    trust = ssl.create_default_context(cafile=str(plane.authority.certificate))

    def answers() -> bool:
        try:
            return httpx.get(f"https://127.0.0.1:{listens}/healthz", verify=trust, trust_env=False).is_success
        except httpx.TransportError:
            return False

    plane.wait_for("a kubelet", answers)
    return listens
