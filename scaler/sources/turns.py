"""A little work in each turn of the event loop, so that RPCs are answered soon however much there is to do."""

from __future__ import annotations

import asyncio
from collections import deque

A_TURN = 8
"""Pieces of work that begin in one turn. Each takes some tenths of a millisecond."""

_Waiting = deque[asyncio.Future[None]]


class Turns:
    """Where whoever has a piece of work to do waits for its turn; while there is little to do, nobody waits.

    An RPC takes several turns of the event loop. Without a bound, thousands of pages that are due at once make one
    turn of them all, and the slower the machine, the more are due in the next.
    """

    def __init__(self, a_turn: int = A_TURN) -> None:
        self._a_turn = a_turn
        self._left = a_turn
        """How many may still begin in this turn."""
        self._ends: _Waiting = deque()
        self._begins: _Waiting = deque()
        self._counting = False

    async def begin(self) -> None:
        """Wait for a turn to begin something: only when nobody waits to end anything."""
        await self._take(self._begins)

    async def end(self) -> None:
        """Wait for a turn to end what has begun."""
        await self._take(self._ends)

    async def _take(self, waiting: _Waiting) -> None:
        if not self._counting:
            self._counting = True
            asyncio.get_running_loop().call_soon(self._next_turn)
        if self._left > 0:  # then nobody waits
            self._left -= 1
            return
        mine = asyncio.get_running_loop().create_future()
        waiting.append(mine)
        await mine

    def _next_turn(self) -> None:
        self._left = self._a_turn
        while self._left and (waiting := self._ends or self._begins):
            mine = waiting.popleft()
            if not mine.done():  # cancelled meanwhile
                mine.set_result(None)
                self._left -= 1
        self._counting = self._left < self._a_turn
        if self._counting:
            asyncio.get_running_loop().call_soon(self._next_turn)
