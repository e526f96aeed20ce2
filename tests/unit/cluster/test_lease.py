from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from scaler.cluster.client import ApiClient
from scaler.cluster.lease import Durations, Election
from scaler.cluster.resources import LEASES
from tests.unit.cluster.fake_api import FakeApi
from tests.waiting import background, until

QUICK = Durations(lease=2.0, renew_deadline=1.0, retry=0.1, look=0.1)


class Candidate:
    """A candidate with what it was told."""

    def __init__(self, client: ApiClient, identity: str, durations: Durations = QUICK) -> None:
        self.told: list[str] = []
        self.election = Election(
            client,
            "keda",
            "vllm-scaler",
            identity,
            on_started=lambda: self.told.append("started"),
            on_stopped=lambda: self.told.append("stopped"),
            durations=durations,
        )

    @property
    def leads(self) -> bool:
        return self.election.is_leader


@asynccontextmanager
async def competing(candidate: Candidate) -> AsyncIterator[Candidate]:
    async with background(candidate.election.run()):
        yield candidate


async def test_first_candidate_leads_and_the_second_knows_it(api: FakeApi, client: ApiClient) -> None:
    async with competing(Candidate(client, "a")) as a:
        await until(lambda: a.leads, "a leader")
        async with competing(Candidate(client, "b")) as b:
            await until(lambda: b.election.holder == "a", "b that has looked")
            assert (a.leads, b.leads) == (True, False)
        assert (a.told, b.told) == (["started"], [])
        spec = api.item(LEASES, "keda", "vllm-scaler")["spec"]
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a", 2, 1)


async def test_leader_that_ends_gives_the_lease_back(api: FakeApi, client: ApiClient) -> None:
    patient = Durations(lease=600.0, renew_deadline=300.0, retry=200.0, look=0.1)
    leader, follower = Candidate(client, "a", patient), Candidate(client, "b", patient)
    async with AsyncExitStack() as stack:
        async with competing(leader):
            await until(lambda: leader.leads, "a leader")
            await stack.enter_async_context(competing(follower))
            await until(lambda: follower.election.holder == "a", "a follower that waits")
        assert (leader.told, leader.leads) == (["started", "stopped"], False)
        await until(lambda: follower.leads, "the next leader, long before the lease would have expired")
    assert api.item(LEASES, "keda", "vllm-scaler")["spec"]["holderIdentity"] == ""


async def test_leader_that_dies_is_followed_when_its_lease_has_expired(api: FakeApi, client: ApiClient) -> None:
    async with await ApiClient.connect(api.kubeconfig) as doomed:
        async with competing(Candidate(doomed, "a")) as a:
            await until(lambda: a.leads, "a leader")
            await doomed.close()
        renewed = api.item(LEASES, "keda", "vllm-scaler")["spec"]["renewTime"]
        began = time.monotonic()
        async with competing(Candidate(client, "b")) as b:
            await until(lambda: b.leads, "the next leader")
            assert time.monotonic() - began >= QUICK.lease
    spec = api.item(LEASES, "keda", "vllm-scaler")["spec"]
    assert spec["leaseTransitions"] == 2
    assert spec["renewTime"] > renewed


async def test_there_are_never_two_leaders_when_the_api_server_comes_and_goes(api: FakeApi, client: ApiClient) -> None:
    async with competing(Candidate(client, "a")) as a, competing(Candidate(client, "b")) as b:
        seen: set[str] = set()

        def leaders() -> list[str]:
            found = [name for name, candidate in (("a", a), ("b", b)) if candidate.leads]
            seen.update(found)
            assert len(found) <= 1
            return found

        for _ in range(3):
            await until(leaders, "a leader")
            api.hung.clear()
            await until(lambda: not leaders(), "a leader that steps down since it cannot renew")
            api.hung.set()
        await until(leaders, "a leader")
        assert seen <= {"a", "b"}
    assert a.told.count("started") == a.told.count("stopped")
    assert b.told.count("started") == b.told.count("stopped")


async def test_leader_steps_down_before_others_may_take_over(api: FakeApi, client: ApiClient) -> None:
    async with competing(Candidate(client, "a")) as a:
        await until(lambda: a.leads, "a leader")
        renewed = time.monotonic()
        await api.stop()
        await until(lambda: a.told == ["started", "stopped"], "the step down")
        assert time.monotonic() - renewed < QUICK.lease
        await api.start()
        await until(lambda: a.leads, "the leader again")


async def test_leader_whose_process_was_held_up_knows_at_once(
    client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with competing(Candidate(client, "a")) as a:
        await until(lambda: a.leads, "a leader")
        now = time.monotonic()
        monkeypatch.setattr("scaler.cluster.lease.time.monotonic", lambda: now + QUICK.renew_deadline)
        assert not a.leads
        monkeypatch.undo()


async def test_clock_that_jumps_changes_nothing(
    api: FakeApi, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with competing(Candidate(client, "a")) as a, competing(Candidate(client, "b")) as b:
        await until(lambda: a.leads or b.leads, "a leader")
        leader, other = (a, b) if a.leads else (b, a)
        renewals = api.requests["update", "leases"]
        for jump in (3600.0, -3600.0):
            now = time.time
            monkeypatch.setattr("scaler.cluster.lease.time.time", lambda: now() + jump)  # noqa: B023 undone below
            renewals = api.requests["update", "leases"]
            await until(lambda: api.requests["update", "leases"] >= renewals + 5, "renewals")  # noqa: B023
            monkeypatch.undo()
        assert (leader.leads, other.leads) == (True, False)
        assert leader.told == ["started"]


async def test_lease_that_somebody_else_took_is_let_go(api: FakeApi, client: ApiClient) -> None:
    async with competing(Candidate(client, "a")) as a:
        await until(lambda: a.leads, "a leader")
        lease = api.item(LEASES, "keda", "vllm-scaler")
        await api.put(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "intruder"}})
        await until(lambda: a.told == ["started", "stopped"], "the step down")
        assert a.election.holder == "intruder"


@pytest.mark.parametrize(("lease", "renew", "retry"), [(10, 10, 2), (15, 2, 2), (15, 16, 2)])
def test_durations_that_would_allow_two_leaders_are_refused(lease: float, renew: float, retry: float) -> None:
    with pytest.raises(ValueError, match="right is retry"):
        Durations(lease, renew, retry)
