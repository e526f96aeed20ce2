"""The metrics page of a simulated engine, as vLLM 0.32 serves it.

The form of the page (families, types, help, labels) is `page_form.txt`; this module says where its numbers come from.
What the engine does not have (LoRA, connectors, images) keeps the value that the form gives it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from importlib.resources import files
from itertools import accumulate

from inference.simulated.engine import Engine
from inference.simulated.metrics import EngineMetrics, Histogram

_BYTES_PER_TOKEN = 4

_VALUES: dict[str, Callable[[Engine], float]] = {
    "vllm:num_requests_running": lambda e: e.running,
    "vllm:num_requests_waiting": lambda e: e.waiting,
    'vllm:num_requests_waiting_by_reason{reason="capacity"}': lambda e: e.waiting,
    "vllm:kv_cache_usage_perc": lambda e: e.kv_cache_usage,
    "vllm:prefix_cache_queries_total": lambda e: e.metrics.prefix_cache_queries,
    "vllm:prefix_cache_hits_total": lambda e: e.metrics.prefix_cache_hits,
    "vllm:num_preemptions_total": lambda e: e.metrics.preemptions,
    "vllm:prompt_tokens_total": lambda e: e.metrics.prompt_tokens,
    'vllm:prompt_tokens_by_source_total{source="local_compute"}': lambda e: (
        e.metrics.prompt_tokens - e.metrics.cached_prompt_tokens
    ),
    'vllm:prompt_tokens_by_source_total{source="local_cache_hit"}': lambda e: e.metrics.cached_prompt_tokens,
    "vllm:prompt_tokens_cached_total": lambda e: e.metrics.cached_prompt_tokens,
    'vllm:prompt_tokens_cached_by_source_total{source="device"}': lambda e: e.metrics.cached_prompt_tokens,
    "vllm:generation_tokens_total": lambda e: e.metrics.generation_tokens,
    'vllm:request_success_total{finished_reason="length"}': lambda e: e.metrics.finished,
    "process_cpu_seconds_total": lambda e: 17.0 + e.metrics.busy_s,  # start-up, then one core that is busy
    'http_requests_total{handler="/v1/completions",method="POST",status="2xx"}': lambda e: e.metrics.finished,
    'http_request_size_bytes_count{handler="/v1/completions"}': lambda e: e.metrics.finished,
    'http_request_size_bytes_sum{handler="/v1/completions"}': lambda e: (
        _BYTES_PER_TOKEN * e.metrics.request_prompt_tokens.total
    ),
    'http_response_size_bytes_count{handler="/v1/completions"}': lambda e: e.metrics.finished,
    'http_response_size_bytes_sum{handler="/v1/completions"}': lambda e: (
        _BYTES_PER_TOKEN * e.metrics.request_generation_tokens.total
    ),
}
"""Where a sample comes from; its name carries the labels that every engine's samples do not have."""

_HISTOGRAMS: dict[str, Callable[[EngineMetrics], Histogram]] = {
    "vllm:request_prompt_tokens": lambda m: m.request_prompt_tokens,
    "vllm:request_generation_tokens": lambda m: m.request_generation_tokens,
    "vllm:iteration_tokens_total": lambda m: m.iteration_tokens,
    # Clients of the simulation ask for the tokens that they get.
    "vllm:request_max_num_generation_tokens": lambda m: m.request_generation_tokens,
    "vllm:request_params_n": lambda m: m.request_repeats,
    "vllm:request_params_max_tokens": lambda m: m.request_generation_tokens,
    "vllm:time_to_first_token_seconds": lambda m: m.time_to_first_token,
    "vllm:inter_token_latency_seconds": lambda m: m.inter_token_latency,
    "vllm:request_time_per_output_token_seconds": lambda m: m.time_per_output_token,
    "vllm:e2e_request_latency_seconds": lambda m: m.e2e_latency,
    "vllm:request_queue_time_seconds": lambda m: m.queue_time,
    "vllm:request_inference_time_seconds": lambda m: m.inference_time,
    "vllm:request_prefill_time_seconds": lambda m: m.prefill_time,
    "vllm:request_decode_time_seconds": lambda m: m.decode_time,
    "vllm:request_num_preemptions": lambda m: m.request_preemptions,
    "vllm:request_prefill_kv_computed_tokens": lambda m: m.request_computed_tokens,
    "http_request_duration_highr_seconds": lambda m: m.http_duration_fine,
    "http_request_duration_seconds": lambda m: m.http_duration_coarse,
}

_LOAD_GAUGES = {
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
    "vllm:num_requests_waiting_by_reason",
    "vllm:kv_cache_usage_perc",
}
"""The families that a page in multi-process mode has no samples of until a first request was scheduled."""

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Line = tuple[str, str, Callable[[Engine], float]]
"""A sample's name, its line up to the value, and its value."""


class _Family:
    """One family of the page, or the `_created` gauges of one."""

    def __init__(self, name: str, head: str, *, hidden_when_empty: bool = False) -> None:
        self.name = name
        self.head = head
        self.hidden_when_empty = hidden_when_empty
        """Without samples it is not on the page at all; others keep their HELP and TYPE lines."""
        self.lines: list[Line] = []
        self.histogram: Callable[[EngineMetrics], Histogram] | None = None

    @property
    def sample_names(self) -> set[str]:
        return {name for name, _, _ in self.lines}

    def present(self, engine: Engine, *, multi_process: bool) -> bool:
        """Whether the samples are there now."""
        if self.name.startswith("http_") and "highr" not in self.name:
            return engine.metrics.finished > 0  # one child for each handler that was called
        if multi_process and self.name in _LOAD_GAUGES:
            return engine.metrics.prefix_cache_queries > 0
        return True

    def render(self, engine: Engine) -> list[str]:
        """The lines of all samples."""
        if self.histogram is None:
            return [f"{line}{number(read(engine))}\n" for _, line, read in self.lines]
        values = self.histogram(engine.metrics)
        *buckets, count, total = (line for _, line, _ in self.lines)
        cumulative = list(accumulate(values.counts))
        rows = [f"{line}{number(below)}\n" for line, below in zip(buckets, cumulative, strict=True)]
        return [*rows, f"{count}{number(cumulative[-1])}\n", f"{total}{number(values.total)}\n"]


