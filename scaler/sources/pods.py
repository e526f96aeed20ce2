"""Samples straight from the pods: one question per pod and tick over HTTP, none of which can delay another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping, Sequence
from ipaddress import ip_address

from yarl import URL

from scaler.exposition import read_page
from scaler.exposition.sample import PageError, Sample
from scaler.quoting import one_line, quoted
from scaler.sources.access import Access
from scaler.sources.fetching import MAX_PAGE_BYTES, Fetcher, FetchError
from scaler.sources.filtered import FilteredRead
from scaler.sources.holding import Held
from scaler.sources.source import Endpoint, ReadOptions, Unknown
from scaler.sources.turns import Turns

PATIENCE_S = 5.0
"""How long a question may stay open. Longer than a tick, so that a pod which answers late because it is overloaded
is still read at every other tick; short enough to try a new connection soon when a node died."""
FORGET_S = 300.0
"""After this long without being asked for, what was learned about a pod is dropped."""


class PodSource:
    """Reads the metrics pages of pods over HTTP, through one shared pool of connections.

    At most one question is open per pod. One that outlives its tick stays open for `patience_s`: meanwhile the
    pod is unknown and is not asked again, and a late answer serves the next tick. Until a pod has answered again,
    no tick waits for it: a hung pod costs one deadline, once.
    """

    def __init__(
        self,
        access: Access | None = None,
        *,
        max_page_bytes: int = MAX_PAGE_BYTES,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """Must be called with a running event loop."""
        self._turns = Turns()
        self._fetcher = Fetcher(access or Access(), self._turns, max_page_bytes=max_page_bytes)
        self._patience_s = patience_s
        self._pods: dict[tuple[Endpoint, ReadOptions], _Pod] = {}
        self._swept_at = 0.0

    async def sample(
        self, endpoints: Sequence[Endpoint], options: ReadOptions, deadline_s: float
    ) -> Mapping[str, Sample | Unknown]:
        """Read all endpoints at once; see `Source.sample`."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._forget_old_pods(now)
        pods = {e.pod: self._pod(e, options) for e in endpoints if _is_ip_address(e.host)}
        questions: dict[str, _Question] = {}
        try:
            for name, pod in pods.items():
                await self._turns.begin()
                questions[name] = pod.ask(loop.time())
            if awaited := [questions[name].task for name, pod in pods.items() if pod.silent_since is None]:
                await asyncio.wait(awaited, timeout=deadline_s)
        finally:
            for question in questions.values():
                question.end_by(self._patience_s)
        now = loop.time()
        said = {name: pods[name].answer(question, now) for name, question in questions.items()}
        return {e.pod: said.get(e.pod) or Unknown(f"{quoted(e.host)} is not an IP address") for e in endpoints}

    async def close(self) -> None:
        """End the open questions and close all connections."""
        tasks = [pod.question.task for pod in self._pods.values() if pod.question is not None]
        self._pods.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._fetcher.close()

    def _pod(self, endpoint: Endpoint, options: ReadOptions) -> _Pod:
        key = (endpoint, options)
        pod = self._pods.get(key)
        if pod is None:
            pod = self._pods[key] = _Pod(self._fetcher, endpoint, options, self._patience_s)
        return pod

    def _forget_old_pods(self, now: float) -> None:
        if now - self._swept_at < FORGET_S:
            return
        self._swept_at = now
        for key in [key for key, pod in self._pods.items() if now - pod.asked_at > FORGET_S]:
            del self._pods[key]


class _Question:
    """One reading of one page on its way."""

    def __init__(self, reading: Coroutine[None, None, Sample | Unknown], now: float) -> None:
        self.task = asyncio.create_task(reading)
        self.asked_at = now
        self._ends = False

    def end_by(self, patience_s: float) -> None:
        """If it is still open, see to it that it ends `patience_s` after it was asked."""
        if not self._ends and not self.task.done():
            self._ends = True
            self.task.get_loop().call_at(self.asked_at + patience_s, self.task.cancel)

    @property
    def result(self) -> Sample | Unknown | None:
        """What came of it; None while it is open, and when it ended without an answer."""
        return self.task.result() if self.task.done() and not self.task.cancelled() else None


class _Pod:
    """One pod's page, and the question that is open there."""

    def __init__(self, fetcher: Fetcher, endpoint: Endpoint, options: ReadOptions, patience_s: float) -> None:
        self._fetcher = fetcher
        self._options = options
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        # The slash ends the host: no path of a user's metadata can lead elsewhere.
        path = options.path.removeprefix("/")
        self._url = URL(f"{options.scheme}://{host}:{endpoint.port}/{path}")
        self._filtered = FilteredRead(self._url)
        self._held = Held()
        self._patience_s = patience_s
        self.question: _Question | None = None
        self.asked_at = 0.0
        self.silent_since: float | None = None
        """When the first question was asked that was not answered in time; None once it answers."""

    def ask(self, now: float) -> _Question:
        """Return the question that is open, one that was answered since the last tick, or a new one."""
        self.asked_at = now
        question = self.question
        if question is not None and question.task.done():
            if question.result is not None:
                self.silent_since = None
            if not isinstance(question.result, Sample) or now - question.asked_at > self._patience_s:
                question = None
        if question is None:
            question = self.question = _Question(self._read(), now)
        return question

    def answer(self, question: _Question, now: float) -> Sample | Unknown:
        """Return what came of `question`; once it is answered it is no longer open."""
        if question.result is not None:
            self.silent_since = None
            if self.question is question:
                self.question = None
            return question.result
        if self.silent_since is None:
            self.silent_since = question.asked_at
            return Unknown(f"timed out after {now - question.asked_at:.1f} s")
        return Unknown(f"no answer for {now - self.silent_since:.1f} s")

    async def _read(self) -> Sample | Unknown:
        try:
            return await self._read_cheapest()
        except FetchError as error:
            return Unknown(str(error))
        except PageError as error:
            return Unknown(f"answered with a page of another kind: {error}")
        except Exception as error:  # whatever a page does to its reader, it must not end the loop
            return Unknown(f"the page could not be read: {one_line(repr(error))}")

    async def _read_cheapest(self) -> Sample:
        """Read the filtered page where the pod offers one, else the full page."""
        if (url := self._filtered.url()) is not None:
            try:
                sample = await self._fetcher.read(url, self._parse)
            except PageError:
                self._filtered.refuse()
            except FetchError as error:
                if error.status is not None and error.status < 500:
                    self._filtered.refuse()
                elif self._filtered.proven:
                    raise
            else:
                if self._filtered.accepts(sample):
                    return sample
        return await self._fetcher.read(self._url, self._parse_full)

    def _parse(self, page: bytes) -> Sample:
        return self._held.fill(read_page(page, self._options.engine), time.monotonic())

    def _parse_full(self, page: bytes) -> Sample:
        sample = self._parse(page)
        self._filtered.learn(page, sample)
        return sample


def _is_ip_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
