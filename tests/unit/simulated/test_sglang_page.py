"""The simulated SGLang page says what the simulated vLLM page says of the same engine, in SGLang's words."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from inference.simulated import TIME_BOUND, Engine, Page, Request, SglangPage
from scaler.exposition import read_page


@pytest.fixture
def engine() -> Engine:
    """One whose requests have partly ended, partly run and partly wait."""
    engine = Engine(TIME_BOUND)
    for count in range(400):
        engine.submit(Request(0.0, 1000, 10 + count), 0.0)
    engine.advance(20.0)
    assert min(engine.running, engine.waiting, engine.metrics.finished) > 0
    return engine


def test_a_scaler_reads_the_same_numbers_on_it_as_on_vllms(engine: Engine) -> None:
    said = read_page(SglangPage(engine, model_name="tiny").render().encode())
    vllms = read_page(Page(engine, model_name="tiny").render().encode())
    assert (said.engine, dict(said.unknown)) == ("sglang", {})
    assert (said.waiting, said.running, said.kv_cache_usage) == (vllms.waiting, vllms.running, vllms.kv_cache_usage)
    for name in ("prompt_tokens", "generation_tokens", "requests_finished"):
        assert said.counters[name] == vllms.counters[name] > 0
    for name in ("ttft", "itl", "e2e", "queue_time"):
        assert said.histograms[name] == vllms.histograms[name]


def test_a_fresh_engine_is_idle_and_not_unknown() -> None:
    said = read_page(SglangPage(Engine(TIME_BOUND), model_name="tiny").render().encode())
    assert (said.waiting, said.running, said.kv_cache_usage) == (0, 0, 0)


def test_a_model_name_with_odd_characters_is_escaped(engine: Engine) -> None:
    name = 'a "b"\\c\nd'
    page = SglangPage(engine, model_name=name).render()
    samples = [sample for family in text_string_to_metric_families(page) for sample in family.samples]
    assert {sample.labels["model_name"] for sample in samples} == {name}


def test_a_filtered_read_is_empty(engine: Engine) -> None:
    assert SglangPage(engine, model_name="tiny").render_only(["sglang:num_queue_reqs"]) == ""
