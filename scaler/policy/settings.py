"""Every key of the policy, with its meaning, unit, default and an example. Zero keys are a good configuration."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from scaler.policy.emission import ToleranceMode
from scaler.policy.parsing import (
    Amount,
    Seconds,
    Settings,
    StepLimit,
    parse_amount,
    parse_duration,
    parse_step_limit,
)
from scaler.policy.rules import MIN_SAMPLES, Rule, parse_rules
from scaler.policy.schedule import Window, parse_schedule
from scaler.quoting import quoted

_HOUR_S, _DAY_S = 3600.0, 86400.0
"""Longer is no look-back, and no delay, but a slip of the unit."""


def _seconds_or_auto(value: object) -> float | None:
    return None if value is None or str(value).strip() == "auto" else parse_duration(value)


def _warm_replicas(value: object) -> object:
    return "auto" if str(value).strip() == "auto" else parse_amount(value)


def _percentile(value: object) -> object:
    text = str(value).strip().removeprefix("p")
    return int(text) if text.isdecimal() and len(text) <= 3 else value


class PolicySettings(Settings):
    """How the replica count follows from the load. Names are Ray Serve's where Ray Serve has one."""

    # Demand: how many replicas the load needs. The highest signal counts.
    target_ongoing_requests: float | None = Field(
        None,
        ge=0.01,
        le=1e6,
        examples=[12],
        description="Requests, waiting and running, that one replica should have. Left out, and with no other "
        "signal and no rule set, it is learned from what replicas were seen to carry.",
    )
    target_queue_seconds: Seconds | None = Field(
        None,
        ge=0.001,
        le=_DAY_S,
        examples=["5s"],
        description="Estimated wait of a newly queued request that is acceptable: waiting requests ÷ measured "
        "service rate.",
    )
    target_kv_cache_usage: float | None = Field(
        None, ge=0.01, le=1, examples=[0.8], description="Share of the KV cache that should be in use, 0 to 1."
    )
    target_tokens_per_second: float | None = Field(
        None,
        ge=0.01,
        le=1e9,
        examples=[2500],
        description="Prompt and generated tokens that one replica should do a second.",
    )
    rules: Annotated[tuple[Rule, ...], BeforeValidator(parse_rules)] = Field(
        (),
        examples=["+2 when queue_seconds > 5 for 10s every 2m; -1 when utilization < 0.4 for 5m"],
        description="Threshold rules, separated by `;`.",
    )
    max_num_seqs: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        examples=[256],
        description="Batch slots of one replica (vLLM's --max-num-seqs). Left out, they are learned: the most that "
        "ran while others waited.",
    )
    utilization: Literal["auto", "slots", "kv", "gpu"] = Field(
        "auto",
        examples=["slots"],
        description="What rules mean by `utilization`: batch slots in use, KV cache in use, GPU use, or the higher of "
        "the first two.",
    )

    # What is promised to clients, for a capacity that is learned.
    ttft_slo_s: Seconds | None = Field(
        None,
        ge=0.001,
        le=_HOUR_S,
        examples=["3s"],
        description="Objective for the time to first token: a queue that the present replicas begin within it asks for "
        "no more of them. Left out: no queue should stand.",
    )
    itl_slo_s: Seconds | None = Field(
        None,
        ge=0.0001,
        le=_HOUR_S,
        examples=["100ms"],
        description="Objective for a request's mean inter-token latency (its time per output token): no more requests "
        "should run in a replica than keep it.",
    )
    e2e_slo_s: Seconds | None = Field(
        None,
        ge=0.001,
        le=_DAY_S,
        examples=["30s"],
        description="Objective for a request's whole latency: no more requests should run in a replica than keep it.",
    )
    percentile: Annotated[Literal[50, 90, 95, 99], BeforeValidator(_percentile)] = Field(
        95,
        examples=[95],
        description="Share of the requests, in percent, that should meet the objectives: 50, 90, 95 or 99. Also how "
        "much of the load is provided for when it is forecast.",
    )
    cost_weight: float = Field(
        1.0,
        ge=0.01,
        le=100,
        examples=[2],
        description="How much a replica counts against a late request: twice the weight provides for a load of which "
        "twice the share comes on top.",
    )

    # From demand to a count.
    smoothing_factor: float = Field(
        1.0,
        ge=0.001,
        le=1,
        examples=[0.6],
        description="α of an exponential moving average over the demand, for each metrics interval; 1 smooths nothing. "
        "(Ray Serve's deprecated key of this name is a gain instead: here that is upscalingFactor.)",
    )
    look_ahead_s: Annotated[float | None, BeforeValidator(_seconds_or_auto)] = Field(
        None,
        ge=0,
        le=_DAY_S,
        examples=["auto", "60s"],
        description="How far ahead the load is forecast: `auto` takes the measured start-up time, with that of "
        "a node where the next replica would wait for one; 0 is off.",
    )
    burst_threshold: float | None = Field(
        None,
        ge=0.001,
        le=1e6,
        examples=[0.5],
        description="A rise of demand, as a share of the ready replicas per second, from which on the upscale delay "
        "and the smoothing are skipped and the count is at least multiplied by upscalingFactor. Left out: never.",
    )
    upscaling_factor: float = Field(
        1.0, ge=0.001, le=1000, examples=[2], description="Gain on the distance to a higher demand, as in Ray Serve."
    )
    downscaling_factor: float = Field(
        1.0, ge=0.001, le=1000, examples=[0.5], description="Gain on the distance to a lower demand, as in Ray Serve."
    )
    headroom: Annotated[Amount, BeforeValidator(parse_amount)] = Field(
        Amount(0),
        examples=["2", "10%"],
        description="Replicas kept beyond demand, as a count or a percentage: the warm pool.",
    )
    warm_replicas: Annotated[Amount | Literal["auto"], BeforeValidator(_warm_replicas)] = Field(
        Amount(0),
        examples=["auto", "2", "25%"],
        description="Room kept on nodes for so many replicas beyond the wanted ones: a count, a percentage, or `auto`: "
        "what the load is expected to need once a node could be there. 0 keeps none, since such nodes cost money.",
    )
    max_warm_replicas: Annotated[Amount, BeforeValidator(parse_amount)] = Field(
        Amount(50, percent=True),
        examples=["4", "50%"],
        description="What `warmReplicas: auto` may cost: the most replicas that room is kept for, as a count or a "
        "percentage of the wanted ones.",
    )
    upscale_delay_s: Seconds = Field(
        0.0,
        ge=0,
        le=_DAY_S,
        examples=["3s"],
        description="How long a higher count must be wanted before it is asked for.",
    )
    downscale_delay_s: Seconds = Field(
        300.0,
        ge=0,
        le=_DAY_S,
        examples=["5m"],
        description="How long a lower count must be wanted before it is asked for.",
    )
    delay_mode: Literal["stabilization", "consecutive"] = Field(
        "stabilization",
        examples=["consecutive"],
        description="`stabilization`: the smallest change wanted in the window counts, as in the HPA. `consecutive`: "
        "the direction must hold without a break, then the latest want counts, as in Ray Serve.",
    )
    upscale_limit: Annotated[StepLimit | None, BeforeValidator(lambda v: v and parse_step_limit(v))] = Field(
        None, examples=["4/15s", "100%/1m"], description="How far the count may grow in a period."
    )
    downscale_limit: Annotated[StepLimit | None, BeforeValidator(lambda v: v and parse_step_limit(v))] = Field(
        None, examples=["1/2m"], description="How far the count may shrink in a period."
    )
    starting_credit: bool = Field(
        True,
        examples=["true"],
        description="Pods on the way are credited against the queue, so that one backlog is asked for once.",
    )
    max_node_provision_time_s: Annotated[float | None, BeforeValidator(_seconds_or_auto)] = Field(
        None,
        ge=1,
        le=_DAY_S,
        examples=["auto", "10m"],
        description="How long pods may find no node until the target counts as capacity-blocked and its count grows no "
        "further: `auto` is twice the 90th percentile of the times that nodes took, at least 5 minutes; 15 minutes "
        "until one was seen.",
    )
    min_replicas_schedule: Annotated[tuple[Window, ...], BeforeValidator(parse_schedule)] = Field(
        (),
        examples=["Mon-Fri 08:00-20:00 Europe/Berlin = 64"],
        description="A higher floor in time windows, for known events.",
    )

    # Looking and telling.
    metrics_interval_s: Seconds = Field(1.0, ge=0.1, le=60, examples=["1s"], description="Time between two ticks.")
    look_back_period_s: Seconds = Field(
        30.0,
        gt=0,
        le=_HOUR_S,
        examples=["30s"],
        description="Window over which rates and latency quantiles are measured.",
    )
    tolerance_mode: ToleranceMode = Field(
        "exact",
        examples=["round-up"],
        description="What to do about the HPA's dead band: `exact` expects tolerance 0 in the ScaledObject; `round-up` "
        "goes to the next count that passes, `hold` stays until one does.",
    )

    delivery: Literal["hpa", "direct"] = Field(
        "hpa",
        examples=["direct"],
        description="How a burst's count is delivered: by the HPA at its next sync, or `direct`: the scaler also "
        "raises spec.replicas at once, where the operator allows it, and the HPA agrees at its next sync.",
    )

    @model_validator(mode="after")
    def _windows_hold_enough_samples(self) -> Self:
        least = MIN_SAMPLES * self.metrics_interval_s
        right = f"too short for metricsInterval {self.metrics_interval_s:g}s); right is {least:g}s or more"
        problems = [
            f"rules: the window of {quoted(rule.text)} is wrong ({rule.window_s:g}s is {right}"
            for rule in self.rules
            if 0 < rule.window_s < least
        ]
        if self.look_back_period_s < least:
            problems.append(f"lookBackPeriod: '{self.look_back_period_s:g}s' is wrong ({right}")
        if problems:
            raise ValueError("\n".join(problems))
        return self
