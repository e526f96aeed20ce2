"""Asking a vLLM pod for the wanted series only, where it can do so.

`/metrics/` (with the slash) is prometheus_client's own page there, which honours `?name[]=…`: a few KB and half a
millisecond of the engine's event loop instead of 50 KB and 5 to 8 ms. With several API servers in one pod it
answers 200 with an empty page, and other front ends do not have it: so each pod is probed, and its filtered page
must hold every value that its full page held.
"""

from __future__ import annotations

from yarl import URL

from scaler.exposition import wanted_names
from scaler.exposition.sample import Reading, Sample

ENGINE = "vllm"
PATH = "/metrics"
PROBES = 3
"""A pod that is slow or breaks off gets this many probes before it is asked for the full page for good."""


class FilteredRead:
    """Whether one pod can be asked for the wanted series only. A new pod (uid) starts anew."""

    __slots__ = ("_full_url", "_needed", "_offered", "_probes_left", "_proven", "_url")

    def __init__(self, full_url: URL) -> None:
        self._full_url = full_url
        self._url: URL | None = None
        self._probes_left = PROBES
        self._proven = False
        self._needed: frozenset[str] = frozenset()
        self._offered: frozenset[str] | None = None

    @property
    def proven(self) -> bool:
        """The pod has answered a filtered question with all that is needed."""
        return self._proven

    def url(self) -> URL | None:
        """Return the filtered page's address, or None where the full page is to be asked for."""
        if self._url is None or self._probes_left == 0:
            return None
        if not self._proven:
            self._probes_left -= 1
        return self._url

    def accepts(self, sample: Sample) -> bool:
        """Say whether the filtered page held all that is needed; if not, the full page must be read."""
        self._offered = _values(sample)
        if not self._needed <= self._offered:
            return False
        self._proven = True
        return True

    def refuse(self) -> None:
        """The pod does not offer filtered pages: never ask again."""
        self._probes_left = 0

    def learn(self, page: bytes, sample: Sample) -> None:
        """Take a full page as the measure for filtered ones."""
        self._needed = _values(sample)
        if self._offered is not None and not self._needed <= self._offered:
            self.refuse()
        if self._url is None and sample.engine == ENGINE and self._full_url.raw_path_qs == PATH:
            names = [name for name in wanted_names(ENGINE) if name.encode() in page]
            self._url = self._full_url.with_path(PATH + "/").with_query([("name[]", name) for name in names])


def _values(sample: Sample) -> frozenset[str]:
    """Return the names of all that `sample` knows, engine by engine."""
    names = _known(sample)
    for label, engine in sample.engines.items():
        names.extend(f"{label}/{name}" for name in _known(engine))
    return frozenset(names)


def _known(reading: Reading) -> list[str]:
    gauges = ("waiting", "running", "kv_cache_usage", "waiting_deferred")
    return [*(g for g in gauges if getattr(reading, g) is not None), *reading.counters, *reading.histograms]
