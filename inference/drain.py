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
import urllib.error
import urllib.request


def main() -> int:
    """Drain; 0 when every request was served, 1 when some were not, 2 when there is nothing that drains."""
    parser = argparse.ArgumentParser(prog="python -m inference.drain", description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="of the engine's API (%(default)s)")
    url = f"http://127.0.0.1:{parser.parse_args().port}/drain"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=None) as answer:
            left = json.load(answer)["unfinished"]
    except (OSError, ValueError) as error:
        print(f"{url}: {error}: does the engine run with --middleware inference.gate.Gate?", file=sys.stderr)
        return 2
    print(f"{left} requests were not finished" if left else "drained")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
