"""Checks ScaledObjects before they are applied: manifests go in, findings come out, nothing else happens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scaler.cli.linting.finding import Finding, Flaw, Place, Severity
from scaler.cli.linting.manifests import Manifest, Manifests, read
from scaler.cli.linting.rules import RULES
from scaler.cli.linting.scaled_object import Given, ScaledObject

__all__ = ["RULES", "Finding", "Given", "Place", "Report", "Severity", "Skipped", "check"]

UNREADABLE = "yaml"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A ScaledObject that does not name this scaler."""

    place: Place
    name: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a check of some files found, in the order of files and lines."""

    checked: int
    """ScaledObjects that name this scaler."""
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]

    def count(self, severity: Severity) -> int:
        """Return how many findings are of this severity."""
        return sum(finding.severity is severity for finding in self.findings)


def check(files: Iterable[tuple[str, str | bytes]], given: Given, ignored: frozenset[str] = frozenset()) -> Report:
    """Check the text of files, given with their names; `ignored` are names of rules."""
    objects: list[Manifest] = []
    findings: list[Finding] = []
    for name, text in files:
        for found in read(name, text):
            if isinstance(found, Flaw):
                why = "What cannot be read, or can be read in two ways, cannot be applied."
                findings.append(Finding(found.place, Severity.ERROR, UNREADABLE, "", found.what, why, found.right))
            else:
                objects.append(found)
    manifests = Manifests(objects)
    checked, skipped = 0, []
    for manifest in manifests:
        if (manifest.group, manifest.kind) != ("keda.sh", "ScaledObject"):
            continue
        scaled_object = ScaledObject(manifest, given)
        if not scaled_object.triggers:
            skipped.append(Skipped(manifest.place(), scaled_object.name))
            continue
        checked += 1
        for rule in RULES:
            if rule.name not in ignored:
                findings.extend(rule.findings(scaled_object, manifests))
    return Report(checked, tuple(sorted(findings, key=lambda finding: finding.place)), tuple(skipped))
