"""Each engine's own way of telling its load, in tables of pages made of words."""

from __future__ import annotations

import math

import pytest

from scaler.exposition import ENGINES, read_gpu_utilization, read_page, wanted_names
from scaler.exposition.sample import COUNTERS, HISTOGRAMS, Histogram, PageError, Sample
from tests.unit.exposition.reference import METRICS


def page(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def vllm(*lines: str, waiting: object = 3, running: object = 2, kv: object = 0.5) -> Sample:
    """The sample of an idle-ish vLLM 0.11 page with one engine, and `lines` more."""
    return read_page(
        page(
            "# TYPE vllm:num_requests_waiting gauge",
            f'vllm:num_requests_waiting{{engine="0",model_name="m"}} {waiting}',
            f'vllm:num_requests_running{{engine="0",model_name="m"}} {running}',
            f'vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} {kv}',
            *lines,
        )
    )


def load(sample: Sample) -> tuple[float | None, float | None, float | None]:
    return sample.waiting, sample.running, sample.kv_cache_usage


@pytest.mark.parametrize(
    ("file", "engine", "waiting", "running", "kv", "engines"),
    [
        ("vllm-metrics-fresh.txt", "vllm", 0, 0, 0, ["0"]),
        ("vllm-metrics-loaded.txt", "vllm", 44, 4, 0.00024415552707079957, ["0"]),
        ("vllm-metrics-drained.txt", "vllm", 0, 0, 0, ["0"]),
        ("vllm-metrics-api2-fresh.txt", "vllm", 0, 0, 0, ["0"]),
        ("vllm-metrics-api2-loaded.txt", "vllm", 48, 4, 0.0004883110541414881, ["0"]),
        ("vllm-metrics-dp2-loaded.txt", "vllm", 52, 8, 0.00036623329060614385, ["0", "1"]),
        ("vllm-metrics-dp2api2-fresh.txt", "vllm", 0, 0, 0, ["0", "1"]),
        ("vllm-metrics-dp2api2-loaded.txt", "vllm", 56, 8, 0.0004883110541414881, ["0", "1"]),
        ("vllm-rust-frontend-openmetrics.txt", "vllm", 28, 4, 0.5, ["0"]),
        ("vllm-0.9.2-rendered.txt", "vllm", 0, 0, 0, ["0"]),
        ("vllm-0.11.0-rendered.txt", "vllm", 0, 0, 0, ["0"]),
        ("vllm-0.13.0-rendered.txt", "vllm", 0, 0, 0, ["0"]),
        ("vllm-0.23.0-rendered.txt", "vllm", 0, 0, 0, ["0"]),
        ("vllm-0.33.0-rendered.txt", "vllm", 0, 0, 0, ["0"]),
        ("sglang-0.5.23-priority-scheduling.txt", "sglang", 7, 48, 0.83, ["0"]),
        ("tgi.txt", "tgi", 12, 32, None, ["0"]),
        ("llamacpp-server.txt", "llamacpp", 0, 0, None, ["0"]),
        ("trtllm-serve.txt", "trtllm", 3, 8, 0.41, ["0"]),
        ("triton-trtllm.txt", "triton-trtllm", 1, 1, 0.4875, ["tensorrt_llm"]),
        ("lmdeploy.txt", "lmdeploy", 4 + 2, 16, 0.52, ["0"]),
        ("nim.txt", "nim", 2, 5, 0.35, ["0"]),
    ],
)
def test_a_page_of_each_engine_is_recognised_and_read(
    file: str, engine: str, waiting: float, running: float, kv: float | None, engines: list[str]
) -> None:
    sample = read_page((METRICS / file).read_bytes())
    assert (sample.engine, *load(sample), list(sample.engines)) == (engine, waiting, running, kv, engines)
    assert sample.unknown == {}
    assert read_page((METRICS / file).read_bytes(), engine) == sample


@pytest.mark.parametrize(
    "file", [path.name for path in METRICS.iterdir() if path.name.startswith("vllm-") and "rust" not in path.name]
)
def test_every_vllm_page_has_all_latencies_and_all_counters_of_its_version(file: str) -> None:
    sample = read_page((METRICS / file).read_bytes())
    older = {"rejections"} if "rendered" in file and "0.33" not in file else set()
    assert set(sample.counters) == set(COUNTERS) - older
    assert set(sample.histograms) == set(HISTOGRAMS) - ({"tpot"} if "0.9.2" in file else set())
    assert all(histogram.bounds[-1] == math.inf for histogram in sample.histograms.values())


def test_a_loaded_vllm_tells_its_counters_and_latencies() -> None:
    sample = read_page((METRICS / "vllm-metrics-loaded.txt").read_bytes())
    assert sample.counters == {
        "prompt_tokens": 2068,
        "generation_tokens": 106041,
        "requests_finished": 272,
        "preemptions": 0,
        "prefix_cache_queries": 2068,
        "prefix_cache_hits": 0,
        "rejections": 0,
    }
    assert sample.histograms["ttft"].sum == 8039.62585735321
    assert sample.histograms["e2e"].bounds[:3] == (0.3, 0.5, 0.8)
    assert sample.histograms["queue_time"].counts[:3] == (8, 8, 12)
    assert sample.histograms["itl"].counts[-1] == 105765
    assert sample.waiting_deferred == 0


def test_two_engines_add_up_counter_by_counter_and_bucket_by_bucket() -> None:
    sample = read_page((METRICS / "vllm-metrics-dp2-loaded.txt").read_bytes())
    first, second = sample.engines.values()
    for name in ("prompt_tokens", "generation_tokens", "requests_finished"):
        assert sample.counters[name] == first.counters[name] + second.counters[name]
    for name in HISTOGRAMS:
        pairs = zip(first.histograms[name].counts, second.histograms[name].counts, strict=True)
        assert sample.histograms[name].counts == tuple(map(sum, pairs))
    assert "rejections" in sample.counters  # they name no engine: the page's own
    assert "rejections" not in first.counters


@pytest.mark.parametrize(
    ("lines", "kv"),
    [
        (['vllm:gpu_cache_usage_perc{model_name="m"} 0.3'], 0.3),
        (['vllm:gpu_cache_usage_perc{engine="0"} 0.3', 'vllm:kv_cache_usage_perc{engine="0"} 0.4'], 0.4),
        (['vllm:kv_cache_usage_perc{engine="0"} 0.4', 'vllm:gpu_cache_usage_perc{engine="0"} 0.3'], 0.4),
        (["# TYPE vllm:kv_cache_usage_perc gauge", 'vllm:gpu_cache_usage_perc{engine="0"} 0.3'], 0.3),
        ([f'vllm:kv_cache_usage_perc{{engine="0",pid="{pid}"}} {kv}' for pid, kv in ((1, 0), (2, 0.6), (3, 0))], 0.6),
        (['vllm:kv_cache_usage_perc{engine="0"} 0.2', 'vllm:kv_cache_usage_perc{engine="1"} 0.4'], 0.3),
        (["# TYPE vllm:kv_cache_usage_perc gauge"], 0),
        (['vllm_kv_cache_usage_perc{engine="0"} 0.4'], 0.4),
        (['vllm:kv_cache_usage_perc{engine="0"} 1.02'], 1),
    ],
)
def test_the_kv_cache_of_vllm_is_found_under_any_of_its_names(lines: list[str], kv: float) -> None:
    sample = read_page(page("# TYPE vllm:num_requests_waiting gauge", "# TYPE vllm:num_requests_running gauge", *lines))
    assert sample.kv_cache_usage == pytest.approx(kv)
    assert sample.unknown == {}


@pytest.mark.parametrize(
    ("field", "old", "new"),
    [
        ("itl", "vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds"),
        ("queue_time", "vllm:time_in_queue_requests", "vllm:request_queue_time_seconds"),
    ],
)
def test_a_renamed_histogram_is_read_once(field: str, old: str, new: str) -> None:
    def lines(name: str, count: int) -> list[str]:
        return [f'{name}_bucket{{le="1.0"}} 1', f'{name}_bucket{{le="+Inf"}} {count}', f"{name}_sum 2.5"]

    assert vllm(*lines(old, 3)).histograms[field] == Histogram((1.0, math.inf), (1, 3), 2.5)
    assert vllm(*lines(old, 3), *lines(new, 4)).histograms[field].counts == (1, 4)


def test_an_old_vllm_without_engine_labels_is_one_engine() -> None:
    sample = read_page(
        page(
            'vllm:num_requests_waiting{model_name="m"} 3.0',
            'vllm:num_requests_running{model_name="m"} 2.0',
            'vllm:num_requests_swapped{model_name="m"} 9.0',
            'vllm:gpu_cache_usage_perc{model_name="m"} 0.25',
            'vllm:request_success_total{finished_reason="stop",model_name="m"} 5.0',
            'vllm:request_success_total{finished_reason="length",model_name="m"} 6.0',
        )
    )
    assert load(sample) == (3, 2, 0.25)
    assert sample.counters == {"requests_finished": 11}
    assert list(sample.engines) == ["0"]


def test_what_names_no_engine_belongs_to_the_only_engine() -> None:
    sample = vllm('vllm:admission_rejections_total{model_name="m",reason="max_num_queued_reqs"} 7')
    assert sample.counters["rejections"] == sample.engines["0"].counters["rejections"] == 7


def test_creation_times_are_no_counts() -> None:
    counters = vllm("vllm:num_preemptions_total 1", "vllm:num_preemptions_created 1.79e+09").counters
    assert counters == {"preemptions": 1}


def test_requests_that_more_replicas_do_not_relieve_are_told_apart() -> None:
    name = "vllm:num_requests_waiting_by_reason"
    sample = vllm(f'{name}{{engine="0",reason="capacity"}} 1', f'{name}{{engine="0",reason="deferred"}} 2')
    assert (sample.waiting, sample.waiting_deferred) == (3, 2)
    assert vllm().waiting_deferred is None


@pytest.mark.parametrize(
    ("awake", "asleep"), [(("1.0",), False), (("0.0",), True), (("0.0", "1.0"), False), (("0.0", "0.0"), True)]
)
def test_a_page_sleeps_when_all_its_engines_do(awake: tuple[str, ...], asleep: bool) -> None:
    states = [f'vllm:engine_sleep_state{{engine="{i}",sleep_state="awake"}} {a}' for i, a in enumerate(awake)]
    sample = vllm(*states)
    assert sample.asleep is asleep
    assert [engine.asleep for engine in sample.engines.values()] == [a == "0.0" for a in awake]


def test_an_engine_that_was_not_asked_yet_beside_a_busy_one_is_idle() -> None:
    sample = vllm('vllm:prompt_tokens_total{engine="1",model_name="m"} 0.0')
    assert sample.engines["1"].waiting == 0  # its gauge is declared, and set by nobody
    assert sample.waiting == 3


@pytest.mark.parametrize(
    ("gauge", "value", "reason"),
    [
        ("waiting", "NaN", "vllm:num_requests_waiting is nan, which is no number of requests"),
        ("waiting", "-1", "vllm:num_requests_waiting is -1, which is no number of requests"),
        ("waiting", "+Inf", "vllm:num_requests_waiting is inf, which is no number of requests"),
        ("waiting", "2e9", "vllm:num_requests_waiting is 2e+09, which is no number of requests"),
        ("running", "-Inf", "vllm:num_requests_running is -inf, which is no number of requests"),
        ("kv", "45.0", "vllm:kv_cache_usage_perc is 45, which is no share between 0 and 1"),
        ("kv", "-0.1", "vllm:kv_cache_usage_perc is -0.1, which is no share between 0 and 1"),
        ("waiting", "three", "1 line of vllm:num_requests_waiting cannot be read: "),
    ],
)
def test_a_value_that_cannot_be_true_is_unknown_and_the_rest_is_read(gauge: str, value: str, reason: str) -> None:
    sample = vllm("vllm:prompt_tokens_total 5", **{gauge: value})
    field = {"kv": "kv_cache_usage"}.get(gauge, gauge)
    assert getattr(sample, field) is None
    assert sample.unknown[field].startswith(reason)
    assert set(sample.unknown) == {field}
    assert sample.counters == {"prompt_tokens": 5}


@pytest.mark.parametrize("value", ["NaN", "-5", "+Inf"])
def test_a_counter_that_cannot_be_true_is_unknown(value: str) -> None:
    sample = vllm(f"vllm:prompt_tokens_total {value}")
    assert sample.counters == {}
    assert "vllm:prompt_tokens_total" in sample.unknown["prompt_tokens"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (['_bucket{le="1"} 5', '_bucket{le="+Inf"} 4', "_sum 1"], "make no sense"),
        (['_bucket{le="1"} NaN', '_bucket{le="+Inf"} 4', "_sum 1"], "make no sense"),
        (['_bucket{le="1"} -1', '_bucket{le="+Inf"} 4', "_sum 1"], "make no sense"),
        (['_bucket{le="1"} 1', '_bucket{le="+Inf"} 4', "_sum NaN"], "make no sense"),
        (['_bucket{le="1"} 1', '_bucket{le="2"} 4', "_sum 1"], "no bucket +Inf"),
        (['_bucket{le="1"} 1', '_bucket{le="+Inf"} 4'], "no sum"),
        (['_bucket{le="one"} 1', '_bucket{le="+Inf"} 4', "_sum 1"], "cannot be read"),
        (["_bucket 1", '_bucket{le="+Inf"} 4', "_sum 1"], "cannot be read"),
        (
            [
                *('_bucket{m="a",le="1"} 1', '_bucket{m="a",le="+Inf"} 1', '_sum{m="a"} 1'),
                *('_bucket{m="b",le="2"} 1', '_bucket{m="b",le="+Inf"} 1', '_sum{m="b"} 1'),
            ],
            "different buckets",
        ),
    ],
)
def test_a_histogram_that_cannot_be_true_is_unknown(lines: list[str], reason: str) -> None:
    sample = vllm(*(f"vllm:time_to_first_token_seconds{line}" for line in lines))
    assert sample.histograms == {}
    assert reason in sample.unknown["ttft"]


