"""`python -m inference.simulated`: simulated vLLM pods in real time, for a dry run without a GPU; until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import math
import sys
import time

from inference.simulated.fleet import Fleet
from inference.simulated.profile import MEMORY_BOUND
from inference.simulated.server import Address, FleetServer
from inference.simulated.traffic import arrivals, constant


def main() -> None:
    """Read the options and serve until Ctrl-C; exit status 1 where an address cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m inference.simulated", description=__doc__)
    parser.add_argument(
        "--port", type=int, default=8000, help="of the first pod, on 127.0.0.1; 0 is any free one (%(default)s)"
    )
    parser.add_argument("--pods", type=int, default=1, help="each has the next port (%(default)s)")
    parser.add_argument("--rate", type=float, default=1.0, help="requests/s to all of them (%(default)s)")
    options = parser.parse_args()
    if options.pods < 1:
        parser.error(f"--pods {options.pods}: right is 1 or more")
    if not 0 <= options.port <= 65536 - options.pods:
        parser.error(f"--port {options.port}: right is 0 to {65536 - options.pods}")
    if not 0.0 < options.rate < math.inf:
        parser.error(f"--rate {options.rate:g}: right is a number above 0")
    addresses = [("127.0.0.1", options.port and options.port + pod) for pod in range(options.pods)]
    try:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_serve(addresses, options.rate))
    except OSError as error:
        sys.exit(f"{error.strerror}: --port {options.port} is not free")


async def _serve(addresses: list[Address], rate: float) -> None:
    began = time.monotonic()
    fleet = Fleet(arrivals(constant(rate), math.inf), profile=MEMORY_BOUND, start_up_s=0.0)
    for _ in addresses:
        fleet.add(0.0)
    async with FleetServer(fleet, lambda: time.monotonic() - began, addresses=addresses) as server:
        for address in server.addresses.values():
            print(f"http://{address}/metrics", flush=True)
        while True:
            await asyncio.sleep(3600)
            server.outcomes.clear()  # nobody asks how the requests went


if __name__ == "__main__":
    main()
