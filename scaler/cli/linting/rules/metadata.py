"""Rules about a trigger's metadata: what this scaler would refuse, and what KEDA would."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scaler.cli.linting.finding import Flaw
from scaler.cli.linting.manifests import Manifests
from scaler.cli.linting.rule import error, warning
from scaler.cli.linting.scaled_object import ScaledObject
from scaler.policy.presets import PRESETS
from scaler.quoting import one_line, quoted

_ADVICE = re.compile(r"; (?:right is(?:, for instance,)? |(?=did you mean |known are ))")
"""What parts a problem with the settings from what is right."""
_ADDRESS = re.compile(r"(?!https?://)\S+:\d{1,5}", re.IGNORECASE)
"""An address of gRPC, which may have a scheme of gRPC's own, such as dns:///."""


@error
def metadata(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """The scaler refuses a trigger with any wrong key or value: it answers INVALID_ARGUMENT and scales nothing."""
    for trigger in so.triggers:
        for problem in trigger.problems:
            key = problem.partition(":")[0]
            what, *right = _ADVICE.split(problem, maxsplit=1)
            yield Flaw(so.place(*trigger.path("metadata", key)), what, *right)


@error
def metadata_text(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """Metadata are a map of text to text: what stands there without quotes may be a number, a truth value
    or a time to YAML, which the API server refuses.
    """
    for trigger in so.triggers:
        for key, value in trigger.metadata.items():
            place = so.place(*trigger.path("metadata", key))
            if value is None:
                yield Flaw(place, f"{key} is a mapping or a list", f"text: {key}: …")
            elif not isinstance(value.made, str):
                made = _as_yaml(value.made)
                other = "" if made == value.text else f": YAML makes {made} of it"
                text = one_line(value.text)
                yield Flaw(place, f"{key}: {text or 'nothing'} is no text{other}", f'in quotes: {key}: "{text}"')


@error
def scaler_address(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """KEDA needs to know where the scaler is; without an address the ScaledObject never becomes ready."""
    for trigger in so.triggers:
        address = trigger.text("scalerAddress")
        right = "scalerAddress: vllm-scaler.NAMESPACE.svc:9090"
        if not address:
            yield Flaw(so.place(*trigger.path("metadata")), "metadata have no scalerAddress", right)
        elif not _ADDRESS.fullmatch(address):
            place = so.place(*trigger.path("metadata", "scalerAddress"))
            yield Flaw(place, f"scalerAddress: {quoted(address)} is no HOST:PORT", right)


@warning
def unknown_policy(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """The scaler refuses a policy that neither is a preset nor stands in the operator's file of policies."""
    for trigger in so.triggers:
        if trigger.unknown_policy:
            yield Flaw(
                so.place(*trigger.path("metadata", "policy")),
                f"policy {quoted(trigger.unknown_policy)} is no preset, and the operator's policies are not at hand",
                f"one of {', '.join(sorted(PRESETS))}; or check against the operator's with --policies FILE",
            )


@warning
def unsafe_tls(so: ScaledObject, _manifests: Manifests) -> Iterator[Flaw]:
    """An unchecked certificate lets anybody on the network say how many replicas you pay for."""
    for trigger in so.triggers:
        if trigger.text("unsafeSsl").lower() == "true":
            yield Flaw(
                so.place(*trigger.path("metadata", "unsafeSsl")),
                "unsafeSsl leaves the scaler's certificate unchecked",
                "caCert in a TriggerAuthentication, and no unsafeSsl",
            )


def _as_yaml(value: object) -> str:
    """Return a scalar as YAML would write it."""
    match value:
        case bool():
            return str(value).lower()
        case None:
            return "nothing"
        case _:
            return one_line(str(value))
