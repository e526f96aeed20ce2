"""The keys of the gate before an engine, with meaning, unit, default and an example. None has to be set."""

from __future__ import annotations

import json
import os
from typing import Self

from pydantic import Field

from scaler.policy.parsing import MOST_REPLICAS, Seconds, Settings, SettingsError, parse

VARIABLE = "INFERENCE_GATE"


class GateSettings(Settings):
    """How a replica admits requests and how it goes. Objectives have the names that the scaler's policy has."""

    ttft_slo_s: Seconds = Field(
        3.0,
        ge=0.01,
        le=3600,
        examples=["3s"],
        description="Objective for the time to first token. A request that has no turn in two thirds of it is answered "
        "429, so that its client can go to another replica.",
    )
    itl_slo_s: Seconds = Field(
        0.1, ge=0.0001, le=60, examples=["100ms"], description="Objective for a request's mean time per output token."
    )
    max_num_seqs: int = Field(
        256,
        ge=1,
        le=1_000_000,
        examples=[256],
        description="The most requests in the engine at once, as its own option of this name has it.",
    )
    long_from: int = Field(
        2000,
        ge=1,
        le=MOST_REPLICAS,
        examples=[2000],
        description="Estimated prompt tokens (4 bytes each) from which on a request is long. The header "
        "`x-request-class: short` or `long` is believed first.",
    )
    long_share: float = Field(
        0.25,
        gt=0,
        le=1,
        examples=[0.25],
        description="Share of the limit that long requests may take while there are short ones.",
    )
    drain_grace_s: Seconds = Field(
        5.0,
        ge=0,
        le=3600,
        examples=["5s"],
        description="How long a replica that goes still takes requests, from clients and proxies that do not know yet.",
    )
    drain_timeout_s: Seconds = Field(
        120.0, ge=0, le=86400, examples=["2m"], description="How long it may then finish what it has."
    )

    @classmethod
    def from_environment(cls) -> Self:
        """Read the JSON object in `INFERENCE_GATE`. Raises SettingsError."""
        text = os.environ.get(VARIABLE, "").strip() or "{}"
        try:
            values = json.loads(text)
        except ValueError as error:
            raise SettingsError(
                [f'{VARIABLE}: not JSON ({error}); right is, for instance, {{"ttftSlo": "3s"}}']
            ) from None
        if not isinstance(values, dict):
            raise SettingsError([f'{VARIABLE}: no object; right is, for instance, {{"ttftSlo": "3s"}}'])
        return parse(cls, values)
