"""Results of single runs on disk, in the cache folder of the user."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scaler.backtest.scores import Numbers

_AT_ONCE = 500


def folder() -> Path:
    """Return the folder that the Makefile names CACHE, too."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vllm-scaler"


class Cache:
    """Numbers by key. Each one is on disk as soon as it is put."""

    def __init__(self, path: Path | None = None) -> None:
        path = path or folder() / "backtest.sqlite"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._base = sqlite3.connect(path, isolation_level=None, timeout=60)
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("CREATE TABLE IF NOT EXISTS runs (key TEXT PRIMARY KEY, numbers TEXT NOT NULL)")

    def get(self, keys: Iterable[str]) -> dict[str, Numbers]:
        """Return what is known of these keys."""
        wanted, known = list(keys), dict[str, Any]()
        for begin in range(0, len(wanted), _AT_ONCE):
            some = wanted[begin : begin + _AT_ONCE]
            marks = ",".join("?" * len(some))
            rows = self._base.execute(f"SELECT key, numbers FROM runs WHERE key IN ({marks})", some)
            known.update((key, json.loads(text)) for key, text in rows)
        return known

    def put(self, key: str, numbers: Numbers) -> None:
        """Keep the numbers of a run."""
        self._base.execute("INSERT OR REPLACE INTO runs VALUES (?, ?)", (key, json.dumps(numbers)))
