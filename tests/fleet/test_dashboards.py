"""Dashboard and alerts: a real Prometheus scrapes the demo, and each expression finds there what it asks for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster import toolchain
from tests.cluster.programs import Ports, Program, stop_all, wait_for
from tests.cluster.prometheus import Prometheus
from tests.protocol.process import COMMAND

pytestmark = pytest.mark.toolchain

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "k8s" / "dashboards"
BOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text())
RULES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"][0]["rules"]
RUNBOOK = "docs/alerts.md"
CASES = ROOT / "tests" / "data" / "alerts.yaml"

PANELS = {panel["title"]: panel for panel in BOARD["panels"] if panel["type"] != "row"}
QUERIES = [
    pytest.param(target["expr"], target["legendFormat"], id=f"{title}-{target['refId']}")
    for title, panel in PANELS.items()
    for target in panel["targets"]
]
GRAFANAS = {"$namespace": ".*", "$scaled_object": ".*", "$__rate_interval": "10s"}
"""What Grafana puts in the place of its variables; for the window, what suits a scrape each second."""
SOON_S = 90.0


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It scrapes the demo every second, with the rules loaded."""
    folder, ports = tmp_path_factory.mktemp("dashboards"), Ports()
    demo = Program(
        "demo",
        [*COMMAND, "demo", "--headless", "--for", "30m"],
        folder / "demo.log",
        {"PYTHONPATH": os.pathsep.join(sys.path), "NO_COLOR": "1"},
    )
    demo.start()
    try:
        page = wait_for(
            "the demo's address",
            lambda: re.search(r"live page: +http://(\S+)/", demo.log.read_text()),
            timeout_s=SOON_S,
            programs=[demo],
        )
        configuration = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(FOLDER / "alerts.yaml")],
            "scrape_configs": [
                {"job_name": "vllm-scaler", "honor_labels": True, "static_configs": [{"targets": [page[1]]}]}
            ],
        }
        one = Prometheus(folder / "prometheus", ports.reserve("prometheus"), configuration)
        server = Program("prometheus", one.command, folder / "prometheus.log")
        server.start()
        try:
            wait_for("a ready Prometheus", one.is_ready, timeout_s=SOON_S, programs=[demo, server])
            yield one
        finally:
            stop_all([server])
    finally:
        stop_all([demo])
        ports.release()


def found(prometheus: Prometheus, query: str) -> list[dict[str, Any]]:
    """The series of a query, once there are any with a value."""

    def look() -> list[dict[str, Any]]:
        return [series for series in prometheus.series(query) if series["value"][1] != "NaN"]

    return wait_for(f"data for {query}", look, timeout_s=SOON_S)


def filled(text: str) -> str:
    """A query as Grafana sends it."""
    for variable, value in GRAFANAS.items():
        text = text.replace(variable, value)
    assert "$" not in text
    return text


@pytest.mark.parametrize(("expression", "legend"), QUERIES)
def test_each_query_of_the_dashboard_has_data_and_its_legend_names_labels_that_are_there(
    prometheus: Prometheus, expression: str, legend: str
) -> None:
    labels = set(re.findall(r"\{\{(\w+)\}\}", legend))
    for series in found(prometheus, filled(expression)):
        assert labels <= series["metric"].keys()


def test_its_variables_offer_what_there_is(prometheus: Prometheus) -> None:
    offered = {}
    for variable in BOARD["templating"]["list"]:
        if variable["type"] == "query":
            query = filled(variable["query"]["query"])
            matched = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
            assert matched
            offered[variable["name"]] = prometheus.ask(f"label/{matched[2]}/values", **{"match[]": matched[1]})
    assert offered == {"namespace": ["demo"], "scaled_object": ["llama"]}


def test_every_panel_asks_the_chosen_data_source_and_says_what_it_shows() -> None:
    assert {variable["type"] for variable in BOARD["templating"]["list"]} == {"datasource", "query"}
    for panel in PANELS.values():
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        for asked in (panel, *panel["targets"]):
            assert asked["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_panels_have_names_of_their_own_and_lie_side_by_side() -> None:
    assert len(PANELS) == sum(panel["type"] != "row" for panel in BOARD["panels"])
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + i, place["y"] + j) for i in range(place["w"]) for j in range(place["h"])}
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_alert_asks_for_what_the_scaler_shows(prometheus: Prometheus, rule: dict[str, Any]) -> None:
    asked = set(re.findall(r"\bvllm_scaler_\w+", rule["expr"]))
    assert asked
    wait_for(f"a page with {asked}", lambda: asked <= prometheus.ask("metadata").keys(), timeout_s=SOON_S)

    def health() -> str:
        (group,) = prometheus.ask("rules")["groups"]
        (loaded,) = (each for each in group["rules"] if each["name"] == rule["alert"])
        state: str = loaded["health"] if loaded["health"] != "unknown" else ""
        return state

    assert wait_for(f"an evaluation of {rule['alert']}", health, timeout_s=SOON_S) == "ok"


@pytest.mark.parametrize("words", [("check", "rules", FOLDER / "alerts.yaml"), ("test", "rules", CASES)], ids=str)
def test_alerts_fire_when_they_should_and_only_then(words: tuple[str | Path, ...]) -> None:
    command = [toolchain.binary("prometheus", "promtool"), *words]
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert told.returncode == 0, told.stdout + told.stderr


def test_every_alert_has_a_case_in_which_it_fires() -> None:
    cases = CASES.read_text()
    for rule in RULES:
        assert re.search(rf'alertname(="|: ){rule["alert"]}\b', cases)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_alert_says_what_it_means_and_where_help_is(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning")
    summary, description, runbook = (rule["annotations"][key] for key in ("summary", "description", "runbook_url"))
    assert len(summary) < len(description)
    file, _, anchor = runbook.partition("#")
    assert file == RUNBOOK
    assert anchor == rule["alert"].lower()
    headings = re.findall(r"^### (\w+)$", (ROOT / file).read_text(), re.MULTILINE)
    assert rule["alert"] in headings
