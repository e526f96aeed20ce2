"""What a ServiceAccount asked of the API server, from the server's own audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},  # the controllers: the most calls
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
    ],
}


@dataclass(frozen=True, slots=True)
class ApiCall:
    """One call to the API server."""

    verb: str
    group: str
    """Empty for the core group."""
    resource: str
    """With its subresource: deployments/scale."""
    namespace: str
    """Empty where all of them were asked for."""
    name: str
    """Empty where it was a collection."""
    allowed: bool
    """Whether a role allowed it; it may have failed for another reason."""

    @classmethod
    def parse(cls, event: dict[str, Any]) -> Self:
        """An event of the audit log that has an objectRef."""
        thing = event["objectRef"]
        resource = "/".join(part for part in (thing["resource"], thing.get("subresource")) if part)
        place = thing.get("apiGroup", ""), resource, thing.get("namespace", ""), thing.get("name", "")
        allowed = event["annotations"]["authorization.k8s.io/decision"] == "allow"
        return cls(event["verb"], *place, allowed)


def arguments(folder: Path) -> list[str]:
    """Arguments of kube-apiserver that make it write down every call of every ServiceAccount outside kube-system."""
    policy = folder / "audit-policy.yaml"
    policy.write_text(yaml.safe_dump(_POLICY))
    return [f"--audit-policy-file={policy}", f"--audit-log-path={_log(folder)}", "--audit-log-mode=blocking"]


def calls(folder: Path, namespace: str, service_account: str) -> Iterator[ApiCall]:
    """The calls of a ServiceAccount so far, oldest first; a watch is there as soon as it stands, and again at its end.

    What belongs to no resource, such as the list of a group's kinds, is left out.
    """
    user = f"system:serviceaccount:{namespace}:{service_account}"
    with _log(folder).open() as log:
        for line in log:
            if f'"{user}"' in line and line.endswith("\n"):  # the last one may be half written
                event = json.loads(line)
                if event["user"]["username"] == user and "objectRef" in event:
                    yield ApiCall.parse(event)


def _log(folder: Path) -> Path:
    return folder / "audit.log"
