"""`vllm-scaler` on a machine whose wall clock jumps.

Run as `python -m tests.cluster.odd_clock FILE ARGUMENTS…`: time.time() is off by as many seconds as the file says,
whenever it is asked; the monotonic clock goes on, as it does in life.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from scaler.cli import main

_true = time.time
_offset = Path(sys.argv.pop(1))


def _jumping() -> float:
    return _true() + float(_offset.read_text() or 0)  # empty while it is being written


if __name__ == "__main__":
    time.time = _jumping
    main()
