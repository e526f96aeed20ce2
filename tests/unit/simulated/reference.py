"""The engine's scheduler written plainly: one step after the other, one job after the other, no closed forms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from inference.simulated.engine import PACE_STEPS, paces
from inference.simulated.profile import Profile
from inference.simulated.request import Request


@dataclass(eq=False)
class Job:
    request: Request
    computed: int = 0
    emitted: int = 0
    blocks: int = 0
    scheduled: float = math.nan
    first_token: float = math.nan
    last_token: float = math.nan
    finished: float = math.nan
    preemptions: int = 0
    decoding: bool = False

    @property
    def tokens(self) -> int:
        return self.request.prompt_tokens + self.emitted


@dataclass
class Played:
    jobs: list[Job]
    """In the order of the requests."""
    preemptions: int = 0
    steps: int = 0
    tokens_of_steps: Counter[int] = field(default_factory=Counter)
    """Tokens as `iteration_tokens` counts them → steps."""
    gaps: list[float] = field(default_factory=list)
    """All inter-token latencies."""


def play(  # noqa: PLR0915 – one scheduler step from top to bottom, as plain as can be
    profile: Profile, requests: Sequence[Request], *, seed: int = 0
) -> Played:
    """Play requests, given in order of arrival, until the last one has finished."""
    factors = paces(profile.step_time.jitter, seed)
    played = Played([Job(request) for request in requests])
    coming, waiting, running = list(played.jobs), [], []
    free = profile.num_gpu_blocks
    now = 0.0

    def needed(job: Job, tokens: int) -> int:
        return -(-tokens // profile.block_size) - job.blocks

    while coming or waiting or running:
        if not waiting and not running:
            now = max(now, coming[0].request.arrival_s)
        while coming and coming[0].request.arrival_s <= now:
            waiting.append(coming.pop(0))

        budget = profile.max_num_batched_tokens
        chunks: dict[Job, int] = {}
        preempted = False
        for job in tuple(running):
            if job not in running:
                continue
            count = min(job.tokens - job.computed, budget)
            while job in running and needed(job, job.computed + count) > free:
                last = running.pop()
                free += last.blocks
                last.blocks = last.computed = 0
                last.decoding = False
                last.preemptions += 1
                played.preemptions += 1
                waiting.insert(0, last)
                preempted = True
            if job in running:
                extra = max(0, needed(job, job.computed + count))
                job.blocks += extra
                free -= extra
                chunks[job] = count
                budget -= count
        while waiting and budget and not preempted and len(running) < profile.max_num_seqs:
            job = waiting[0]
            if needed(job, job.tokens) > free:
                break
            running.append(waiting.pop(0))
            job.blocks = needed(job, job.tokens)
            free -= job.blocks
            if math.isnan(job.scheduled):
                job.scheduled = now
            hit = min(job.request.cached_tokens, job.request.prompt_tokens - 1)
            job.computed = hit - hit % profile.block_size
            chunks[job] = min(job.tokens - job.computed, budget)
            budget -= chunks[job]

        cost = profile.step_time
        seconds = cost.overhead_s
        for job, count in chunks.items():
            seconds += cost.per_sequence_s
            if job.decoding:
                seconds += cost.per_kv_token_s * job.computed
            else:
                seconds += cost.per_prompt_token_s * count
                seconds += cost.per_attention_pair_s * sum(range(job.computed + 1, job.computed + count + 1))
        seconds *= factors[played.steps // PACE_STEPS % len(factors)]
        now += seconds
        played.steps += 1

        tokens = 0
        for job, count in chunks.items():
            job.computed += count
            if job.computed < job.tokens:
                continue
            tokens += 1
            if job.emitted == 0:
                tokens += job.request.prompt_tokens
                job.first_token = now
            else:
                played.gaps.append(now - job.last_token)
            job.emitted += 1
            job.last_token = now
            job.decoding = True
            if job.emitted == job.request.output_tokens:
                job.finished = now
                running.remove(job)
                free += job.blocks
        played.tokens_of_steps[tokens] += 1
    return played
