"""Work in turns: how much begins in one turn of the event loop, in which order, and what a cancelled wait leaves."""

from __future__ import annotations

import asyncio

from scaler.sources.turns import Turns


async def test_no_turn_of_the_loop_begins_more_than_its_share() -> None:
    turns, done = Turns(4), 0

    async def piece() -> None:
        nonlocal done
        await turns.begin()
        done += 1

    work = asyncio.gather(*(piece() for _ in range(100)))
    shares = []
    while not work.done():
        before = done
        await asyncio.sleep(0)
        shares.append(done - before)
    await work
    assert done == 100
    assert max(shares) <= 4
    assert sum(share > 0 for share in shares) <= 26  # and no turn is idle while somebody waits


async def test_while_there_is_little_to_do_nobody_waits() -> None:
    turns = Turns(4)
    for _ in range(10):
        for _ in range(4):
            coroutine = turns.end()
            try:
                coroutine.send(None)
            except StopIteration:
                continue
            raise AssertionError("it waits")
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def test_what_has_begun_ends_before_anything_else_begins() -> None:
    turns, order = Turns(1), []

    async def piece(name: str) -> None:
        await (turns.end() if name.startswith("end") else turns.begin())
        order.append(name)

    await asyncio.gather(*(piece(name) for name in ("first", "begin 1", "begin 2", "end 1", "end 2")))
    assert order == ["first", "end 1", "end 2", "begin 1", "begin 2"]


async def test_a_cancelled_wait_takes_nobodys_turn() -> None:
    turns = Turns(1)
    tasks = [asyncio.create_task(turns.begin()) for _ in range(4)]
    await asyncio.sleep(0)
    assert [task.done() for task in tasks] == [True, False, False, False]
    tasks[1].cancel()
    await asyncio.wait(tasks)
    assert [task.cancelled() for task in tasks] == [False, True, False, False]
