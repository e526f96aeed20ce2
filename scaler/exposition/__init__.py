"""Reading a Prometheus text page fast, and the engines' dialects: bytes in, `Sample` out."""

from __future__ import annotations

from dataclasses import replace

from scaler.exposition.diagnosis import diagnose
from scaler.exposition.dialect import Dialect
from scaler.exposition.dialects import ENGINES
from scaler.exposition.dialects.dcgm import read_gpu_utilization
from scaler.exposition.sample import PageError, Sample

__all__ = ["ENGINES", "read_gpu_utilization", "read_page", "wanted_names"]


def read_page(page: bytes, engine: str | None = None) -> Sample:
    """Return what a metrics page says, in Prometheus text or OpenMetrics.

    The engine is found from the page unless `engine`, a key of `ENGINES`, names it. Raises PageError for a page on
    which no engine shows its load, and KeyError for an unknown engine.
    """
    dialect = ENGINES[engine] if engine is not None else _dialect(page)
    if dialect is None:
        raise PageError(diagnose(page))
    if engine is not None and not dialect.speaks(page):
        other = _dialect(page)
        raise PageError(f"no page of {engine}: {f'it is one of {other.name}' if other else diagnose(page)}")
    return replace(dialect.read(page), page_bytes=len(page))


def _dialect(page: bytes) -> Dialect | None:
    return next((dialect for dialect in ENGINES.values() if dialect.speaks(page)), None)


def wanted_names(engine: str | None = None) -> tuple[str, ...]:
    """Return the names of all samples that are read, of every engine if none is named: for a filtered read.

    A name with a colon is there with an underscore too, as it is where the colon was escaped on the way.
    """
    dialects = ENGINES.values() if engine is None else (ENGINES[engine],)
    names = [name for dialect in dialects for name in dialect.sample_names]
    return tuple(dict.fromkeys(spelling for name in names for spelling in (name, name.replace(":", "_"))))
