"""Drafts a ScaledObject for a workload: manifests go in, commented YAML comes out, nothing else happens."""

from scaler.cli.drafting.draft import DEFAULT_ADDRESS, Draft, StartUp, draft
from scaler.cli.drafting.former import former_of, target_of_former
from scaler.cli.drafting.workload import KINDS, Kind, Refused, Target, chosen, kind_of, target_of

__all__ = [
    "DEFAULT_ADDRESS",
    "KINDS",
    "Draft",
    "Kind",
    "Refused",
    "StartUp",
    "Target",
    "chosen",
    "draft",
    "former_of",
    "kind_of",
    "target_of",
    "target_of_former",
]
