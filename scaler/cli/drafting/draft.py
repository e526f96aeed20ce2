"""The ScaledObject as text, each choice with its reason above it, and a PodDisruptionBudget as a hint below."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import Template
from typing import Any

import yaml

from scaler.cli.drafting.former import changes, kept, texts
from scaler.cli.drafting.workload import Refused, Target
from scaler.cli.linting import Finding, Given, Severity, check
from scaler.cli.linting.manifests import Manifest, Step
from scaler.cli.linting.scaled_object import DEFAULT_COOLDOWN_S, DEFAULT_MAX
from scaler.policy.parsing import MOST_REPLICAS

_WIDTH = 118
DEFAULT_ADDRESS = "vllm-scaler.keda.svc:9090"
"""Where the chart puts this scaler."""
_LONGEST_NAME = 63 - len("keda-hpa-")
"""KEDA names the HPA after the ScaledObject."""
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9./-]*")
_NOT_THE_USERS = ("kubectl.kubernetes.io/", "scaledobject.keda.sh/name")
_HPA_CONFIG = ("spec", "advanced", "horizontalPodAutoscalerConfig")

_TEMPLATE = Template("""\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
${metadata}spec:
${target}${minimum_why}  minReplicaCount: $minimum
${maximum_why}  maxReplicaCount: $maximum
  # For the day when the minimum is 0: KEDA warns of them with any other. No shorter than a start-up: else the next
  # request waits for what was just taken away, and a new ScaledObject takes a pod that still loads its model. A
${start_up}  # cooldownPeriod: $cooldown
  # initialCooldownPeriod: $cooldown
  # While the scaler does not answer, what is there stays, and no less than this: an outage says nothing of the load. A
  # fallback of 0 would take everything.
  fallback:
    failureThreshold: 3
    replicas: $fallback
    behavior: currentReplicasIfHigher
  advanced:
${restore}    horizontalPodAutoscalerConfig:
${hpa_name}      behavior:
        scaleUp:
          # Else the HPA ignores changes within 10 %: at 20 replicas it swallows 21 and 22. Needs Kubernetes 1.35 and
          # KEDA 2.18; with older ones add toleranceMode: round-up to the trigger's metadata.
          tolerance: "0"
          # The scaler's upscaleDelay is the window: two would add up, and no burst could skip the HPA's.
          stabilizationWindowSeconds: 0
          # All the way in one step: else the HPA adds 4 or doubles, whichever is more, in 15 s.
          policies:
            - {type: Pods, value: $maximum, periodSeconds: 15}
        scaleDown:
          tolerance: "0"
          # The scaler's downscaleDelay is the window. The HPA's own, 300 s where it is left out, would add up with it.
          stabilizationWindowSeconds: 0
  # Exactly one: the HPA takes the highest of several, and an outage of any stops the others too.
  triggers:
    # KEDA is told at once when there is work; the type external is asked every pollingInterval.
    - type: external-push
      # The scaler gives the count of the whole target; Value would be multiplied by the ready pods.
      metricType: AverageValue
${authentication}${said}${trigger}""")


@dataclass(frozen=True, slots=True)
class StartUp:
    """From a replica asked for to a replica that serves."""

    seconds: float
    source: str
    """Where that is from, in words."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The YAML, and what `lint` has to say of it: warnings about what was kept of the former ScaledObject, if any."""

    text: str
    remarks: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class _Limit:
    """A replica count and why it is this one."""

    count: int
    why: str