def test_buckets_are_read_in_any_order_and_with_any_bounds() -> None:
    name = "vllm:time_to_first_token_seconds"
    ends = ('_bucket{le="+Inf"} 4', "_sum 9", '_bucket{le="7"} 3', '_bucket{le="0.3"} 1')
    sample = vllm(*(name + end for end in ends))
    assert sample.histograms["ttft"] == Histogram((0.3, 7.0, math.inf), (1, 3, 4), 9)


def test_one_unknown_engine_makes_the_total_unknown_and_is_named() -> None:
    sample = vllm('vllm:num_requests_waiting{engine="1",model_name="m"} NaN')
    assert sample.waiting is None
    assert sample.unknown["waiting"].startswith("engine 1: vllm:num_requests_waiting is nan")
    assert sample.engines["0"].waiting == 3


def test_a_missing_gauge_is_unknown_and_named() -> None:
    sample = read_page(page('vllm:num_requests_waiting{engine="0"} 3'))
    assert load(sample) == (3, None, None)
    assert sample.unknown == {
        "running": "no vllm:num_requests_running on the page",
        "kv_cache_usage": "no vllm:kv_cache_usage_perc or vllm:gpu_cache_usage_perc on the page",
    }


def test_a_page_with_nothing_but_type_lines_is_an_idle_engine() -> None:
    names = ("num_requests_waiting", "num_requests_running", "kv_cache_usage_perc")
    sample = read_page(page(*(f"# TYPE vllm:{name} gauge" for name in names)))
    assert load(sample) == (0, 0, 0)
    assert sample.unknown == {}


