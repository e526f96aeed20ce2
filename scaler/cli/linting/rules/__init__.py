"""Every rule. A new one is a function in one of these files, and a line here."""

from scaler.cli.linting.rule import Rule
from scaler.cli.linting.rules import activation, hpa, limits, metadata, triggers, workload

RULES: tuple[Rule, ...] = (
    metadata.metadata,
    metadata.metadata_text,
    metadata.scaler_address,
    metadata.unknown_policy,
    metadata.unsafe_tls,
    triggers.one_trigger,
    triggers.average_value,
    triggers.cached_metrics,
    triggers.scaling_modifiers,
    limits.min_above_max,
    limits.max_left_out,
    limits.idle_count,
    limits.schedule_above_max,
    limits.fallback_to_zero,
    limits.fallback_takes_away,
    activation.scale_to_zero,
    activation.initial_cooldown,
    activation.cooldown,
    activation.slow_activation,
    hpa.tolerance,
    hpa.scale_up_stabilization,
    hpa.scale_down_stabilization,
    hpa.scale_up_policies,
    hpa.direction_disabled,
    workload.no_scale_subresource,
    workload.one_scaler_per_target,
    workload.replicas_in_manifest,
    workload.readiness_probe,
    workload.drain,
    workload.grace_period,
    workload.grace_period_cut,
    workload.kept_for_ever,
)
