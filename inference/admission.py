"""Which requests a replica runs: a limit that follows latency, and a turn for each class. No clock, no I/O.

An engine takes whatever it is sent. Beyond what it can carry every request gets slower, its KV cache overflows and
requests are computed again; soon none keeps its objective. With a limit those that are admitted keep theirs, and the
others are told in time (benchmarks/admission.py has the numbers).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from inference.settings import GateSettings

HEADER = "x-request-class"
_BYTES_PER_TOKEN = 4
"""Of English text and JSON around it, about."""
_MOST_DIGITS = 18
"""Of a size that means anything. (Python reads no number of more than 4300, and says so by an exception.)"""

_LEAST = 8
"""Requests that an engine runs at any latency: fewer make no batch."""
_WINDOW_S, _EVERY_S = 15.0, 5.0
"""Over how long latency is looked at, and how often the limit moves: no faster than a move can show."""
_IN_ENGINE = 1 / 3
"""Share of the time to first token that may pass in the engine; the rest may have passed before it."""
_LESS, _ROOM = 0.8, 0.8
"""The least factor of one move down, and the use of the objectives below which the limit grows."""
_MORE = 1 / 16
"""Growth of one move up, as a share: halving takes 20 s, doubling a minute."""

T = TypeVar("T")


class RequestClass(StrEnum):
    """Whether a request is quickly done: a long one holds the others up while its prompt is computed."""

    SHORT = "short"
    LONG = "long"


def class_of(headers: Mapping[bytes, bytes], long_from: int) -> RequestClass:
    """Return a request's class: by its header, else by the size of its body. Names of headers are in lower case."""
    said = headers.get(HEADER.encode(), b"").decode("latin-1").strip().lower()
    if said in set(RequestClass):
        return RequestClass(said)
    size = headers.get(b"content-length", b"")
    digits = size.lstrip(b"0") if size.isdigit() else b""
    tokens = int(digits[:_MOST_DIGITS] or b"0") / _BYTES_PER_TOKEN
    return RequestClass.LONG if tokens >= long_from else RequestClass.SHORT


class AdaptiveLimit:
    """How many requests may be in the engine: less when the median request misses an objective, more when none is near.

    Additive-increase, multiplicative-decrease as of TCP (Chiu and Jain 1989), in shares. The median, not a tail: a tail
    moves with single long prompts, and then the limit costs requests that would have been served in time.
    """

    def __init__(self, settings: GateSettings) -> None:
        self._settings = settings
        self._least = min(_LEAST, settings.max_num_seqs)
        self._value = float(settings.max_num_seqs)
        self._first_tokens: deque[tuple[float, float]] = deque()
        self._token_times: deque[tuple[float, float]] = deque()
        self._moved_at: float | None = None

    @property
    def value(self) -> int:
        """Requests."""
        return int(self._value)

    def first_token(self, time: float, seconds: float) -> None:
        """Take note of how long the engine took for a first token."""
        self._first_tokens.append((time, seconds))

    def finished(self, time: float, token_s: float) -> None:
        """Take note of a finished request's mean time per output token in seconds."""
        self._token_times.append((time, token_s))

    def adapt(self, time: float, running: int) -> None:
        """Move the limit where it is time to; `running` requests are in the engine."""
        if self._moved_at is not None and time - self._moved_at < _EVERY_S:
            return
        self._moved_at = time
        use = max(
            _median(self._token_times, time) / self._settings.itl_slo_s,
            _median(self._first_tokens, time) / (_IN_ENGINE * self._settings.ttft_slo_s),
        )
        if use > 1:
            self._value = max(self._least, min(self._value, running) * max(_LESS, 1 / use))
            self._first_tokens.clear()
            self._token_times.clear()
        elif use < _ROOM and running >= self.value - 1:
            self._value = min(self._settings.max_num_seqs, self._value + max(1.0, self._value * _MORE))


def _median(seen: deque[tuple[float, float]], time: float) -> float:
    while seen and seen[0][0] < time - _WINDOW_S:
        seen.popleft()
    ordered = sorted(seconds for _, seconds in seen)
    return ordered[(len(ordered) - 1) // 2] if ordered else 0.0


class Admission(Generic[T]):
    """The queue before an engine. In turn, but a long request waits while long ones hold their share."""

    def __init__(self, settings: GateSettings) -> None:
        self._settings = settings
        self._queues: dict[RequestClass, deque[tuple[int, T]]] = {kind: deque() for kind in RequestClass}
        self._entered = 0
        self._running: Counter[RequestClass] = Counter()
        self.limit = AdaptiveLimit(settings)

    @property
    def longest_wait_s(self) -> float:
        """After which a request that has no turn would miss its first token's objective."""
        return (1 - _IN_ENGINE) * self._settings.ttft_slo_s

    @property
    def waiting(self) -> int:
        """Requests that wait for their turn."""
        return sum(map(len, self._queues.values()))

    @property
    def running(self) -> int:
        """Requests in the engine."""
        return self._running.total()

    def enter(self, kind: RequestClass, item: T) -> None:
        """Put a request at the end of the queue."""
        self._entered += 1
        self._queues[kind].append((self._entered, item))

    def admit(self, time: float) -> list[T]:
        """Return those whose turn it is; each is in the engine from now on, until `leave`."""
        self.limit.adapt(time, self.running)
        admitted = []
        while self.running < self.limit.value and (kind := self._next()) is not None:
            _, item = self._queues[kind].popleft()
            self._running[kind] += 1
            admitted.append(item)
        return admitted

    def withdraw(self, kind: RequestClass, item: T) -> None:
        """Take a request out of the queue."""
        self._queues[kind] = deque(entry for entry in self._queues[kind] if entry[1] != item)

    def leave(self, kind: RequestClass) -> None:
        """Let a request be no longer in the engine."""
        self._running[kind] -= 1

    def _next(self) -> RequestClass | None:
        may = [kind for kind, queue in self._queues.items() if queue and (kind is RequestClass.SHORT or self._has_room)]
        return min(may, key=lambda kind: self._queues[kind][0][0], default=None)

    @property
    def _has_room(self) -> bool:
        """Tell whether a long request may begin. As long as there are no short ones, all may be long."""
        others = self._running[RequestClass.SHORT] or self._queues[RequestClass.SHORT]
        return not others or self._running[RequestClass.LONG] < max(1.0, self._settings.long_share * self.limit.value)
