"""The simulated page is the real vLLM 0.32 page in everything but its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.utils import floatToGoString

from inference.simulated import TIME_BOUND, Engine, Page, Request
from inference.simulated.page import number

RECORDED = Path(__file__).parents[2] / "data" / "metrics"
# The engine of the recorded pages, as far as a page's form shows it: bounds of token histograms follow from the length.
TINY = replace(TIME_BOUND, max_model_len=512, max_num_seqs=4)


def loaded_engine() -> Engine:
    engine = Engine(TINY)
    for count in range(64):
        engine.submit(Request(0.0, 16 + count, 200, cached_tokens=16), 0.0)
    engine.advance(10.0)
    assert (engine.running, engine.waiting) == (4, 64 - 4 - engine.metrics.finished)
    assert engine.metrics.finished > 0
    return engine


def form(page: str) -> list[str]:
    """The lines of a page without the values, and without what tells one machine or cache size from another."""
    without_value = re.sub(r"^([^#].*) \S+$", r"\1", page, flags=re.MULTILINE)
    own = re.compile(r"^(?:vllm:cache_config_info|python_info){.*", re.MULTILINE)
    return own.sub(lambda line: re.sub(r'="[^"]*"', "", line[0]), without_value).splitlines()


def values(page: str) -> dict[str, float]:
    """Sample with its labels → value."""
    rows = [line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#")]
    return {sample: float(value) for sample, value in rows}


def families(page: str) -> Iterator[str]:
    """Each family's lines, as one text; in multi-process mode their order is that of no two runs."""
    return iter(re.split(r"^(?=# HELP )", page, flags=re.MULTILINE)[1:])


@pytest.mark.parametrize(("engine", "recorded"), [(Engine(TINY), "fresh"), (loaded_engine(), "loaded")])
def test_page_has_the_lines_of_the_real_page_in_its_order(engine: Engine, recorded: str) -> None:
    page = Page(engine, model_name="tiny").render()
    assert form(page) == form((RECORDED / f"vllm-metrics-{recorded}.txt").read_text())


@pytest.mark.parametrize(("engine", "recorded"), [(Engine(TINY), "fresh"), (loaded_engine(), "loaded")])
def test_page_in_multi_process_mode_has_the_families_and_samples_of_the_real_one(engine: Engine, recorded: str) -> None:
    page = Page(engine, model_name="tiny", multi_process=True).render()
    real = (RECORDED / f"vllm-metrics-api2-{recorded}.txt").read_text()
    assert sorted(form(page)) == sorted(form(real))
    ours = {family.split()[2]: sorted(form(family)) for family in families(page)}
    theirs = {family.split()[2]: sorted(form(family)) for family in families(real)}
    assert ours == theirs


def test_page_says_what_the_engine_counted() -> None:
    engine = loaded_engine()
    metrics = engine.metrics
    said = values(Page(engine, model_name="tiny", started_unix_s=1.75e9).render())
    own = '{engine="0",model_name="tiny"}'
    assert said[f"vllm:num_requests_running{own}"] == 4
    assert said[f"vllm:num_requests_waiting{own}"] == engine.waiting
    assert said['vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="capacity"}'] == engine.waiting
    assert said[f"vllm:kv_cache_usage_perc{own}"] == engine.kv_cache_usage
    assert said[f"vllm:generation_tokens_total{own}"] == metrics.generation_tokens
    assert said[f"vllm:prompt_tokens_total{own}"] == metrics.prompt_tokens
    assert said['vllm:prompt_tokens_by_source_total{engine="0",model_name="tiny",source="local_cache_hit"}'] > 0
    assert said['vllm:request_success_total{engine="0",finished_reason="length",model_name="tiny"}'] == metrics.finished
    assert said[f"vllm:time_to_first_token_seconds_count{own}"] == metrics.time_to_first_token.count
    assert said[f"vllm:time_to_first_token_seconds_sum{own}"] == metrics.time_to_first_token.total
    assert said["process_start_time_seconds"] == 1.75e9
    assert said[f"vllm:generation_tokens_created{own}"] == 1.75e9


def test_buckets_are_cumulative_and_end_with_the_count() -> None:
    page = Page(loaded_engine(), model_name="tiny").render()
    histograms = [family for family in text_string_to_metric_families(page) if family.type == "histogram"]
    assert len(histograms) == 18
    for family in histograms:
        buckets = [sample.value for sample in family.samples if sample.name.endswith("_bucket")]
        (count,) = (sample.value for sample in family.samples if sample.name.endswith("_count"))
        assert buckets == sorted(buckets)
        assert buckets[-1] == count > 0


def test_cache_config_carries_the_profiles_sizes() -> None:
    page = Page(Engine(TIME_BOUND), model_name="tiny").render()
    (family,) = (f for f in text_string_to_metric_families(page) if f.name == "vllm:cache_config_info")
    labels = family.samples[0].labels
    assert labels["num_gpu_blocks"] == str(TIME_BOUND.num_gpu_blocks)
    assert labels["block_size"] == "16"
    assert labels["kv_cache_size_tokens"] == str(TIME_BOUND.num_gpu_blocks * 16)


def test_a_model_name_with_odd_characters_is_escaped() -> None:
    name = 'org\\model "7B"\n'
    page = Page(Engine(TINY), model_name=name).render()
    (family,) = (f for f in text_string_to_metric_families(page) if f.name == "vllm:num_requests_running")
    assert family.samples[0].labels == {"engine": "0", "model_name": name}


def test_a_filtered_read_gives_only_the_named_samples_with_their_heads() -> None:
    page = Page(loaded_engine(), model_name="tiny")
    names = ["vllm:num_requests_waiting", "vllm:time_to_first_token_seconds_bucket", "no_such_family"]
    whole, some = page.render(), page.render_only(names)
    wanted = ("vllm:num_requests_waiting{", "vllm:time_to_first_token_seconds_bucket{")
    heads = ("vllm:num_requests_waiting ", "vllm:time_to_first_token_seconds ")
    expected = [
        line
        for line in whole.splitlines()
        if line.startswith(wanted) or (line.startswith("#") and line[7:].startswith(heads))
    ]
    assert some.splitlines() == expected
    assert len(expected) == 2 + 1 + 2 + 23


def test_a_filtered_read_in_multi_process_mode_is_empty() -> None:
    page = Page(loaded_engine(), model_name="tiny", multi_process=True)
    assert page.render_only(["vllm:num_requests_waiting"]) == ""


@given(st.floats(0, allow_infinity=False))
def test_numbers_are_written_as_prometheus_client_writes_them(value: float) -> None:
    assert number(value) == floatToGoString(value)
