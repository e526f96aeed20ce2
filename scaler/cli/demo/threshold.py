"""What it is compared with: KEDA's prometheus trigger on waiting requests, on the same traffic in simulated time.

It is a rival of `vllm-scaler backtest`, in the same plant: threshold 5, as the vLLM production stack's chart has it,
a scrape and a sync of the HPA every 15 s, the HPA's defaults.
"""

from __future__ import annotations

import math

from scaler.backtest.deployment import PodLuck
from scaler.backtest.plant import Plant
from scaler.backtest.rivals.keda_queue import KedaQueue, Settings
from scaler.backtest.scores import gpu_seconds
from scaler.cli.demo.scenario import Scenario
from scaler.cli.demo.tally import Tally

THRESHOLD = Settings().threshold


def play(scenario: Scenario) -> Tally:
    """Run the whole scenario under the threshold and count what it cost and gave."""
    luck = PodLuck(scenario.start_up_s, spread=0.0)
    plant = Plant(scenario.minimum, scenario.maximum, luck=luck, profile=scenario.profile)
    run = plant.play(list(scenario.traffic()), scenario.duration_s, KedaQueue, seed=scenario.seed)
    return Tally(list(run.outcomes), len(run.changes), math.fsum(gpu_seconds(run)), run.duration_s)
