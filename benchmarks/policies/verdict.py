"""Who is on the front, and where our policy misses its aims: all of it computed from what was played."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.policies.contestants import ADAPTIVE, ORACLE, OURS, fixed_count, label
from benchmarks.policies.grid import CLIFF_S, Place, Standing, Standings
from benchmarks.policies.scenes import AT_REST_S, swing
from scaler.backtest.scores import pareto

RAMP_ATTAINED, RAMP_REPLICAS, RAMP_START_UP_S = 0.99, 5.5, 100.0
CLIFF_POINTS, CLIFF_COST = 2.0, 1.25
STATIC_SAVING, LARGE_SWING = 0.20, 2.0
PULSE_S = 3.0
"""Two seconds in which the pulse rises, and one tick."""
_RAMP = f"≥ {RAMP_ATTAINED:.0%} at ≤ {RAMP_REPLICAS} replicas on llm-d's ramp, start-up {RAMP_START_UP_S:g} s"
_FRONT = "no rival attains as much for less"
_SAVING = (
    f"≥ {STATIC_SAVING:.0%} cheaper than fixed counts that attain as much, if the load varies {LARGE_SWING:g} times"
)
_CLIFF = (
    f"no cliff: from {AT_REST_S:g} to {CLIFF_S:g} s start-up ≤ {CLIFF_POINTS:g} points once the first one is over, "
    f"and ≤ {CLIFF_COST - 1:.0%} more GPU-hours"
)
_PULSE = "a pulse is answered in the first tick after it"


@dataclass(frozen=True, slots=True)
class Aim:
    """What our policy should reach in a place, and what it reached."""

    text: str
    place: Place
    measured: str
    missed_by: str
    """Empty where it is held."""

    @property
    def held(self) -> bool:
        """Whether it was reached."""
        return not self.missed_by


def on_front(standings: Sequence[Standing]) -> list[Standing]:
    """Return those of one place of whom nobody attains as much for less, or more for as much; without the oracle."""
    mortal = _comparable([each for each in standings if each.contestant != ORACLE])
    flags = pareto([(each.attained, each.gpu_hours) for each in mortal])
    return [each for each, best in zip(mortal, flags, strict=True) if best]


def rivals(standings: Sequence[Standing]) -> list[Standing]:
    """Return the other rules of one place: neither ours nor the oracle nor fixed counts."""
    return [
        each for each in standings if each.contestant not in {*OURS, ORACLE} and fixed_count(each.contestant) is None
    ]


def beaten_by(standings: Sequence[Standing]) -> tuple[Standing, Standing] | None:
    """Return our policy and the rival that attains most of those who attain as much for no more; None without one."""
    ours, *others = _comparable([adaptive(standings), *rivals(standings)])
    better = [
        each
        for each in others
        if each.attained >= ours.attained
        and each.gpu_hours <= ours.gpu_hours
        and (each.attained, each.gpu_hours) != (ours.attained, ours.gpu_hours)
    ]
    best = max(better, key=lambda each: (each.attained, -each.gpu_hours), default=None)
    return None if best is None else (ours, best)


def fixed_cost(standings: Sequence[Standing], attained: float) -> float | None:
    """Return the GPU-hours at which fixed counts attain so much, read off their frontier; None where none does.

    Between two counts the line counts: one could have the one for a part of the time, and the other for the rest.
    """
    points = sorted((each.gpu_hours, each.attained) for each in standings if fixed_count(each.contestant) is not None)
    if points and points[0][1] >= attained:
        return points[0][0]
    for (cost, below), (more, above) in pairwise(points):
        if below < attained <= above:
            return cost + (more - cost) * (attained - below) / (above - below)
    return None


def aims(standings: Standings) -> list[Aim]:
    """Return every aim that can be told from what was played, in the order of the tables."""
    found = [aim for place, all_there in standings.items() for aim in _aims_of(place, all_there)]
    order = (_RAMP, _FRONT, _SAVING, _CLIFF, _PULSE)
    return sorted([*found, *_cliffs(standings)], key=lambda aim: order.index(aim.text))


def reason(place: Place, standings: Sequence[Standing]) -> str:
    """Return what the runs themselves say of the reason for a miss."""
    ours, oracle = adaptive(standings), next((each for each in standings if each.contestant == ORACLE), None)
    attained = ours.means["attainment"]
    said = [f"{1 - attained['ttft']:.1%} missed TTFT, {1 - attained['tpot']:.1%} TPOT"]
    if oracle is not None:
        said.append(f"a clairvoyant reaches {oracle.attained:.1%} at {oracle.means['average_replicas']:.2f}")
    if place.scene.jumps:
        said.append("the load jumps, and only a clairvoyant has pods within a start-up")
    return "; ".join(said)


def adaptive(standings: Sequence[Standing]) -> Standing:
    """Return our own policy's standing."""
    return next(each for each in standings if each.contestant == ADAPTIVE)