def test_a_vllm_page_without_any_load_is_an_error_that_names_the_switch() -> None:
    with pytest.raises(PageError, match="--disable-log-stats"):
        read_page(page('vllm:cache_config_info{block_size="16"} 1.0'))


# --- SGLang


SGLANG = 'sglang:num_queue_reqs{{dp_rank="{dp}",moe_ep_rank="{ep}",pp_rank="0",tp_rank="{tp}"{more}}} {value}'


@pytest.mark.parametrize(
    ("series", "waiting"),
    [
        ([{"value": 7}], 7),
        ([{"tp": 0, "value": 7}, {"tp": 1, "value": 7}, {"tp": 2, "ep": 1, "value": 0}], 7),
        ([{"dp": 0, "value": 7}, {"dp": 1, "value": 5}], 12),
        ([{"dp": d, "tp": t, "value": v} for d, t, v in ((0, 0, 7), (0, 1, 7), (1, 2, 5), (1, 3, 5))], 12),
        ([{"more": f',priority="{p}"', "value": v} for p, v in (("", 7), ("0", 5), ("1", 2))], 7),
        ([{"more": f',priority="{p}"', "value": v} for p, v in (("0", 5), ("1", 2))], 7),
    ],
)
def test_sglang_ranks_and_priorities_are_counted_once(series: list[dict[str, object]], waiting: float) -> None:
    lines = [SGLANG.format(**({"dp": 0, "ep": 0, "tp": 0, "more": ""} | each)) for each in series]
    assert read_page(page(*lines)).waiting == waiting