def draft(
    target: Target,
    start_up: StartUp,
    scaler_address: str | None = None,
    minimum: int | None = None,
    maximum: int | None = None,
    former: Manifest | None = None,
) -> Draft:
    """Write a ScaledObject for `target`; `minimum` and `maximum` are what the user says. Raises Refused."""
    lowest = _minimum(target, minimum, former)
    highest = _maximum(target, maximum, former, lowest.count)
    if lowest.count > highest.count:
        raise Refused(
            f"the minimum {lowest.count} is above the maximum {highest.count}; right is, for instance, "
            f"--max {lowest.count}"
        )
    metadata = {"scalerAddress": DEFAULT_ADDRESS, **kept(former, "metadata")}
    if scaler_address is not None:
        metadata["scalerAddress"] = scaler_address
    text = _scaled_object(target, start_up, lowest, highest, former, metadata)
    head = [f"For {target}, written by vllm-scaler init."]
    if former is not None:
        head += _what_changes(former, yaml.safe_load(text))
    if target.to_do:
        head += ["", "Beside it:", *(f"- {each}" for each in target.to_do)]
    report = check([("the draft", text)], Given(scaler_address=metadata["scalerAddress"], start_up_s=start_up.seconds))
    if wrong := [finding for finding in report.findings if finding.severity is Severity.ERROR]:
        told = "; ".join(f"{each.what}; right: {each.right}" if each.right else each.what for each in wrong)
        raise Refused(f"what would be kept of the former ScaledObject is wrong: {told}" if former else told)
    return Draft("".join((_comment(head), text, _budget(target))), report.findings)


def _minimum(target: Target, said: int | None, former: Manifest | None) -> _Limit:
    only = "0 only behind a gateway that holds requests and reports them: without a replica there is no queue to read."
    if said is not None:
        return _Limit(said, f"As said by --min. {only}")
    if before := _whole(former, "spec", "minReplicaCount"):
        return _Limit(before, f"As it was. {only}")
    if target.minimum is not None and former is None:
        return _Limit(target.minimum, f"The InferenceService's minReplicas. {only}")
    return _Limit(1, only)


def _maximum(target: Target, said: int | None, former: Manifest | None, lowest: int) -> _Limit:
    most = "The most that a fault or a flood can cost you."
    if said is not None:
        return _Limit(said, f"As said by --max. {most}")
    if former is not None:
        before = _whole(former, "spec", "maxReplicaCount")
        if before is None:
            return _Limit(DEFAULT_MAX, f"KEDA's default, as it was. {most} Is it what you would pay for?")
        return _Limit(before, f"As it was. {most}")
    if target.maximum is not None:
        return _Limit(target.maximum, f"The InferenceService's maxReplicas. {most}")
    present = max(target.replicas or 0, lowest)
    guess = f"twice the {'count of now' if present == target.replicas else 'minimum'}"
    return _Limit(2 * present, f"An assumption, {guess}; set it to what you would pay for (--max). {most}")


def _scaled_object(
    target: Target,
    start_up: StartUp,
    lowest: _Limit,
    highest: _Limit,
    former: Manifest | None,
    metadata: Mapping[str, str],
) -> str:
    name = former.name if former else target.name[:_LONGEST_NAME].rstrip("-.")
    namespace = {"namespace": target.namespace} if target.namespace else {}
    reference = {"apiVersion": target.api_version, "kind": target.kind, "name": target.name}
    floor = _whole(former, "spec", "fallback", "replicas") or 0
    said = ", ".join(key for key in metadata if key != "scalerAddress")
    return _TEMPLATE.substitute(
        metadata=_block("metadata", {"name": name, **namespace}, 0)
        + "".join(_block(key, _labels(former, key), 2) for key in ("labels", "annotations")),
        target=_block(
            "scaleTargetRef", reference | _text(former, "spec", "scaleTargetRef", "envSourceContainerName"), 2
        ),
        minimum_why=_comment([lowest.why], 2),
        minimum=lowest.count,
        maximum_why=_comment([highest.why], 2),
        maximum=highest.count,
        start_up=_comment([f"start-up here: {start_up.seconds:.0f} s, {start_up.source}."], 2),
        cooldown=max(DEFAULT_COOLDOWN_S, math.ceil(start_up.seconds / 60) * 60),
        fallback=min(max(lowest.count, floor), highest.count),
        restore=_restore(former),
        hpa_name=_mapping(_text(former, *_HPA_CONFIG, "name"), 6),
        authentication=_block("authenticationRef", kept(former, "authenticationRef"), 6),
        said=_comment(
            [f"Kept: {said}." if said else "No more is needed: the preset adaptive has no numbers to find."], 6
        ),
        trigger=_block("metadata", metadata, 6),
    )


