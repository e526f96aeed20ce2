"""The ScaledObject that was there before: what is kept of it, and what changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scaler.cli.drafting.workload import Refused, Target, kind_of
from scaler.cli.linting.manifests import Manifest, Step
from scaler.cli.linting.rules.workload import WITHOUT_SCALE
from scaler.cli.linting.scaled_object import BEHAVIOR, DEFAULT_COOLDOWN_S, DEFAULT_MAX, DEFAULT_POLLING_S, is_ours
from scaler.quoting import one_line

_BESIDE = "the HPA takes the highest of all triggers, and an outage of one stops the others too"
_GOES = {
    "prometheus": "the scaler reads the queues from the pods themselves, every second: no scrape to wait for, no query "
    "and no threshold to keep right",
    "cpu": "the use of a CPU says nothing of an engine's queue",
    "memory": "an engine takes its memory beforehand: its use says nothing of the load",
    "cron": "a floor by the clock is minReplicasSchedule in the trigger's metadata",
}

_COMPARED: tuple[tuple[tuple[str, ...], Any], ...] = (
    (("minReplicaCount",), 0),
    (("maxReplicaCount",), DEFAULT_MAX),
    (("idleReplicaCount",), None),
    (("pollingInterval",), DEFAULT_POLLING_S),
    (("cooldownPeriod",), DEFAULT_COOLDOWN_S),
    (("initialCooldownPeriod",), 0),
    (("fallback",), None),
    (("advanced", "scalingModifiers"), None),
    *(
        ((*BEHAVIOR[1:], direction, key), default)
        for direction, window in (("scaleUp", 0), ("scaleDown", 300))
        for key, default in (
            ("tolerance", "0.1"),
            ("stabilizationWindowSeconds", window),
            ("policies", None),
            ("selectPolicy", "Max"),
        )
    ),
)
"""Keys of the spec, and what KEDA and the HPA take where they are left out."""

_WHY_GONE = {
    "idleReplicaCount": "without a replica there is no queue to read",
    "cooldownPeriod": "only on the way to 0",
    "initialCooldownPeriod": "only on the way to 0",
    "pollingInterval": "external-push tells KEDA at once, it need not ask often",
    "scalingModifiers": "signals are combined by the trigger's metadata",
    "policies": "upscaleLimit and downscaleLimit in the metadata limit steps where that is wanted",
    "selectPolicy": "a direction is limited by the metadata, never by the HPA behind the scaler's back",
}
"""Keys that a draft does not have. For the others the reason stands beside the new value."""

_LONGEST, _MOST = 90, 10
"""Characters and items of what another wrote."""


def former_of(manifests: Iterable[Manifest], target: Target | None, namespace: str) -> Manifest:
    """Return the ScaledObject that scales `target`, or the only one if None. Raises Refused."""
    there = [each for each in manifests if (each.group, each.kind) == ("keda.sh", "ScaledObject")]
    if not there:
        raise Refused("--from: there is no ScaledObject in it")
    namespace = (target.namespace if target else "") or namespace
    fits = [
        each
        for each in there
        if (not namespace or each.text("metadata", "namespace") in ("", namespace))
        and (target is None or each.scaled == (target.api_version.partition("/")[0], target.kind, target.name))
    ]
    if len(fits) == 1:
        return fits[0]
    has = ", ".join(f"{one_line(each.name)} (of {_of(each)})" for each in there[:10])
    if fits or target is None:
        raise Refused(f"--from: say which of {has}, by KIND/NAME of the workload and --namespace")
    raise Refused(f"--from: none scales {target}; there is {has}")


def target_of_former(former: Manifest, namespace: str) -> Target:
    """Return what a ScaledObject scales, with KEDA's defaults. Raises Refused for what cannot be scaled."""
    group, kind, name = former.scaled or ("", "", "")
    if not name:
        raise Refused(f"--from: {one_line(former.name)} has no spec.scaleTargetRef.name")
    if group == "ray.io" and kind in WITHOUT_SCALE:
        kind_of(kind)
    version = former.text("spec", "scaleTargetRef", "apiVersion") or "apps/v1"
    return Target(former.text("metadata", "namespace") or namespace, version, kind, name)


def kept(former: Manifest | None, part: str) -> dict[str, str]:
    """Return the `metadata` or `authenticationRef` of the trigger that was this scaler's already."""
    own = _own(former)
    return texts(former, "spec", "triggers", own, part) if own is not None else {}


def texts(former: Manifest | None, *path: Step) -> dict[str, str]:
    """Return the texts of a mapping by key, as they were written."""
    if former is None or not isinstance(former.get(*path), Mapping):
        return {}
    scalars = former.scalars(*path)
    return {key: value.text for key, value in scalars.items() if value.made is not None}


def changes(former: Manifest, new: Mapping[str, Any]) -> Iterator[str]:
    """Say what is different in the `new` ScaledObject, a line each."""
    own = _own(former)
    for index in range(len(former.items("spec", "triggers"))):
        kind = former.text("spec", "triggers", index, "type")
        if index != own:
            yield _gone(kind, former.get("spec", "triggers", index, "metadata"))
        elif kind != "external-push":
            yield "the trigger's type: external → external-push: KEDA is told at once, it need not poll"
    for path, default in _COMPARED:
        before, now = former.get("spec", *path), _at(new, "spec", *path)
        before = None if before in ({}, []) else before  # as KEDA writes what was left out
        if _shown(default if before is None else before) != _shown(default if now is None else now):
            key = ".".join(path).removeprefix("advanced.").removeprefix("horizontalPodAutoscalerConfig.behavior.")
            why = f": {_WHY_GONE[path[-1]]}" if now is None and path[-1] in _WHY_GONE else ""
            yield f"{key}: {_said(before, default)} → {_said(now, default)}{why}"


def _gone(kind: str, metadata: Any) -> str:
    metadata = metadata if isinstance(metadata, Mapping) else {}
    told = ", ".join(f"{key}: {_shown(metadata[key])}" for key in ("query", "threshold") if key in metadata)
    name = f"the trigger {one_line(kind) or 'without a type'}"
    return f"{name}{f' ({told})' if told else ''} goes: {_GOES.get(kind, _BESIDE)}"


def _own(former: Manifest | None) -> int | None:
    triggers = former.items("spec", "triggers") if former else []
    return next((index for index, trigger in enumerate(triggers) if is_ours(trigger, None)), None)


def _of(former: Manifest) -> str:
    _group, kind, name = former.scaled or ("", "", "")
    return f"{one_line(kind)} {one_line(name)}"


def _at(value: Any, *path: str) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _said(value: Any, default: Any) -> str:
    if value is not None:
        return _shown(value)
    return "left out" if default is None else f"left out, which is {_shown(default)}"


def _shown(value: Any) -> str:
    """Return a value as flow YAML, two levels of it: aliases make endless ones out of a few lines."""
    return one_line(_flow(value, 2), _LONGEST)


def _flow(value: Any, levels: int) -> str:
    if not isinstance(value, Mapping | list):
        return str(value)
    if levels == 0:
        return "…"
    if isinstance(value, list):
        return f"[{', '.join(_flow(each, levels - 1) for each in value[:_MOST])}]"
    return f"{{{', '.join(f'{key}: {_flow(value[key], levels - 1)}' for key in sorted(value, key=str)[:_MOST])}}}"