# --- Triton and TensorRT-LLM


def test_triton_adds_up_what_is_pending_of_its_models() -> None:
    lines = [f'nv_inference_pending_request_count{{model="{m}",version="1"}} {n}' for m, n in (("a", 2), ("b", 3))]
    sample = read_page(page(*lines, 'nv_inference_request_success{model="a",version="1"} 9'))
    assert (sample.engine, *load(sample)) == ("triton", 5, None, None)
    assert sample.unknown == {}
    assert sample.counters == {"requests_finished": 9}


def test_a_triton_page_with_the_trtllm_backend_is_read_by_the_backends_own_metrics() -> None:
    own = (METRICS / "triton-trtllm.txt").read_bytes()
    sample = read_page(page('nv_inference_pending_request_count{model="preprocessing",version="1"} 5') + own)
    assert (sample.engine, *load(sample)) == ("triton-trtllm", 1, 1, 0.4875)


def test_lmdeploy_is_unknown_where_a_part_of_its_queue_is() -> None:
    lines = (METRICS / "lmdeploy.txt").read_text().replace("waiting{engine", "waiting{engine", 1)
    sample = read_page(lines.replace("4.0", "NaN").encode())
    assert sample.waiting is None
    assert "lmdeploy:num_api_requests_waiting is nan" in sample.unknown["waiting"]