def _what_changes(former: Manifest, new: Mapping[str, Any]) -> Iterable[str]:
    yield ""
    yield (
        f"Put it in the place of ScaledObject {former.name} by kubectl replace -f: apply may leave there what is gone. "
        "What changes (reasons are beside the new values):"
    )
    told = [f"- {each}" for each in changes(former, new)]
    yield from told or ["- nothing changes but the reasons beside each line"]


def _budget(target: Target) -> str:
    if target.selector is None:
        if target.kind != "RayWorkerGroup":
            return ""
        text = (
            "No PodDisruptionBudget: Ray's pods belong to no object with /scale, so that one with maxUnavailable would "
            "block every drain of a node."
        )
        return f"\n{_comment([text])}"
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": target.name, **({"namespace": target.namespace} if target.namespace else {})},
        "spec": {"maxUnavailable": 1, "selector": dict(target.selector)},
    }
    why = (
        "A hint, for when nodes are drained: one replica at a time. maxUnavailable fits every count that the scaler "
        "sets, while minAvailable: 1 would block all drains at one replica. Only where no other PodDisruptionBudget "
        "selects these pods: with two of them no pod can be evicted."
    )
    lines = ["---", *yaml.safe_dump(budget, sort_keys=False).splitlines()]
    return f"\n{_comment([why])}" + "".join(f"# {line}\n" for line in lines)


def _labels(former: Manifest | None, part: str) -> dict[str, str]:
    """Return labels or annotations of the former ScaledObject, without those that kubectl and KEDA put there."""
    return {key: text for key, text in texts(former, "metadata", part).items() if not key.startswith(_NOT_THE_USERS)}


def _text(former: Manifest | None, *path: Step) -> dict[str, str]:
    """Return the last key of `path` with its text, nothing where there is none."""
    text = former.text(*path) if former else ""
    return {str(path[-1]): text} if text else {}


def _restore(former: Manifest | None) -> str:
    wanted = former is not None and former.get("spec", "advanced", "restoreToOriginalReplicaCount") is True
    return "    restoreToOriginalReplicaCount: true\n" if wanted else ""


def _whole(former: Manifest | None, *path: Step) -> int | None:
    value = former.get(*path) if former else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_REPLICAS else None


def _block(key: str, values: Mapping[str, Any], indent: int) -> str:
    return f"{' ' * indent}{key}:\n{_mapping(values, indent + 2)}" if values else ""


def _mapping(values: Mapping[str, Any], indent: int) -> str:
    return "".join(f"{' ' * indent}{_scalar(key)}: {_scalar(value)}\n" for key, value in values.items())


def _scalar(value: Any) -> str:
    """Return text so that every reader of YAML has it back as that text: in quotes, but for plain words."""
    text = str(value)
    if _PLAIN.fullmatch(text) and yaml.safe_load(text) == text:
        return text
    return yaml.safe_dump(text, default_style='"', width=math.inf, allow_unicode=True).rstrip("\n")


def _comment(paragraphs: Iterable[str], indent: int = 0) -> str:
    """Return comment lines; a paragraph that begins with a dash hangs."""
    start = f"{' ' * indent}# "
    lines: list[str] = []
    for each in paragraphs:
        words = " ".join("".join(c if c.isprintable() else " " for c in each).split())
        hang = f"{start}  " if words.startswith("- ") else start
        lines += textwrap.wrap(
            words, _WIDTH, initial_indent=start, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False
        ) or [start.rstrip()]
    return "".join(f"{line}\n" for line in lines)
