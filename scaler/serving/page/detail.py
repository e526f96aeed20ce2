"""One target as a stream: its numbers so far and its configuration at first, then each decision as it is made."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from typing import Any

from scaler.serving import views
from scaler.serving.page.events import event
from scaler.serving.views import View
from scaler.targets import Points, Target, Targets, configuration, joined, points_of

EVERY_S = 0.5
_ALIVE_TURNS = 4
"""After so many turns without news a message tells that the line still stands."""


async def stream(
    targets: Targets, namespace: str, name: str, trigger: str, head: Callable[[], View]
) -> AsyncIterator[bytes]:
    """Give messages for one browser: `target` with what is new, `missing` while there is no such target, `time`."""
    shown: Target | None = None
    told: Any = None
    after, quiet = -math.inf, 0
    while True:
        quiet += 1
        try:
            target = targets.get(namespace, name, trigger)
        except LookupError as error:
            shown = None
            if told != str(error):
                told, quiet = str(error), 0
                yield event("missing", {**head(), "error": told})
        else:
            news = (target, target.latest, target.state, target.reason, target.warnings)
            if told != news:
                told, quiet = news, 0
                is_first, shown = target is not shown, target
                points = await _all_points(target) if is_first else target.history.points(after)
                after = points.times[-1] if points.times else after
                yield event("target", {**head(), **_message(target, points, is_first=is_first)})
        if quiet >= _ALIVE_TURNS:
            quiet = 0
            yield event("time", head())
        await asyncio.sleep(EVERY_S)


async def _all_points(target: Target) -> Points:
    """What the charts show, all that is remembered; the packed part of it is not unpacked between ticks."""
    late = target.history.points()
    return joined(await asyncio.to_thread(points_of, target.history.older()), late)


def _message(target: Target, points: Points, *, is_first: bool) -> View:
    message: View = {
        "summary": views.summary(target),
        "explanation": views.explanation(target, target.latest) if target.latest else None,
        "points": asdict(points),
        "first": is_first,
    }
    if is_first:
        message["configuration"] = [asdict(setting) for setting in configuration(target)]
    return message