class Page:
    """The page of one engine.

    In multi-process mode (several API servers over one engine) there is nothing about the Python process and no
    `_created` family, the load gauges have no sample before the first request, and a filtered read is empty.
    """

    def __init__(
        self, engine: Engine, *, model_name: str, started_unix_s: float = 0.0, multi_process: bool = False
    ) -> None:
        self._engine = engine
        self._multi_process = multi_process
        self._families = _read_form(engine, model_name, started_unix_s)
        if multi_process:
            self._families = [f for f in self._families if not _single_process_only(f.name)]
            for family in self._families:
                family.hidden_when_empty = family.name.startswith("http_")

    def render(self) -> str:
        """The whole page."""
        return "".join(self._text(self._families, None))

    def render_only(self, names: Collection[str]) -> str:
        """The samples of these names with the heads of their families: what `/metrics/?name[]=…` answers."""
        if self._multi_process:
            return ""
        wanted = set(names)
        return "".join(self._text((f for f in self._families if f.sample_names & wanted), wanted))

    def _text(self, families: Iterable[_Family], wanted: set[str] | None) -> Iterable[str]:
        for family in families:
            present = family.present(self._engine, multi_process=self._multi_process)
            if not present and (wanted is not None or family.hidden_when_empty):
                continue
            yield family.head
            if present:
                rows = family.render(self._engine)
                if wanted is not None:
                    rows = [row for row, (name, _, _) in zip(rows, family.lines, strict=True) if name in wanted]
                yield from rows


def number(value: float) -> str:
    """A number as prometheus_client prints it: Python's shortest form, with Go's exponent from a million on."""
    text = repr(float(value))
    if value < 1e6 or "e" in text:
        return text
    whole, _, fraction = text.partition(".")
    digits = f"{whole[0]}.{whole[1:]}{fraction}".rstrip("0").rstrip(".")
    return f"{digits}e+{len(whole) - 1:02d}"


def _single_process_only(family: str) -> bool:
    return family.startswith(("python_", "process_")) or family.endswith("_created")


def _read_form(engine: Engine, model_name: str, started_unix_s: float) -> list[_Family]:
    profile = engine.profile
    words = {
        "MODEL": model_name.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n"),
        "BLOCK_SIZE": str(profile.block_size),
        "NUM_GPU_BLOCKS": str(profile.num_gpu_blocks),
        "KV_TOKENS": str(profile.kv_tokens),
        "MAX_CONCURRENCY": str(profile.kv_tokens / profile.max_model_len),
    }
    form = files("inference.simulated").joinpath("page_form.txt").read_text("utf-8")
    families: list[_Family] = []
    for block in form.split("# HELP ")[1:]:
        help_line, type_line, *samples = block.splitlines()
        name, _, text = help_line.partition(" ")
        kind = type_line.split()[3]
        family = _Family(name, f"# HELP {help_line}\n{type_line}\n")
        stem = name.removesuffix("_total") if kind == "counter" else name
        created = _Family(
            f"{stem}_created",
            f"# HELP {stem}_created {text}\n# TYPE {stem}_created gauge\n",
            hidden_when_empty=True,
        )
        for sample in samples:
            head, _, value = sample.partition(" ")
            bare = head.partition("{")[0]
            labels = {label: words.get(word, word) for label, word in _LABEL.findall(head)}
            if kind == "histogram":
                family.histogram = _HISTOGRAMS[name]
                family.lines = _histogram_lines(name, labels, family.histogram(engine.metrics).bounds)
            else:
                read = _VALUES.get(_key(bare, labels)) or _constant(float(value))
                family.lines.append((bare, _line(bare, labels), read))
            if kind != "gauge" and bare.startswith(("vllm:", "http_")) and not bare.endswith("_sum"):
                child = (created.name, _line(created.name, labels), _constant(started_unix_s))
                created.lines.append(child)
        if name == "process_start_time_seconds":
            family.lines = [(name, f"{name} ", _constant(started_unix_s))]
        families.append(family)
        if created.lines:
            families.append(created)
    return families


def _histogram_lines(name: str, labels: dict[str, str], bounds: tuple[float, ...]) -> list[Line]:
    read = _constant(0.0)  # a histogram renders its own values
    bucket, count, total = f"{name}_bucket", f"{name}_count", f"{name}_sum"
    les = [*map(number, bounds), "+Inf"]
    lines = [(bucket, _line(bucket, labels | {"le": le}), read) for le in les]
    return [*lines, (count, _line(count, labels), read), (total, _line(total, labels), read)]


def _line(name: str, labels: dict[str, str]) -> str:
    pairs = ",".join(f'{label}="{labels[label]}"' for label in sorted(labels))
    return f"{name}{{{pairs}}} " if pairs else f"{name} "


def _key(name: str, labels: dict[str, str]) -> str:
    own = {label: value for label, value in labels.items() if label not in {"engine", "model_name"}}
    return _line(name, own).rstrip()


def _constant(value: float) -> Callable[[Engine], float]:
    return lambda _: value
