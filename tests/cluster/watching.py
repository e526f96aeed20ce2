"""A process that looks after every ScaledObject of a cluster and says what that takes, as one line of JSON.

Run as `python -m tests.cluster.watching KUBECONFIG [SECONDS]`: it goes on asking for every workload once a second for
so long, as targets do.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from scaler.cluster.client import ApiClient
from scaler.cluster.discovery import KubernetesDiscovery
from scaler.cluster.scaled_objects import OwnAddresses
from tests.cluster.workload_objects import OWN_ADDRESS
from tests.waiting import background


@dataclass(frozen=True, slots=True)
class Watching:
    """What was seen and what it took."""

    scaled_objects: int
    pods: int
    synced_s: float
    """From the start to a view of everything."""
    memory_mib: float
    """Resident memory of the whole process then, the interpreter and its libraries included."""
    for_the_view_mib: float
    """What of it came with the objects."""
    workload_us: float
    """To tell one workload from memory."""
    ticked_cpu: float
    """Share of one core while every workload is asked for once a second, the watches included."""


async def watch(kubeconfig: Path, seconds: float) -> Watching:
    async with await ApiClient.connect(kubeconfig) as client:
        before = _resident_mib()
        began = time.monotonic()
        discovery = KubernetesDiscovery(client, OwnAddresses([OWN_ADDRESS]))
        async with background(discovery.run()):
            await discovery.synced.wait()
            keys = [(found.namespace, found.name) for found in discovery.scaled_objects()]
            pods = sum(len(discovery.workload(*key).pods) for key in keys)
            synced = time.monotonic() - began
            gc.collect()
            after = _resident_mib()
            asked = time.perf_counter()
            for key in keys:
                discovery.workload(*key)
            each = (time.perf_counter() - asked) / max(1, len(keys))
            cpu, wall = time.process_time(), time.monotonic()
            for _ in range(int(seconds)):
                for key in keys:
                    discovery.workload(*key)
                await asyncio.sleep(1)
            share = (time.process_time() - cpu) / max(1e-9, time.monotonic() - wall)
    return Watching(len(keys), pods, synced, after, after - before, each * 1e6, share)


def _resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


if __name__ == "__main__":
    result = asyncio.run(watch(Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0))
    print(json.dumps(asdict(result)))
