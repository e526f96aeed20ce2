"""One control loop for each target: discover, sample, measure, decide, remember; and explain."""

from scaler.policy import SettingsError
from scaler.targets.budgets import Budget, Budgets
from scaler.targets.clock import Clock
from scaler.targets.configuration import Setting, configuration
from scaler.targets.explain import story
from scaler.targets.history import History
from scaler.targets.record import PodRecord, Record
from scaler.targets.settings import DEFAULT_MAXIMUM, FROM_ENV, KEDA_KEYS, TriggerSettings, parse_trigger, trigger_id
from scaler.targets.target import GpuUse, Observer, Outcomes, Stale, Target, TargetState, World, state_of
from scaler.targets.targets import Invalid, Targets
from scaler.targets.trail import Points, joined, points_of

__all__ = [
    "DEFAULT_MAXIMUM",
    "FROM_ENV",
    "KEDA_KEYS",
    "Budget",
    "Budgets",
    "Clock",
    "GpuUse",
    "History",
    "Invalid",
    "Observer",
    "Outcomes",
    "PodRecord",
    "Points",
    "Record",
    "Setting",
    "SettingsError",
    "Stale",
    "Target",
    "TargetState",
    "Targets",
    "TriggerSettings",
    "World",
    "configuration",
    "joined",
    "parse_trigger",
    "points_of",
    "state_of",
    "story",
    "trigger_id",
]
