"""A vLLM-like engine: continuous batching with chunked prefill, KV blocks, preemption and a prefix cache.

It has no clock: `submit` and `advance` are told the time, so that one core plays many engines much faster than
real time. A step with prompts in it is played by itself; decode steps between two changes of the batch are played at
once, since their durations form an arithmetic series (every step adds one token to each context).

The scheduler is that of vLLM V1: every decoding request gets one token of the step's budget, then a prompt that was
begun, then requests from the head of the queue as long as batch slots, budget and KV blocks for their whole prompt
are there. When a decoding request needs a block and none is free, the request that was admitted last loses
its blocks, goes back to the head of the queue, and later computes its prompt and output so far again. Blocks of a
shared prefix are counted for each request that uses it.
"""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush

from inference.simulated.metrics import EngineMetrics
from inference.simulated.profile import Profile
from inference.simulated.request import Request

PACE_STEPS = 32
"""The jitter factor is drawn anew after so many steps."""
_PACES = 1024


@dataclass(frozen=True, slots=True)
class FirstToken:
    """A request got its first token."""

    request: Request
    time: float


@dataclass(frozen=True, slots=True)
class Finished:
    """A request got its last token. All times are seconds on the clock of the simulation."""

    request: Request
    submitted: float
    scheduled: float
    first_token: float
    time: float
    preemptions: int

    @property
    def ttft_s(self) -> float:
        """Time to first token."""
        return self.first_token - self.submitted

    @property
    def tpot_s(self) -> float:
        """Mean time per output token after the first; 0 where there is only one."""
        return (self.time - self.first_token) / max(1, self.request.output_tokens - 1)

    @property
    def e2e_s(self) -> float:
        """From submission to the last token."""
        return self.time - self.submitted


Event = FirstToken | Finished


class _Job:
    """A request inside the engine."""

    __slots__ = (
        "computed",
        "emitted",
        "finish_step",
        "first_token",
        "hit",
        "last_token",
        "offset",
        "preemptions",
        "request",
        "scheduled",
        "submitted",
        "to_compute",
    )

    def __init__(self, request: Request, submitted: float) -> None:
        self.request = request
        self.submitted = submitted
        self.scheduled = math.nan
        self.first_token = math.nan
        self.last_token = math.nan
        self.preemptions = 0
        self.hit = 0
        """Prompt tokens found in the prefix cache."""
        self.emitted = 0
        """Output tokens so far; kept up only outside decoding."""
        self.to_compute = request.prompt_tokens
        """Tokens to compute before the next output token: the prompt and, after a preemption, the output."""
        self.computed = 0
        self.finish_step = -1
        """The number of the decode step that ends it; -1 while it does not decode."""
        self.offset = 0
        """While it decodes: tokens in its KV blocks minus the number of decode steps done."""


@lru_cache
def paces(jitter: float, seed: int) -> tuple[float, ...]:
    """The jitter factors of an engine, used in turn and again from the first: lognormal with mean one."""
    draw = random.Random(seed)
    return tuple(math.exp(draw.gauss(-jitter * jitter / 2, jitter)) for _ in range(_PACES))


def steps_within(first: float, growth: float, time: float) -> int:
    """How many steps of `first`, `first + growth`, `first + 2·growth` … seconds fit into `time`.

    The largest k with k·first + growth·k(k−1)/2 ≤ time: the positive root of a quadratic, in the form that
    loses no digits when the growth is small.
    """
    if time < first:
        return 0
    linear = first - growth / 2
    return int(2 * time / (linear + math.sqrt(linear * linear + 2 * growth * time)) + 1e-9)


