"""A trigger's metadata: the policy's keys, and those that say how its pods are read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from scaler.exposition import ENGINES
from scaler.policy.parsing import MOST_REPLICAS, Seconds, parse
from scaler.policy.presets import with_policy
from scaler.policy.settings import PolicySettings

KEDA_KEYS = frozenset({"scalerAddress", "enableTLS", "unsafeSsl"})
"""Keys that are for KEDA itself and come along with ours."""
FROM_ENV = "FromEnv"
DEFAULT_MAXIMUM = 100
"""With endpoints and without maxReplicas; the same as KEDA's for a ScaledObject without maxReplicaCount."""
LONGEST_PATH = 1024


def _known_engine(name: str) -> str:
    if name not in ENGINES:
        raise ValueError(f"known are {', '.join(sorted(ENGINES))}")
    return name


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError("a path starts with /")
    if len(path) > LONGEST_PATH or not path.isprintable():
        raise ValueError(f"a path has at most {LONGEST_PATH:,} printable characters")
    return path


class TriggerSettings(PolicySettings):
    """Everything that a trigger's metadata may say."""

    engine: Annotated[str, AfterValidator(_known_engine)] | None = Field(
        None, examples=["vllm"], description="The engine's dialect. Left out, it is found from the page."
    )
    metrics_port: int | None = Field(
        None,
        gt=0,
        lt=65536,
        examples=[8000],
        description="Port of the metrics page. Left out: the container port named metrics or http, else 8000.",
    )
    metrics_path: Annotated[str, AfterValidator(_absolute)] = Field(
        "/metrics", examples=["/metrics"], description="Path of the metrics page."
    )
    metrics_scheme: Literal["http", "https"] = Field(
        "http", examples=["https"], description="Whether the page is behind TLS; the operator gives the CA."
    )
    gpus_per_replica: int = Field(
        1,
        ge=1,
        le=100_000,
        examples=[8],
        description="GPUs of one replica, over all its pods: what it takes of a budget that the operator has set.",
    )
    staleness_s: Seconds = Field(
        15.0,
        gt=0,
        le=3600,
        examples=["15s"],
        description="Older knowledge than this is not answered from: GetMetrics fails, and the HPA keeps the count.",
    )
    endpoints: str | None = Field(
        None,
        examples=["10.0.0.7:8000,10.0.0.8:8000"],
        description="Pods by address, without a cluster. Only within what the operator allows by --allow-endpoints.",
    )
    min_replicas: int | None = Field(
        None,
        ge=0,
        le=MOST_REPLICAS,
        examples=[1],
        description="With endpoints: the minimum. Else it is the ScaledObject's.",
    )
    max_replicas: int | None = Field(
        None,
        ge=1,
        le=MOST_REPLICAS,
        examples=[8],
        description=f"With endpoints: the maximum, left out {DEFAULT_MAXIMUM}. Else it is the ScaledObject's.",
    )

    @model_validator(mode="after")
    def _limits_go_with_endpoints(self) -> Self:
        limits = {"minReplicas": self.min_replicas, "maxReplicas": self.max_replicas}
        for key, value in limits.items():
            if value is not None and self.endpoints is None:
                raise ValueError(
                    f"{key}: '{value}' is wrong here (only with endpoints); right is {key[:3]}ReplicaCount in the "
                    "ScaledObject"
                )
        most = self.max_replicas or DEFAULT_MAXIMUM
        if self.min_replicas is not None and self.min_replicas > most:
            default = "" if self.max_replicas else ", the default"
            raise ValueError(
                f"minReplicas: '{self.min_replicas}' is wrong (above maxReplicas '{most}'{default}); right is {most} "
                "or less"
            )
        return self


def parse_trigger(
    metadata: Mapping[str, str], policies: Mapping[str, Mapping[str, str]] | None = None
) -> TriggerSettings:
    """Turn a trigger's metadata into settings; `policies` are the operator's, by name.

    Raises SettingsError with every problem at once.
    """
    return parse(TriggerSettings, with_policy(_without_suffix(metadata), policies), known=KEDA_KEYS)


def trigger_id(metadata: Mapping[str, str]) -> str:
    """Return a short stable name for these metadata: what tells two triggers of a ScaledObject apart."""
    text = "\n".join(f"{key}={value}" for key, value in sorted(metadata.items()) if key not in KEDA_KEYS)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _without_suffix(metadata: Mapping[str, str]) -> dict[str, str]:
    """KEDA resolves `keyFromEnv` to the variable's value, but leaves the suffix on the key."""
    keys = TriggerSettings.keys()
    return {
        key.removesuffix(FROM_ENV) if key.removesuffix(FROM_ENV) in keys else key: value
        for key, value in metadata.items()
    }