# --- Ray


def queued(n: object, handle: str = "h", worker: str = "proxy", deployment: str = "LLM") -> str:
    labels = f'WorkerId="{worker}",application="app",deployment="{deployment}",handle="{handle}"'
    return f"ray_serve_deployment_queued_queries{{{labels}}} {n}"


def processing(n: object, worker: str = "r1", deployment: str = "LLM") -> str:
    labels = f'WorkerId="{worker}",application="app",deployment="{deployment}",replica="{worker}"'
    return f"ray_serve_replica_processing_queries{{{labels}}} {n}"


def in_ray(name: str, n: object, worker: str = "r1", separator: str = "_") -> str:
    return f'ray_vllm{separator}{name}{{ReplicaId="{worker}",WorkerId="{worker}",engine="0"}} {n}'


@pytest.mark.parametrize(
    ("lines", "waiting", "running"),
    [
        ([queued(3), processing(2), processing(2, "r2")], 3, 4),
        ([queued(3), queued(1, "h2", "other proxy"), processing(2)], 4, 2),
        (  # the ingress forwards its seven requests: three are queued and four run further down
            [
                *(queued(0, deployment="Ingress"), processing(7, "ingress", "Ingress")),
                *(queued(3, worker="ingress"), processing(2), processing(2, "r2")),
            ],
            3,
            4,
        ),
        (  # vLLM's own numbers are there: what its replica processes is not counted again
            [queued(3), processing(5), in_ray("num_requests_waiting", 1), in_ray("num_requests_running", 4)],
            3 + 1,
            4,
        ),
        ([in_ray("num_requests_waiting", 1), in_ray("num_requests_running", 4)], 1, 4),
        ([in_ray("num_requests_waiting", 1, separator=":"), in_ray("num_requests_running", 4, separator=":")], 1, 4),
        (
            [
                *(in_ray("num_requests_waiting", 1), in_ray("num_requests_running", 4)),
                *(in_ray("num_requests_waiting", 1, "r2"), in_ray("num_requests_running", 4, "r2")),
            ],
            2,
            8,
        ),
    ],
)  # fmt: skip
def test_every_request_in_ray_is_counted_once(lines: list[str], waiting: float, running: float) -> None:
    sample = read_page(page(*lines))
    assert (sample.engine, sample.waiting, sample.running) == ("ray", waiting, running)


@pytest.mark.parametrize(
    ("lines", "unknown"),
    [
        ([processing(2)], {"waiting"}),
        ([queued(3)], {"running"}),
        (["# TYPE ray_serve_deployment_queued_queries gauge"], {"waiting", "running"}),
        (["ray_serve_num_ongoing_http_requests 4"], {"waiting", "running"}),
        ([queued("NaN"), processing(2)], {"waiting"}),
        ([queued("x"), processing(2)], {"waiting"}),
        ([processing(2), in_ray("num_requests_waiting", 1), in_ray("num_requests_running", 4)], {"waiting"}),
        ([queued(1), in_ray("prompt_tokens_total", 9)], {"waiting", "running"}),
    ],
)
def test_a_gauge_that_is_missing_in_ray_is_unknown_not_zero(lines: list[str], unknown: set[str]) -> None:
    sample = read_page(page(*lines))
    assert {name for name in ("waiting", "running") if getattr(sample, name) is None} == unknown
    assert unknown <= set(sample.unknown)


