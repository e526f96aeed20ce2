"""The tables of `make backtest`: the verdict follows from the numbers, and the page has room for all of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.policies import contestants, page, tables, tuning, verdict
from benchmarks.policies.cache import Cache
from benchmarks.policies.code import fingerprint
from benchmarks.policies.grid import CLIFF_S, Grid, Place, Standing
from benchmarks.policies.playing import Job, play
from benchmarks.policies.runs import Work, carry_out, key_of, plan
from benchmarks.policies.scenes import AT_REST_S, SCENES, START_UPS_S, TRACES, TUNING_SEEDS, VERDICT_SEEDS, Part
from scaler.backtest.rivals import RIVALS
from scaler.backtest.scores import Numbers
from scaler.policy.presets import PRESETS

PARTS: tuple[Part, Part] = ("tuning", "verdict")
RAMP, WAVE, PULSE, FLAT = (SCENES[name] for name in ("ramp-kv", "wave", "pulse", "mooncake"))


def numbers(attained: float, replicas: float, answered_s: float | None = 1.0, settled: float = 1.0) -> Numbers:
    shares = {"ttft": attained, "tpot": 1.0, "both": attained}
    return {
        "attainment": shares,
        "attainment_feasible": shares,
        "ttft": {"p50": 0.2, "p95": 1.0, "p99": 2.0},
        "average_replicas": replicas,
        "gpu_hours": replicas / 2,
        "scale_events": 4,
        "wasted_starts": 0,
        "settled": settled,
        "answered_s": answered_s,
    }


def standing(name: str, attained: float, replicas: float, *, seeds: int = 2, **more: float | None) -> Standing:
    return Standing(name, [numbers(attained, replicas, **more) for _ in range(seeds)])


FIXED = [standing("static-4", 0.5, 4.0), standing("static-6", 0.9, 6.0), standing("static-8", 1.0, 8.0)]
KNATIVE, KAITO, ORACLE = "rival:knative", "rival:kaito", "oracle"


def aims_of(place: Place, ours: Standing, *others: Standing) -> dict[str, verdict.Aim]:
    """The aims by the word that tells them apart."""
    words = {"ramp": "ramp", "rival": "rival", "fixed": "fixed", "cliff": "cliff", "pulse": "pulse"}
    found = verdict.aims({place: [ours, *others, *FIXED]})
    return {word: aim for word in words for aim in found if word in aim.text}


@pytest.mark.parametrize(
    ("attained", "replicas", "missed_by"),
    [(0.995, 5.4, ""), (0.98, 5.4, "1.0 points"), (0.995, 6.0, "0.50 replicas"), (0.97, 5.75, "2.0 points, 0.25 rep")],
)
def test_the_ramp_is_held_only_by_enough_attainment_at_few_enough_replicas(
    attained: float, replicas: float, missed_by: str
) -> None:
    aim = aims_of(Place(RAMP, 100.0), standing("adaptive", attained, replicas))["ramp"]
    assert aim.missed_by.startswith(missed_by)
    assert aim.held == (missed_by == "")


@pytest.mark.parametrize(
    ("rival", "held"),
    [
        ((0.99, 4.9), False),  # dearer nowhere, better
        ((0.98, 4.5), False),  # as good, cheaper
        ((0.98, 5.0), True),  # the very same
        ((0.97, 4.0), True),  # cheaper and worse
        ((1.00, 5.1), True),  # better and dearer
    ],
)
def test_we_are_off_the_front_where_a_rival_gives_as_much_for_less(rival: tuple[float, float], held: bool) -> None:
    aim = aims_of(Place(WAVE, 60.0), standing("adaptive", 0.98, 5.0), standing(KNATIVE, *rival))["rival"]
    assert aim.held == held
    assert held or "knative" in aim.missed_by


def test_neither_the_clairvoyant_nor_our_own_presets_nor_fixed_counts_are_rivals() -> None:
    better = [standing(name, 1.0, 1.0) for name in (ORACLE, "ray-serve", "static-5")]
    assert aims_of(Place(WAVE, 60.0), standing("adaptive", 0.9, 5.0), *better)["rival"].held


def test_who_played_fewer_seeds_is_compared_on_those() -> None:
    ours = Standing("adaptive", [numbers(0.90, 5.0), numbers(0.90, 5.0), numbers(1.0, 5.0), numbers(1.0, 5.0)])
    rival = standing(KNATIVE, 0.93, 4.9, seeds=2)
    assert not aims_of(Place(WAVE, 60.0), ours, rival)["rival"].held


@pytest.mark.parametrize(
    ("attained", "cost"), [(0.4, 2.0), (0.5, 2.0), (0.7, 2.5), (0.9, 3.0), (0.95, 3.5), (1.0, 4.0), (1.01, None)]
)
def test_fixed_counts_are_a_line_of_attainment_over_cost(attained: float, cost: float | None) -> None:
    assert verdict.fixed_cost(FIXED, attained) == (None if cost is None else pytest.approx(cost))


@pytest.mark.parametrize(("replicas", "held"), [(4.7, True), (4.9, False)])
def test_where_the_load_varies_we_are_a_fifth_cheaper_than_fixed_counts(replicas: float, held: bool) -> None:
    assert aims_of(Place(WAVE, 60.0), standing("adaptive", 0.9, replicas))["fixed"].held == held


def test_where_the_load_is_flat_nobody_has_to_beat_fixed_counts() -> None:
    assert "fixed" not in aims_of(Place(FLAT, 60.0), standing("adaptive", 0.9, 6.0))


@pytest.mark.parametrize(("answered_s", "held"), [(1.0, True), (3.0, True), (9.0, False), (None, False)])
def test_a_pulse_is_answered_soon_or_the_aim_is_missed(answered_s: float | None, held: bool) -> None:
    aims = aims_of(Place(PULSE, 60.0), standing("adaptive", 0.9, 3.0, answered_s=answered_s))
    assert aims["pulse"].held == held


@pytest.mark.parametrize(
    ("settled", "replicas", "held"), [(0.97, 6.0, True), (0.95, 5.0, False), (0.98, 6.4, False), (1.0, 4.0, True)]
)
def test_a_cliff_is_lost_attainment_or_a_price_for_it(settled: float, replicas: float, held: bool) -> None:
    near = {Place(WAVE, AT_REST_S): [standing("adaptive", 0.98, 5.0, settled=0.98)]}
    far = {Place(WAVE, CLIFF_S): [standing("adaptive", 0.9, replicas, settled=settled), *FIXED]}
    (cliff,) = [aim for aim in verdict.aims({**near, **far}) if "cliff" in aim.text]
    assert cliff.held == held


points = st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 20)), min_size=1, max_size=8)


@given(points)
def test_nobody_on_the_front_is_beaten_and_all_others_are(values: list[tuple[float, float]]) -> None:
    all_there = [standing(f"rival {i}", *value) for i, value in enumerate(values)]
    front = verdict.on_front(all_there)

    def beats(one: Standing, other: Standing) -> bool:
        mine, its = (one.attained, -one.gpu_hours), (other.attained, -other.gpu_hours)
        return mine != its and mine[0] >= its[0] and mine[1] >= its[1]

    best = {each.contestant for each in front}
    for each in all_there:
        assert (each.contestant in best) == (not any(beats(other, each) for other in all_there))


def test_the_clairvoyant_is_in_no_front_but_in_every_table() -> None:
    place, all_there = Place(WAVE, 60.0), [standing("adaptive", 0.9, 5.0), standing(ORACLE, 1.0, 1.0), *FIXED]
    assert ORACLE not in {each.contestant for each in verdict.on_front(all_there)}
    assert any(row[0] == ORACLE for row in tables.full(place, all_there).rows)
    assert any(row[0] == "● adaptive" for row in tables.full(place, all_there).rows)


def test_every_miss_has_a_line_that_says_by_how_much_and_why() -> None:
    missed = [standing("adaptive", 0.8, 7.0, answered_s=9.0), standing(KAITO, 0.9, 3.0), standing(ORACLE, 1.0, 2.0)]
    standings = {Place(PULSE, 60.0): [*missed, *FIXED]}
    summary, lines = tables.aims(standings), tables.misses(standings)
    assert sum(int(row[1]) - int(row[2]) for row in summary.rows) == len(lines.rows) == 3
    for row in lines.rows:
        assert all(row), row
        assert "clairvoyant reaches 100.0%" in row[-1]


def test_a_table_on_a_page_has_a_cell_for_each_column() -> None:
    place = Place(WAVE, 60.0)
    table = tables.full(place, [standing("adaptive", 0.9, 5.0, seeds=1), standing(KAITO, 0.5, 2.0), *FIXED])
    lines = table.markdown().splitlines()
    assert len(lines) == 2 + 5
    assert {line.count("|") for line in lines} == {len(table.columns) + 1}


def test_an_overview_has_every_contestant_and_start_up() -> None:
    there = [standing("adaptive", 0.9, 5.0), standing(f"{KNATIVE},target=12", 0.8, 4.0)]
    overview = tables.overview(WAVE, {Place(WAVE, start_up_s): there for start_up_s in START_UPS_S})
    assert overview.columns[1:] == tuple(f"{start_up_s:g} s" for start_up_s in START_UPS_S)
    assert [row[0] for row in overview.rows] == ["adaptive", "knative (tuned)"]
    assert overview.rows[0][1] == "90.0 @ 5.00"


# The grid


def test_what_is_tuned_on_is_never_judged_on() -> None:
    assert not set(VERDICT_SEEDS) & set(TUNING_SEEDS)
    assert len(VERDICT_SEEDS) >= 8
    assert {job.part for job in Grid(list(SCENES.values())).jobs()} == {"verdict"}
    assert {job.seed for job in Grid(list(SCENES.values())).jobs()} <= set(VERDICT_SEEDS)
    for scene in SCENES.values():
        if scene.recorded:
            first, second = ({each.output_tokens for each in scene.traffic(part).requests(1)[:40]} for part in PARTS)
            assert first != second


def test_every_scene_is_played_at_every_start_up_by_everybody() -> None:
    played = {(job.scene.name, job.start_up_s, job.contestant) for job in Grid(list(SCENES.values())).jobs()}
    for scene in SCENES.values():
        for start_up_s in START_UPS_S:
            for contestant in (*PRESETS, *contestants.AUTHORS, *contestants.statics(scene), ORACLE):
                assert (scene.name, start_up_s, contestant) in played


def test_our_policy_plays_every_verdict_seed_in_every_place() -> None:
    grid = Grid(list(SCENES.values()))
    seeds: dict[Place, list[int]] = {place: [] for place in (*grid.places(), *grid.asides())}
    for job in grid.jobs():
        if job.contestant == "adaptive":
            seeds[Place(job.scene, job.start_up_s)].append(job.seed)
    assert set(map(tuple, seeds.values())) == {VERDICT_SEEDS}


def test_tuned_settings_are_for_known_scenes_and_make_contenders() -> None:
    found = json.loads(contestants.TUNED.read_text()) if contestants.TUNED.exists() else {}
    assert set(found) <= set(SCENES)
    for scene in SCENES.values():
        for text in contestants.tuned(scene, 60.0):
            assert contestants.maker(text)
    assert set(tuning.CANDIDATES) <= set(RIVALS)


@pytest.mark.parametrize(
    ("tried", "chosen"),
    [
        ([(1, 1.0, 9.0), (2, 0.992, 5.0), (3, 0.90, 2.0)], 2),  # near enough, and cheaper
        ([(1, 0.80, 9.0), (2, 0.85, 9.5), (3, 0.10, 2.0)], 2),  # none is near: the most
        ([(1, 0.99, 5.0), (2, 1.00, 5.0)], 2),  # for the same, more
    ],
)
def test_an_owner_takes_the_cheapest_setting_that_attains_enough(
    tried: Sequence[tuple[float, float, float]], chosen: float
) -> None:
    assert tuning.choose([({"n": n}, attained, cost) for n, attained, cost in tried], 1.0) == {"n": chosen}


def test_a_search_of_one_scene_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "tuned.json"
    tuning.write({"wave": {"120": {"knative": {"target": 16}}}}, path)
    tuning.write({"pulse": {"120": {"knative": {"target": 6}}}}, path)
    found = json.loads(path.read_text())
    assert {scene: values["120"]["knative"]["target"] for scene, values in found.items()} == {"wave": 16, "pulse": 6}


# Runs and their cache


@pytest.fixture
def short() -> Job:
    return Job(SCENES["azure-code"], "tuning", 60.0, "static-2", 1)


def test_the_same_job_gives_the_same_numbers(short: Job) -> None:
    assert play(short) == play(short)


def test_what_was_played_is_not_played_again(tmp_path: Path, short: Job) -> None:
    store = Cache(tmp_path / "runs.sqlite")
    store.put(key_of(short), numbers(0.5, 2.0))
    work = plan([short], Cache(tmp_path / "runs.sqlite"))
    assert work.missing == []
    carry_out(work, store, processes=1, on_run=lambda: pytest.fail("nothing was to be played"))
    assert work[short] == numbers(0.5, 2.0)


def test_what_is_missing_is_played_in_other_processes_and_kept(tmp_path: Path, short: Job) -> None:
    store, done = Cache(tmp_path / "runs.sqlite"), []
    carry_out(plan([short], store), store, processes=1, on_run=lambda: done.append(1))
    assert len(done) == 1
    assert plan([short], store)[short] == json.loads(json.dumps(play(short)))


def test_a_run_depends_on_its_seed_scene_start_up_and_settings() -> None:
    base = Job(WAVE, "verdict", 60.0, KNATIVE, 1)
    others = [
        Job(PULSE, "verdict", 60.0, KNATIVE, 1),
        Job(WAVE, "tuning", 60.0, KNATIVE, 1),
        Job(WAVE, "verdict", 120.0, KNATIVE, 1),
        Job(WAVE, "verdict", 60.0, f"{KNATIVE},target=12", 1),
        Job(WAVE, "verdict", 60.0, KNATIVE, 2),
    ]
    keys = [key_of(job) for job in (base, *others)]
    assert len(set(keys)) == len(keys)
    assert key_of(Job(WAVE, "verdict", 60.0, f"{KNATIVE},target=70", 1)) == keys[0], "its authors' own value"


def test_a_fixed_count_does_not_depend_on_the_start_up() -> None:
    assert len({key_of(Job(WAVE, "verdict", start_up_s, "static-6", 1)) for start_up_s in START_UPS_S}) == 1


def test_rivals_do_not_depend_on_our_policy_but_we_do(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {text: contestants.depends_on(text) for text in ("adaptive", KNATIVE, "static-3", ORACLE)}
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + (b"#" if path.name == "ahead.py" else b""))
    changed = {text for text, before in texts.items() if contestants.depends_on(text) != before}
    assert changed == {"adaptive"}


def test_everybody_depends_on_the_plant(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {text: contestants.depends_on(text) for text in ("adaptive", KNATIVE, "static-3", ORACLE)}
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + (b"#" if path.name == "engine.py" else b""))
    assert all(contestants.depends_on(text) != before for text, before in texts.items())


def test_code_is_followed_through_imports_up_to_what_is_left_aside() -> None:
    whole = fingerprint(["scaler.backtest.rivals.kaito"])
    assert whole != fingerprint(["scaler.backtest.rivals.kaito"], without=["scaler.backtest.hpa"])
    assert whole == fingerprint(["scaler.backtest.rivals.kaito"], without=["scaler.cli*"])


# The page


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    parts = [f"{page.begin(part)}\nas it was\n{page.end(part)}" for part in page.PARTS]
    (tmp_path / "benchmarks.md").write_text("\n".join(["prose", *parts, "more"]))
    return tmp_path


def test_writing_replaces_what_is_between_the_markers_alone(docs: Path) -> None:
    page.write({"aims": "| new |"}, docs)
    page.write({"aims": "| newer |"}, docs)
    text = (docs / "benchmarks.md").read_text()
    assert text.startswith("prose\n")
    assert text.endswith("more")
    assert f"{page.begin('aims')}\n\n| newer |\n\n{page.end('aims')}" in text
    assert text.count("as it was") == len(page.PARTS) - 1


def test_a_page_without_markers_is_refused(tmp_path: Path) -> None:
    (tmp_path / "benchmarks.md").write_text("prose")
    with pytest.raises(ValueError, match="begin fronts"):
        page.write({"fronts": "new"}, tmp_path)


def test_what_is_published_has_everybody_in_every_place(docs: Path) -> None:
    grid = Grid([RAMP, PULSE])
    jobs = grid.jobs()
    work = Work({job: job.contestant for job in jobs}, {job.contestant: numbers(0.9, 5.0) for job in jobs})
    page.publish(tables.report(grid.standings(work)), docs)
    whole = (docs / "benchmarks.md").read_text()
    assert whole.count("as it was") == 1, "only the ablation is left as it was"
    for place in grid.places():
        details = (docs / "benchmarks" / f"{place.scene.name}.md").read_text()
        _, _, here = details.partition(f"## {place.scene.name}, start-up {place.start_up_s:g} s\n")
        lines = here.split("\n## ")[0].splitlines()
        cells = {line.split("|")[1].strip().removeprefix("● ") for line in lines if line.startswith("|")}
        everybody = set(map(contestants.label, contestants.everybody(place.scene, place.start_up_s)))
        assert everybody <= cells
        assert all(f"| {name} |" in whole for name in everybody)


def test_the_page_has_room_for_every_table_and_a_link_to_every_scene() -> None:
    text = (page.DOCS / "benchmarks.md").read_text()
    for part in page.PARTS:
        assert text.index(page.begin(part)) < text.index(page.end(part))
    for scene in SCENES:
        assert f"benchmarks/{scene}.md" in text


def test_recorded_traces_are_committed_with_their_licence() -> None:
    described = (TRACES / "README.md").read_text()
    for scene in SCENES.values():
        if scene.recorded:
            assert (TRACES / scene.trace).is_file()
            assert scene.trace in described
