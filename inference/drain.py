"""`python -m inference.drain`: what a pod's preStop hook calls. It ends when the pod has served its last request.

    lifecycle:
      preStop: {exec: {command: [python3, -m, inference.drain, --port, "8000"]}}

The replica behind it has the gate (`vllm serve … --middleware inference.gate.Gate`), whose settings say for how long.
`terminationGracePeriodSeconds` must be more than `drainGrace` and `drainTimeout` together.
"""

from __future__ import annotations

import argparse
import json
import sys
import urllib.request
from http.client import HTTPException


def main() -> int:
    """Drain; 0 when every request was served, 1 when some were not, 2 when there is nothing that drains."""
    parser = argparse.ArgumentParser(prog="python -m inference.drain", description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="of the engine's API (%(default)s)")
    port = parser.parse_args().port
    if not 0 < port < 65536:
        parser.error(f"--port: {port} is wrong; right is a number from 1 to 65535, such as 8000")
    url = f"http://127.0.0.1:{port}/drain"
    ask = urllib.request.build_opener(urllib.request.ProxyHandler({})).open  # a pod asks itself, whatever HTTP_PROXY is
    try:
        with ask(urllib.request.Request(url, method="POST")) as answer:
            left = int(json.load(answer)["unfinished"])
    except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
        print(
            f"{url}: {type(error).__name__}: {error}: does the engine run with --middleware inference.gate.Gate?",
            file=sys.stderr,
        )
        return 2
    print(f"{left} requests were not finished" if left else "drained")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