@pytest.mark.parametrize(
    ("file", "waiting", "running"),
    [
        ("ray-2.49.2-agent-8080.txt", 3, 4),
        ("ray-2.60.0-agent-8080.txt", 3, 4),
        ("ray-2.60-serve-loaded.prom", 6, 10),
        ("ray-2.60-serve-idle.prom", 0, 0),
    ],
)
def test_recorded_ray_pages_count_every_request_once(file: str, waiting: float, running: float) -> None:
    sample = read_page((METRICS / file).read_bytes())
    assert (sample.engine, sample.waiting, sample.running) == ("ray", waiting, running)


def test_only_ray_lets_a_missing_gauge_be_held() -> None:
    assert {name: each.holds_s for name, each in ENGINES.items() if each.holds_s} == {"ray": 20.0}


# --- all of them


def test_every_dialect_uses_the_fixed_words() -> None:
    for dialect in ENGINES.values():
        assert set(dialect.counters) <= set(COUNTERS)
        assert set(dialect.histograms) <= set(HISTOGRAMS)


def test_a_filtered_page_with_the_wanted_names_says_the_same_as_the_full_page() -> None:
    full = (METRICS / "vllm-metrics-loaded.txt").read_bytes()
    names = tuple(name.encode() for name in wanted_names("vllm"))
    filtered = b"\n".join(
        line for line in full.split(b"\n") if line.partition(b"{")[0] in names or line.startswith(b"# TYPE")
    )
    assert len(filtered) < len(full) / 2
    assert read_page(filtered) == read_page(full)


def test_wanted_names_have_both_spellings_of_a_colon_and_all_engines_unless_one_is_named() -> None:
    assert {"vllm:num_requests_waiting", "vllm_num_requests_waiting"} <= set(wanted_names("vllm"))
    assert {name for engine in ENGINES for name in wanted_names(engine)} == set(wanted_names())


# --- GPUs


FINE, COARSE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_GPU_UTIL"
BLANK = "9223372036854775794"
P = ("ns", "p")


def gpu(value: object, metric: str = COARSE, uuid: str = "a", **labels: str) -> str:
    """A GPU of the pod ns/p, unless labels say otherwise."""
    labels = labels or {"namespace": "ns", "pod": "p"}
    terms = ",".join(f'{name}="{text}"' for name, text in labels.items())
    return f'{metric}{{gpu="0",UUID="{uuid}",{terms}}} {value}'


@pytest.mark.parametrize(
    ("lines", "used"),
    [
        ([gpu(40)], {P: 0.4}),
        ([gpu(0.4, FINE)], {P: 0.4}),
        ([gpu(100), gpu(100, uuid="b"), gpu(40, uuid="c")], {P: 0.8}),
        ([gpu(99), gpu(0.7, FINE)], {P: 0.7}),
        ([gpu(99), gpu(BLANK, FINE)], {P: 0.99}),
        ([gpu(40, pod_namespace="ns", pod_name="p")], {P: 0.4}),
        ([gpu(40, namespace="gpu", pod="exporter", exported_namespace="ns", exported_pod="p")], {P: 0.4}),
        ([gpu(40), gpu(50, namespace="ns", pod="q")], {P: 0.4, ("ns", "q"): 0.5}),
        ([f"# TYPE {COARSE} gauge", gpu(40, namespace="", pod="")], {}),
        ([gpu(BLANK)], {}),
        ([gpu(BLANK), gpu(40, uuid="b")], {P: 0.4}),
        ([gpu("NaN"), gpu(-1, namespace="ns", pod="q")], {}),
    ],
)
def test_gpu_utilisation_is_told_by_pod(lines: list[str], used: dict[tuple[str, str], float]) -> None:
    assert read_gpu_utilization(page(*lines)) == pytest.approx(used)


def test_a_page_without_gpu_utilisation_is_an_error() -> None:
    with pytest.raises(PageError, match="DCGM_FI_DEV_GPU_UTIL"):
        read_gpu_utilization((METRICS / "dcgm-exporter.txt").read_bytes())
