"""From a ScaledObject's JSON to ours: KEDA's defaults filled in, and only the triggers that name this scaler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scaler.cluster.client import Json
from scaler.cluster.model import ScaledObject, Trigger
from scaler.cluster.quantity import parse_quantity

_EXTERNAL = frozenset({"external", "external-push"})
_PAUSED = "autoscaling.keda.sh/paused"
_PAUSED_REPLICAS = "autoscaling.keda.sh/paused-replicas"
_FALSE = frozenset({"0", "f", "F", "false", "False", "FALSE"})
"""What KEDA takes for false in an annotation; any other text is true."""

IsOurs = Callable[[Mapping[str, str]], bool]
"""Whether a trigger with these metadata names this scaler."""


class OwnAddresses:
    """The addresses under which KEDA may reach this scaler; called with a trigger's metadata, an IsOurs.

    `scaler.keda`, `scaler.keda.svc` and `scaler.keda.svc.cluster.local` are the same Service, whatever the port: a
    trigger with a wrong one means this scaler, and it can be said that KEDA does not come by it. Elsewhere an address
    without a port stands for every port.
    """

    def __init__(self, addresses: Iterable[str]) -> None:
        self._addresses = frozenset(_host_and_port(address) for address in addresses)

    def __call__(self, metadata: Mapping[str, str]) -> bool:
        """Whether `scalerAddress` is one of them."""
        host, port = _host_and_port(metadata.get("scalerAddress", ""))
        return not self._addresses.isdisjoint({(host, port), (host, "")})


def _host_and_port(address: str) -> tuple[str, str]:
    """Split `[dns:///]host[:port]`, `[v6]:port` included; a Service is `name.namespace`, without its port."""
    text = address.strip().lower()
    if "://" in text:  # gRPC's form, `dns:///host:port`
        text = text.split("://", 1)[1].rpartition("/")[2]
    host, _, port = text.rpartition(":")
    if not host or text.endswith("]") or (":" in host and not host.endswith("]")):
        host, port = text, ""
    host = host.strip("[]").rstrip(".")
    labels = host.split(".")
    if len(labels) > 2 and labels[2] == "svc":
        labels = labels[:2]
    return (".".join(labels), "") if len(labels) == 2 else (host, port)


def parse_scaled_object(item: Json, ours: IsOurs) -> ScaledObject | None:
    """Return a ScaledObject that has an external trigger, None for any other.

    One whose triggers name other scalers has no triggers here; it is kept since KEDA may reach this scaler under an
    address that nobody told us.
    """
    metadata, spec = item["metadata"], item["spec"]
    external = [
        Trigger(index, trigger["type"], dict(trigger.get("metadata") or {}))
        for index, trigger in enumerate(spec.get("triggers") or ())
        if trigger["type"] in _EXTERNAL
    ]
    if not external:
        return None
    target = spec["scaleTargetRef"]
    behavior = _at(spec, "advanced", "horizontalPodAutoscalerConfig", "behavior")
    return ScaledObject(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 0),
        api_version=target.get("apiVersion") or "apps/v1",
        kind=target.get("kind") or "Deployment",
        target=target["name"],
        minimum=spec.get("minReplicaCount", 0),
        maximum=spec.get("maxReplicaCount", 100),
        cooldown_s=float(spec.get("cooldownPeriod", 300)),
        polling_s=float(spec.get("pollingInterval", 30)),
        paused=_paused(metadata.get("annotations") or {}),
        triggers=tuple(trigger for trigger in external if ours(trigger.metadata)),
        tolerance_up=parse_quantity(_at(behavior, "scaleUp").get("tolerance")),
        tolerance_down=parse_quantity(_at(behavior, "scaleDown").get("tolerance")),
        idle=spec.get("idleReplicaCount"),
    )


def _paused(annotations: Mapping[str, str]) -> bool:
    return _PAUSED_REPLICAS in annotations or annotations.get(_PAUSED, "false") not in _FALSE


def _at(value: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The mapping under a path of keys, empty where one is missing."""
    for key in path:
        value = value.get(key) or {}
    return value
