"""NVIDIA's DCGM exporter: how busy the GPUs of each pod on one node are. Not an engine: it knows no requests.

https://docs.nvidia.com/datacenter/dcgm/latest/gpu-telemetry/dcgm-exporter.html
"""

from __future__ import annotations

from collections.abc import Mapping

from scaler.exposition.sample import PageError
from scaler.exposition.text import Labels, PageReader

_SCALES = {"DCGM_FI_PROF_GR_ENGINE_ACTIVE": 1.0, "DCGM_FI_DEV_GPU_UTIL": 0.01}
"""Metric → what makes it a share. The first is finer, and the only one that a MIG slice has; not every GPU has it."""
_POD_LABELS = (
    ("exported_namespace", "exported_pod"),  # as Prometheus renames them: `pod` is then the exporter's own
    ("namespace", "pod"),
    ("pod_namespace", "pod_name"),  # with --use-old-namespace
)
_Pod = tuple[str, str]
_Gpu = tuple[tuple[str, str], ...]


def read_gpu_utilization(page: bytes) -> Mapping[_Pod, float]:
    """Return (namespace, pod) → the mean utilisation of its GPUs, 0 to 1.

    GPUs without a pod are left out, and so is what no GPU can say (DCGM prints numbers near 2⁶³ for "blank"). A
    pod of which nothing sensible is said is missing. Raises PageError for a page without utilisation.
    """
    found = _READER.read(page)
    if not found.cells and not any(found.declares(name) for name in _SCALES):
        raise PageError(f"none of {', '.join(_SCALES)} is on the page: is it a DCGM exporter's?")
    used: dict[_Pod, float] = {}
    for name, scale in _SCALES.items():
        for (metric, pod), gpus in found.cells.items():
            shares = [share for value in gpus.values() if 0 <= (share := value * scale) <= 1]
            if metric == name and shares and pod not in used:
                used[pod] = sum(shares) / len(shares)
    return used


def _place(name: str, labels: Labels) -> tuple[tuple[str, _Pod], _Gpu] | None:
    for namespace, pod in _POD_LABELS:
        if labels.get(pod):
            return (name, (labels.get(namespace, ""), labels[pod])), tuple(sorted(labels.items()))
    return None


_READER = PageReader(_SCALES, _place)
