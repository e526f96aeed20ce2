"""`vllm-scaler read`: what it prints, and how it ends."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from scaler.cli.read import read
from scaler.exposition import ENGINES
from scaler.exposition.sample import COUNTERS, HISTOGRAMS
from tests.unit.exposition.reference import METRICS

LOADED = METRICS / "vllm-metrics-loaded.txt"
TWO_ENGINES = METRICS / "vllm-metrics-dp2-loaded.txt"


def run(*words: object, stdin: bytes = b"") -> Result:
    app = typer.Typer()
    app.command()(read)
    return CliRunner().invoke(app, [str(word) for word in words], input=stdin)


def told(*words: object, stdin: bytes = b"") -> dict:
    result = run(*words, "--json", stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@contextmanager
def served(body: bytes, status: int = 200) -> Iterator[str]:
    """An address that answers every GET alike."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_json_tells_load_counters_latencies_and_the_same_for_each_engine() -> None:
    page = told(TWO_ENGINES)
    assert page["engine"] == "vllm"
    assert (page["waiting"], page["running"], page["asleep"], page["unknown"]) == (52, 8, False, {})
    assert page["kv_cache_usage"] == pytest.approx(0.00036623329060614385)
    assert [page["engines"][label]["waiting"] for label in ("0", "1")] == [24, 28]
    assert set(page["counters"]) == set(COUNTERS)
    assert set(page["histograms"]) == set(HISTOGRAMS)
    ttft = page["histograms"]["ttft"]
    assert ttft["count"] == ttft["buckets"]["+Inf"] == 12
    assert ttft["p50"] < ttft["p95"]


def test_json_has_null_for_what_is_unknown_and_says_why() -> None:
    page = told("-", stdin=b'vllm:num_requests_waiting{engine="0"} NaN\nvllm:num_requests_running{engine="0"} 2\n')
    assert (page["waiting"], page["running"], page["waiting_deferred"]) == (None, 2, None)
    assert page["unknown"]["waiting"] == "vllm:num_requests_waiting is nan, which is no number of requests"
    assert page["engines"]["0"]["unknown"] == page["unknown"]


def test_an_empty_histogram_has_no_quantiles() -> None:
    ttft = told(METRICS / "vllm-metrics-fresh.txt")["histograms"]["ttft"]
    assert (ttft["count"], ttft["p50"], ttft["p95"]) == (0, None, None)


@pytest.mark.parametrize("path", [LOADED, TWO_ENGINES, METRICS / "ray-2.60.0-agent-8080.txt", METRICS / "tgi.txt"])
def test_a_file_stdin_and_an_address_tell_the_same(path) -> None:
    page = path.read_bytes()
    with served(page) as url:
        assert told(path) == told("-", stdin=page) == told(url)


def test_people_see_every_value_that_the_page_has_and_the_reason_for_every_other() -> None:
    shown = run("-", stdin=LOADED.read_bytes().replace(b"vllm:num_requests_running{", b"gone{")).stdout
    lines = {line.split()[0]: line.split()[1:] for line in shown.splitlines()}
    assert lines["vllm:"][:2] == ["a", "page"]
    assert lines["waiting"] == ["44"]
    assert lines["kv_cache_usage"] == ["0.02%"]
    assert lines["generation_tokens"] == ["106,041"]
    assert lines["ttft"][:2] == ["276,", "p50"]
    assert "running is unknown" not in shown  # declared, and set by nobody: idle
    shown = run("-", stdin=b'vllm:num_requests_waiting{engine="0"} 3\n').stdout
    assert "running is unknown: no vllm:num_requests_running on the page" in shown


def test_people_see_each_engine_in_a_line_of_its_own() -> None:
    lines = [line.split() for line in run(TWO_ENGINES).stdout.splitlines()]
    assert ["engine", "waiting", "waiting_deferred", "running", "kv_cache_usage"] in lines
    assert ["1", "28", "0", "4", "0.05%"] in lines