class Engine:
    """One replica. Times given to it never go back; requests leave it as `Finished`, or by `abort`."""

    def __init__(self, profile: Profile, *, seed: int = 0) -> None:
        self.profile = profile
        self.metrics = EngineMetrics(profile.max_model_len)
        self._paces = paces(profile.step_time.jitter, seed)
        self._reached = -math.inf
        """The time that the caller has advanced to."""
        self._now = -math.inf
        """The end of the last step that was played: the start of the current one."""
        self._events: list[Event] = []
        self._waiting: deque[_Job] = deque()
        self._running: dict[int, _Job] = {}
        """In order of admission; keyed by identity, since equal requests are different requests."""
        self._free_blocks = profile.num_gpu_blocks
        self._steps = 0

        # The current step: planned at its start, so that what comes later takes part in the next one.
        self._planned = False
        self._prefills: list[tuple[_Job, int]] = []
        """Jobs with the prompt tokens that the current step computes for them."""
        self._step_s = 0.0
        """Duration of the current step, when it has prefills."""
        self._single = False
        """The current step must be followed by a new plan: the queue has changed."""
        self._unfinished_prompt: _Job | None = None
        """The last one admitted, when its prompt takes more than one step."""

        # The decoding requests, as sums.
        self._decoding = 0
        self._context = 0
        """Tokens in their contexts."""
        self._decode_steps = 0
        self._finish_order: list[tuple[int, int, _Job]] = []
        """A heap by the decode step that ends them; entries of preempted jobs are stale."""
        self._pushed = 0
        self._block_phase = [0] * profile.block_size
        """How many need a new block in a decode step whose number is i modulo the block size."""

    @property
    def running(self) -> int:
        """Requests in the batch."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._waiting)

    @property
    def outstanding(self) -> int:
        """Requests inside the engine."""
        return len(self._running) + len(self._waiting)

    @property
    def kv_cache_usage(self) -> float:
        """Share of the KV blocks in use, 0 to 1."""
        return 1 - self._free_blocks / self.profile.num_gpu_blocks

    def submit(self, request: Request, now: float) -> None:
        """Put a request at the end of the queue.

        Raises ValueError for one that this engine could never finish, and for a time that has passed.
        """
        tokens = request.prompt_tokens + request.output_tokens
        limit = min(self.profile.max_model_len, self.profile.kv_tokens)
        if tokens > limit:
            raise ValueError(
                f"prompt_tokens + output_tokens is {tokens}; this engine takes at most {limit} "
                f"(max_model_len {self.profile.max_model_len}, KV room {self.profile.kv_tokens})"
            )
        self._play(now)
        self._waiting.append(_Job(request, now))
        self._single = True

    def advance(self, until: float) -> list[Event]:
        """Play up to a time; the events since the last call, in order. Raises ValueError for a past time."""
        self._play(until)
        events, self._events = self._events, []
        return events

    def abort(self) -> list[Request]:
        """Drop all requests, as an engine that is killed does; those that were dropped."""
        dropped = [job.request for job in (*self._running.values(), *self._waiting)]
        self._waiting.clear()
        while self._running:
            self._leave(next(iter(self._running.values())))
        self._free_blocks = self.profile.num_gpu_blocks  # those taken for the current step too
        self._finish_order.clear()
        self._prefills = []
        self._planned = False
        return dropped

    def _play(self, until: float) -> None:
        if until < self._reached:
            raise ValueError(f"time {until} has passed; this engine is at {self._reached}")
        self._reached = until
        while self._now < until:
            if not self._planned:
                if not self._running and not self._waiting:
                    self._now = until
                    return
                self._plan()
            if self._prefills:
                if self._now + self._step_s > until:
                    return
                self._play_prefill_step()
            elif not self._play_decode_steps(until):
                return
            self._planned = False

    def _plan(self) -> None:
        """Decide what the step that starts now does, and take the blocks for it."""
        profile = self.profile
        self._planned = True
        self._single = False
        phase = self._decode_steps % profile.block_size
        while self._block_phase[phase] > self._free_blocks:
            self._preempt_last()
            self._single = True
        self._free_blocks -= self._block_phase[phase]

        budget = profile.max_num_batched_tokens - self._decoding
        prefills: list[tuple[_Job, int]] = []
        if (job := self._unfinished_prompt) is not None:
            budget -= self._take_chunk(job, budget, prefills)
        # Like vLLM, a step that had to preempt admits nobody.
        while self._waiting and budget and not self._single and len(self._running) < profile.max_num_seqs:
            job = self._waiting[0]
            blocks = profile.blocks(job.to_compute)
            if blocks > self._free_blocks:
                break
            self._waiting.popleft()
            self._free_blocks -= blocks
            self._admit(job)
            budget -= self._take_chunk(job, budget, prefills)
        self._prefills = prefills
        if prefills:
            self._step_s = self._prefill_step_s(prefills)

    def _admit(self, job: _Job) -> None:
        self._running[id(job)] = job
        if math.isnan(job.scheduled):
            job.scheduled = self._now
            # A hit is whole blocks, and the last prompt token is always computed: it gives the first output.
            request, size = job.request, self.profile.block_size
            job.hit = min(request.cached_tokens, request.prompt_tokens - 1) // size * size
            self.metrics.prefix_cache_queries += request.prompt_tokens
            self.metrics.prefix_cache_hits += job.hit
        job.computed = job.hit

    def _take_chunk(self, job: _Job, budget: int, prefills: list[tuple[_Job, int]]) -> int:
        tokens = min(job.to_compute - job.computed, budget)
        prefills.append((job, tokens))
        self._unfinished_prompt = job if job.computed + tokens < job.to_compute else None
        return tokens

    def _pace(self) -> float:
        return self._paces[self._steps // PACE_STEPS % _PACES]

    def _decode_s(self) -> float:
        """What the decoding requests add to the next step, with its overhead."""
        cost = self.profile.step_time
        return cost.overhead_s + cost.per_sequence_s * self._decoding + cost.per_kv_token_s * self._context

    def _prefill_step_s(self, prefills: list[tuple[_Job, int]]) -> float:
        cost = self.profile.step_time
        tokens = sum(count for _, count in prefills)
        pairs = sum(count * job.computed + count * (count + 1) // 2 for job, count in prefills)
        return self._pace() * (
            self._decode_s()
            + cost.per_sequence_s * len(prefills)
            + cost.per_prompt_token_s * tokens
            + cost.per_attention_pair_s * pairs
        )

    def _play_prefill_step(self) -> None:
        metrics = self.metrics
        decoding = self._decoding
        self._now += self._step_s
        self._steps += 1
        self._decode_steps += 1
        self._context += decoding
        metrics.busy_s += self._step_s
        metrics.generation_tokens += decoding
        if decoding:
            metrics.inter_token_latency.observe(self._step_s, decoding)
        self._finish_due()
        tokens = decoding
        for job, count in self._prefills:
            job.computed += count
            if job.computed == job.to_compute:
                tokens += 1 if job.emitted else 1 + job.request.prompt_tokens
                self._emit_after_prefill(job)
        self._prefills = []
        metrics.iteration_tokens.observe(tokens)

    def _play_decode_steps(self, until: float) -> bool:
        """Play decode steps that end by `until` and have the same batch; False when not one does."""
        heap = self._finish_order
        while heap[0][2].finish_step != heap[0][0]:
            heappop(heap)
        decoding, done, size = self._decoding, self._decode_steps, self.profile.block_size
        pace = self._pace()
        first = pace * self._decode_s()
        growth = pace * self.profile.step_time.per_kv_token_s * decoding
        steps = steps_within(first, growth, until - self._now)
        if steps == 0:
            return False
        most = 1 if self._single else min(heap[0][0] - done, PACE_STEPS - self._steps % PACE_STEPS)
        steps = min(steps, most)
        # The plan has taken the blocks of the first step; the batch changes before a step that lacks some.
        blocks = 0
        for number in range(1, steps):
            needed = self._block_phase[(done + number) % size]
            if blocks + needed > self._free_blocks:
                steps = number
                break
            blocks += needed
        self._free_blocks -= blocks

        elapsed = steps * first + growth * (steps * (steps - 1) / 2)
        self._now += elapsed
        self._steps += steps
        self._decode_steps += steps
        self._context += steps * decoding
        metrics = self.metrics
        metrics.busy_s += elapsed
        metrics.generation_tokens += steps * decoding
        metrics.iteration_tokens.observe(decoding, steps)
        metrics.inter_token_latency.observe_rising(first, growth, steps, decoding)
        self._finish_due()
        return True

    def _finish_due(self) -> None:
        heap = self._finish_order
        while heap and heap[0][0] <= self._decode_steps:
            step, _, job = heappop(heap)
            if job.finish_step == step:
                self._finish(job)

    def _emit_after_prefill(self, job: _Job) -> None:
        metrics, request = self.metrics, job.request
        metrics.generation_tokens += 1
        if job.emitted:
            metrics.inter_token_latency.observe(self._now - job.last_token)
        else:
            job.first_token = self._now
            metrics.prompt_tokens += request.prompt_tokens
            metrics.cached_prompt_tokens += job.hit
            metrics.time_to_first_token.observe(self._now - job.submitted)
            self._events.append(FirstToken(request, self._now))
        job.emitted += 1
        if job.emitted == request.output_tokens:
            self._finish(job)
            return
        job.finish_step = self._decode_steps + request.output_tokens - job.emitted
        job.offset = job.to_compute - self._decode_steps
        self._decoding += 1
        self._context += job.to_compute
        self._block_phase[-job.offset % self.profile.block_size] += 1
        self._pushed += 1
        heappush(self._finish_order, (job.finish_step, self._pushed, job))

    def _preempt_last(self) -> None:
        job = next(reversed(self._running.values()))
        if job.finish_step >= 0:
            job.emitted = job.request.output_tokens - (job.finish_step - self._decode_steps)
            job.last_token = self._now
        self._leave(job)
        job.to_compute = job.request.prompt_tokens + job.emitted
        job.preemptions += 1
        self.metrics.preemptions += 1
        self._waiting.appendleft(job)

    def _leave(self, job: _Job) -> None:
        """Take a job out of the batch and free its blocks."""
        del self._running[id(job)]
        if job is self._unfinished_prompt:
            self._unfinished_prompt = None
        held = job.to_compute
        if job.finish_step >= 0:
            held = job.offset + self._decode_steps
            self._decoding -= 1
            self._context -= held
            self._block_phase[-job.offset % self.profile.block_size] -= 1
            job.finish_step = -1
        self._free_blocks += self.profile.blocks(held)

    def _finish(self, job: _Job) -> None:
        self._leave(job)
        request, now, metrics = job.request, self._now, self.metrics
        event = Finished(request, job.submitted, job.scheduled, job.first_token, now, job.preemptions)
        self._events.append(event)
        metrics.finished += 1
        metrics.e2e_latency.observe(event.e2e_s)
        metrics.queue_time.observe(job.scheduled - job.submitted)
        metrics.prefill_time.observe(job.first_token - job.scheduled)
        metrics.decode_time.observe(now - job.first_token)
        metrics.inference_time.observe(now - job.scheduled)
        metrics.time_per_output_token.observe(event.tpot_s)
        metrics.request_preemptions.observe(job.preemptions)
        metrics.request_repeats.observe(1)
        metrics.http_duration_fine.observe(event.e2e_s)
        metrics.http_duration_coarse.observe(event.e2e_s)
        metrics.request_prompt_tokens.observe(request.prompt_tokens)
        metrics.request_generation_tokens.observe(request.output_tokens)
        metrics.request_computed_tokens.observe(request.prompt_tokens - job.hit)
