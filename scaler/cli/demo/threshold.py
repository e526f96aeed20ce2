"""What it is compared with: KEDA's prometheus trigger on waiting requests, with the threshold that is usual.

Source: `vllm:num_requests_waiting` with threshold 5, as the vLLM production stack's chart has it; Prometheus scrapes
every 15 s, the HPA has its defaults. Played in simulated time, on the same traffic.
"""

from __future__ import annotations

from inference.simulated import Fleet, PodState
from scaler.backtest.hpa import SYNC_S, Hpa
from scaler.cli.demo.scenario import Scenario
from scaler.cli.demo.tally import Tally

THRESHOLD = 5
_SCRAPE_OFFSET_S = 7.0
"""The scrape's place between two syncs: on average half of an interval old when it is used."""


def play(scenario: Scenario) -> Tally:
    """Run the whole scenario under the threshold and count what it cost and gave."""
    fleet = Fleet(scenario.traffic(), profile=scenario.profile, start_up_s=scenario.start_up_s, seed=scenario.seed)
    hpa = Hpa(scenario.minimum, scenario.maximum)
    for _ in range(scenario.minimum):
        fleet.add(0.0, start_up_s=0.0)
    tally, requested, scraped = Tally(), scenario.minimum, 0
    time, waiting = 0.0, 0
    while time < scenario.duration_s:
        time += 1.0
        tally.add(fleet.advance(time))
        tally.pods(fleet, time)
        if time >= scraped * SYNC_S + _SCRAPE_OFFSET_S:
            scraped += 1
            waiting = sum(pod.engine.waiting for pod in fleet.pods.values() if pod.state is PodState.READY)
        if time % SYNC_S == 0:
            current = fleet.count(PodState.STARTING) + fleet.count(PodState.READY)
            wanted = hpa.sync(waiting / THRESHOLD, time, requested, current)
            if wanted != requested:
                requested = wanted
                tally.changes += 1
                fleet.scale(requested, time)
    tally.finish(fleet)
    return tally
