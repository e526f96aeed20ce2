"""What goes wrong in a cluster, by name: each is a change to the plant. Troubles add up.

A new one is a function and a line in `TROUBLES`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scaler.backtest.nodes import NodePool
from scaler.backtest.plant import Plant


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that goes wrong."""

    text: str
    """What it is, for people."""
    worsen: Callable[[Plant], Plant]


def _sight(**values: float) -> Callable[[Plant], Plant]:
    return lambda plant: replace(plant, sight=replace(plant.sight, **values))


def _luck(**values: Any) -> Callable[[Plant], Plant]:
    return lambda plant: replace(plant, luck=replace(plant.luck, **values))


def _capped(plant: Plant) -> Plant:
    """Leave GPUs for three quarters of the replicas; half of them stand, the others come after two minutes."""
    most = max(1, math.ceil(plant.maximum * 0.75))
    return replace(plant, nodes=NodePool(most, math.ceil(most / 2), node_s=120.0))


TROUBLES: Mapping[str, Trouble] = {
    "noise": Trouble("every gauge is off by a fifth or so at each look", _sight(noise=0.2)),
    "missing": Trouble("one pod in ten does not answer, for 10 s each time", _sight(missing_share=0.1)),
    "stale": Trouble("each pod's page is up to 10 s old", _sight(stale_s=10.0)),
    "uneven": Trouble(
        "half of the requests go to any pod, however full", lambda plant: replace(plant, blind_share=0.5)
    ),
    "slow-gpu": Trouble("the first pod takes twice as long for everything", _luck(slow_first=1)),
    "mixed-gpus": Trouble("half of the pods take 1.5 times as long", _luck(slow_share=0.5, slow_factor=1.5)),
    "crash-loop": Trouble("three new pods in ten never become ready", _luck(crash_share=0.3)),
    "slow-start": Trouble("start-up times vary by a factor of two", _luck(spread=0.7)),
    "gpu-cap": Trouble("there are GPUs for three quarters of the replicas", _capped),
    "deploy": Trouble(
        "in the middle every pod is replaced, a quarter at a time", lambda plant: replace(plant, deploy=0.5)
    ),
}
"""By name."""


def troubled(plant: Plant, names: Iterable[str]) -> Plant:
    """Return the plant with these troubles. Raises ValueError for a name that is none, with those that are."""
    for name in names:
        if name not in TROUBLES:
            near = difflib.get_close_matches(name, TROUBLES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(TROUBLES)}"
            raise ValueError(f"trouble {name!r:.60}: no such trouble; {hint}")
        plant = TROUBLES[name].worsen(plant)
    return plant
