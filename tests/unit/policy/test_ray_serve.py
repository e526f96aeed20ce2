"""Configured as Ray Serve is, the policy decides what Ray Serve's autoscaling formula decides.

The expected numbers were worked out by Ray Serve 2.60.0 itself (its formula with factors, delays and bounds).
"""

from __future__ import annotations

import pytest

from tests.unit.policy.world import Tape, first, rules_said, see, settings

AS_RAY = {"delayMode": "consecutive", "startingCredit": "false", "headroom": "0"}

# running replicas, target, upscaling and downscaling factor: ongoing requests → replicas
FORMULA = {
    (1, 2, 1, 1): {0: 0, 1: 1, 2: 1, 3: 2, 4: 2, 40: 20},
    (4, 2, 1, 1): {1: 1, 7: 4, 8: 4, 9: 5, 16: 8, 160: 80},
    (4, 12, 2, 0.5): {0: 2, 1: 3, 47: 4, 48: 4, 49: 5, 96: 12, 960: 156},
    (3, 2, 0.5, 0.5): {0: 2, 1: 2, 5: 3, 6: 3, 7: 4, 12: 5, 120: 32},
    (10, 5, 1, 0.1): {0: 9, 1: 9, 49: 10, 50: 10, 51: 11, 100: 20, 1000: 200},
    (8, 12, 2, 0.5): {0: 4, 1: 5, 95: 8, 96: 8, 97: 9, 192: 24, 1920: 312},
    (16, 5, 1.7, 0.9): {0: 2, 1: 2, 79: 16, 80: 16, 81: 17, 160: 44, 1600: 533},
    (5, 2, 0.3, 2): {9: 4, 10: 5, 11: 6, 20: 7, 200: 34},
}


@pytest.mark.parametrize(
    ("running", "target", "up", "down", "ongoing", "expected"),
    [(*key, ongoing, expected) for key, table in FORMULA.items() for ongoing, expected in table.items()],
)
def test_the_count_is_ray_serves(
    running: int, target: int, up: float, down: float, ongoing: int, expected: int
) -> None:
    ray = settings(targetOngoingRequests=target, upscalingFactor=up, downscalingFactor=down, **AS_RAY)
    waiting = min(ongoing // 4, running - 1)  # where requests are does not matter to Ray: it counts both
    seen = see(ready=running, waiting=waiting, running=ongoing - waiting, maximum=1000)
    assert first(ray, seen).desired == expected


# target, factors up and down, delays up and down, replicas at first, minimum, maximum, tick: requests → replicas
SEQUENCES = {
    "a higher count must be wanted for the upscale delay": (
        (2, 1, 1, 3, 5, 4, 1, 100, 1.0),
        [24] * 6,
        [4, 4, 4, 12, 12, 12],
    ),
    "one quiet tick starts the upscale delay anew": (
        (2, 1, 1, 3, 5, 4, 1, 100, 1.0),
        [24, 24, 24, 8, 24, 24, 24, 24],
        [4, 4, 4, 4, 4, 4, 4, 12],
    ),
    "the latest want counts, not the least": (
        (2, 1, 1, 3, 5, 4, 1, 100, 1.0),
        [10, 20, 30, 40, 40],
        [4, 4, 4, 20, 20],
    ),
    "factors of one half, each step with its own delay": (
        (2, 0.5, 0.5, 2, 3, 1, 1, 6, 1.0),
        [8] * 9,
        [1, 1, 3, 3, 3, 4, 4, 4, 4],
    ),
    "idle with a downscaling factor, and to zero only from one": (
        (2, 1, 0.5, 2, 3, 4, 0, 6, 1.0),
        [0] * 13,
        [4, 4, 4, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0],
    ),
    "idle without a factor goes to one first, then to zero": (
        (2, 1, 1, 2, 3, 4, 0, 6, 1.0),
        [0] * 9,
        [4, 4, 4, 1, 1, 1, 1, 0, 0],
    ),
    "a change of direction starts the other delay": (
        (2, 1, 1, 3, 3, 4, 1, 100, 1.0),
        [24, 24, 2, 2, 2, 2, 24, 24, 24, 24],
        [4, 4, 4, 4, 4, 1, 1, 1, 1, 12],
    ),
    "a delay between two ticks ends at the later one": (
        (2, 1, 1, 1.25, 3, 4, 1, 100, 0.5),
        [24] * 5,
        [4, 4, 4, 12, 12],
    ),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_the_delays_are_ray_serves(name: str) -> None:
    (target, up, down, up_delay, down_delay, replicas, minimum, maximum, tick), ongoing, expected = SEQUENCES[name]
    ray = settings(
        targetOngoingRequests=target,
        upscalingFactor=up,
        downscalingFactor=down,
        upscaleDelay=up_delay,
        downscaleDelay=down_delay,
        metricsInterval=tick,
        **AS_RAY,
    )
    tape = Tape(ray, ready=int(replicas))
    assert [tape.tick(running=seen, minimum=minimum, maximum=maximum) for seen in ongoing] == expected


def test_delays_do_not_take_a_tick_more_on_a_clock_of_unix_seconds() -> None:
    ray = settings(targetOngoingRequests=2, upscaleDelay=0.3, metricsInterval=0.1, **AS_RAY)
    tape = Tape(ray, ready=4, time=1_796_000_000.05)
    assert tape.run(0.4, running=24) == [4, 4, 4, 12]


def test_the_last_bit_of_a_ratio_does_not_buy_a_replica() -> None:
    """Ray multiplies a rounded ratio by the count: 21 × (247 ÷ 42) gives it 227 where the sum is exactly 226."""
    ray = settings(targetOngoingRequests=2, upscalingFactor=2, **AS_RAY)
    assert first(ray, see(ready=21, running=247, maximum=1000)).desired == 21 + 2 * (247 / 2 - 21)


def test_a_standing_queue_holds_a_fall_that_ray_would_make() -> None:
    """Where this policy differs on purpose: it never goes down while as many requests wait as there are pods."""
    ray = settings(targetOngoingRequests=12, **AS_RAY)
    decision = first(ray, see(ready=8, waiting=8, running=4))
    assert decision.desired == 8
    assert "hold" in rules_said(decision)