def _aims_of(place: Place, standings: Sequence[Standing]) -> Iterator[Aim]:
    if len(standings) == 1:
        return
    ours = adaptive(standings)
    if place.scene.name.startswith("ramp-") and place.start_up_s == RAMP_START_UP_S:
        yield _ramp(place, ours)
    yield _front(place, standings)
    if swing(place.scene) >= LARGE_SWING:
        yield _saving(place, ours, standings)
    if place.scene.pulse_s is not None:
        yield _answer(place, ours)


def _ramp(place: Place, ours: Standing) -> Aim:
    replicas = float(ours.means["average_replicas"])
    missed = []
    if ours.attained < RAMP_ATTAINED:
        missed.append(f"{100 * (RAMP_ATTAINED - ours.attained):.1f} points")
    if replicas > RAMP_REPLICAS:
        missed.append(f"{replicas - RAMP_REPLICAS:.2f} replicas")
    return Aim(
        _RAMP,
        place,
        f"{ours.attained:.1%} at {replicas:.2f}",
        ", ".join(missed),
    )


def _front(place: Place, standings: Sequence[Standing]) -> Aim:
    ours = adaptive(standings)
    beaten = beaten_by(standings)
    if beaten is None:
        return Aim(_FRONT, place, f"{ours.attained:.1%} for {ours.gpu_hours:.2f} GPU-h", "")
    compared, best = beaten
    return Aim(
        _FRONT,
        place,
        f"{compared.attained:.1%} for {compared.gpu_hours:.2f} GPU-h",
        f"{100 * (best.attained - compared.attained):.1f} points and "
        f"{1 - best.gpu_hours / compared.gpu_hours:.0%} of the cost, to {label(best.contestant)}",
    )


def _saving(place: Place, ours: Standing, standings: Sequence[Standing]) -> Aim:
    cost = fixed_cost(standings, ours.attained)
    if cost is None:
        return Aim(_SAVING, place, "no fixed count attains as much", "")
    saving = 1 - ours.gpu_hours / cost
    missed = "" if saving >= STATIC_SAVING else f"{100 * (STATIC_SAVING - saving):.0f} points"
    return Aim(_SAVING, place, f"{saving:.0%} cheaper" if saving >= 0 else f"{-saving:.0%} dearer", missed)


def _answer(place: Place, ours: Standing) -> Aim:
    times = [run["answered_s"] for run in ours.runs]
    if any(time is None for time in times):
        return Aim(_PULSE, place, "not always answered", "all of it")
    slowest = max(times)
    missed = "" if slowest <= PULSE_S else f"{slowest - PULSE_S:.1f} s"
    return Aim(_PULSE, place, f"at most {slowest:.1f} s after it began", missed)


def _cliffs(standings: Standings) -> Iterator[Aim]:
    """Compare a long start-up with a short one, once the first start-up is over."""
    by_place = {(place.scene.name, place.start_up_s): adaptive(all_there) for place, all_there in standings.items()}
    for place in standings:
        short, long = by_place.get((place.scene.name, AT_REST_S)), by_place.get((place.scene.name, CLIFF_S))
        if place.start_up_s != CLIFF_S or short is None or long is None:
            continue
        lost = 100 * (float(short.means["settled"]) - float(long.means["settled"]))
        cost = long.gpu_hours / short.gpu_hours
        missed = []
        if lost > CLIFF_POINTS:
            missed.append(f"{lost - CLIFF_POINTS:.1f} points")
        if cost > CLIFF_COST:
            missed.append(f"{100 * (cost - CLIFF_COST):.0f} % of the cost")
        yield Aim(
            _CLIFF,
            place,
            f"{-lost:+.1f} points, {cost - 1:+.0%} GPU-hours",
            ", ".join(missed),
        )


def _comparable(standings: Sequence[Standing]) -> list[Standing]:
    """Return all on the seeds that everybody played."""
    seeds = min(len(each.runs) for each in standings)
    return [each.on(seeds) for each in standings]