def test_a_named_engine_is_taken_at_its_word() -> None:
    assert told(LOADED, "--engine", "vllm") == told(LOADED)
    result = run(LOADED, "--engine", "sglang")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "no page of sglang: it is one of vllm" in result.stderr


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (b"<html><title>404 Not Found</title>", "an HTML page"),
        (b"", "empty"),
        (b"http_requests_total 3\n", "--disable-log-stats"),
        ((METRICS / "dcgm-exporter.txt").read_bytes(), "DCGM"),
    ],
)
def test_a_page_of_no_engine_ends_with_3_and_one_line(page: bytes, words: str) -> None:
    result = run("-", stdin=page)
    assert (result.exit_code, result.stdout) == (3, "")
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (503, b'{"error":"The model is currently scaling."}', 'HTTP 503: a JSON answer instead of metrics: "The model'),
        (404, b"404 page not found", "HTTP 404: no metrics page"),
        (500, b'vllm:num_requests_waiting{engine="0"} 3\n', "HTTP 500: the answer reads like a page of vllm"),
    ],
)
def test_an_answer_that_is_no_success_is_no_engines_page(status: int, body: bytes, words: str) -> None:
    with served(body, status) as url:
        result = run(url)
    assert (result.exit_code, result.stdout) == (3, "")
    assert words in result.stderr


def test_an_answer_of_another_path_asks_for_the_usual_one() -> None:
    with served(b'{"detail": "Not Found"}', 404) as url:
        base = url.removesuffix("/metrics")
        assert run(base).stderr.endswith(f'"Not Found"; is it {base}/metrics?\n')
        assert run(f"{base}/").stderr.endswith(f"; is it {base}/metrics?\n")
        assert "is it" not in run(url).stderr


def test_an_address_that_speaks_no_tls_is_told_so() -> None:
    with served(b"", 200) as url:
        secure = url.replace("http:", "https:")
        result = run(secure)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"{secure} cannot be reached: it speaks no TLS; right is http://…\n"


def unreachable() -> str:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{held.getsockname()[1]}/metrics"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no-such-file"], "no-such-file cannot be read: No such file or directory"),
        (["10.0.0.7:8000"], "No such file or directory; for a server right is http://10.0.0.7:8000/metrics"),
        (["llama.prod:8000/metrics"], "; for a server right is http://llama.prod:8000/metrics"),
        ([str(METRICS)], "cannot be read: Is a directory"),
        ([unreachable()], "cannot be reached"),
        (["http://"], "'http://' is no address; right is http://10.0.0.7:8000/metrics"),
        (["http://127.0.0.1:99999/"], "is no address"),
        (["http://127.0.0.1:0/"], "is no address"),
        (["http://127.0.0.1:http/"], "is no address"),
        (["http://[::1"], "is no address"),
        (["http://[zz]/"], "is no address"),
        (["http://user:pw@/"], "is no address"),
        (["http:///metrics"], "is no address"),
        (["ftp://127.0.0.1/metrics"], "is no address"),
        ([f"http://{'a' * 300}.invalid/"], "is no address"),
        ([f"http://{'a' * 70_000}/"], "is no address"),
        (["http://a..b/"], "is no address"),
        ([unreachable().replace("http:", "HTTPS:")], "cannot be reached: connection refused"),
        ([""], "'' cannot be read: Is a directory"),
        (["a\0b"], "cannot be read: embedded null byte"),
        (["a" * 5000], "cannot be read: File name too long"),
        ([str(LOADED), "--engine", "vlm"], f"no engine 'vlm' is known; known are {', '.join(ENGINES)}"),
    ],
)
def test_what_cannot_be_had_ends_with_2_and_one_line(words: list[str], said: str) -> None:
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert len(result.stderr) < 300


def test_an_endless_body_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scaler.cli.files.MOST_BYTES", 1 << 20)
    monkeypatch.setattr("scaler.cli.read.MOST_BYTES", 1 << 20)
    for words, stdin in ((["-"], bytes(2 << 20)), (["{url}"], b"")):
        with served(bytes(2 << 20)) as url:
            result = run(*(word.format(url=url) for word in words), stdin=stdin)
        assert result.exit_code == 2
        assert "more than 1 MB" in result.stderr
