"""The policy that people use inside Serve, with a file of what Serve told it and what it answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inference.autoscaling import Context, Policy


class Recorded(Policy):
    """Writes a line for each decision to the file `tape`."""

    def __init__(self, tape: str, **metadata: Any) -> None:
        super().__init__(**metadata)
        self._tape = Path(tape)

    def __call__(self, context: Context) -> tuple[int, dict[str, Any]]:
        before = self.decision
        answer = super().__call__(context)
        if self.decision is not before:
            seen = self.observe(context)
            line = {
                "time": context.current_time,
                "waiting": seen.load.waiting,
                "running": seen.load.running,
                "ready": seen.replicas.ready,
                "requested": context.target_num_replicas,
                "minimum": context.capacity_adjusted_min_replicas,
                "maximum": context.capacity_adjusted_max_replicas,
                "desired": answer[0],
            }
            with self._tape.open("a", encoding="utf-8") as tape:
                tape.write(json.dumps(line) + "\n")
        return answer
