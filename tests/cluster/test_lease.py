"""Leader election on a real API server."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from scaler.cluster.client import ApiClient
from scaler.cluster.lease import Durations, Election
from tests.cluster.control_plane import ControlPlane
from tests.waiting import background, until

pytestmark = pytest.mark.toolchain

PATIENT = Durations(lease=600.0, renew_deadline=300.0, retry=200.0)


async def test_lease_is_handed_over_as_soon_as_the_leader_ends(api_server: ControlPlane, namespace: str) -> None:
    async with await ApiClient.connect(api_server.kubeconfig) as client, AsyncExitStack() as stack:
        first, second = (Election(client, namespace, "scaler", name, durations=PATIENT) for name in ("one", "two"))
        async with background(first.run()):
            await until(lambda: first.is_leader, "a leader")
            await stack.enter_async_context(background(second.run()))
            await until(lambda: second.holder == "one", "a second candidate that waits")
            assert (first.is_leader, second.is_leader) == (True, False)
        await until(lambda: second.is_leader, "the next leader, long before the lease would have expired")
        assert not first.is_leader
        lease = api_server.get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/scaler")
        assert lease is not None
        assert lease["spec"]["holderIdentity"] == "two"
        assert lease["spec"]["leaseDurationSeconds"] == 600


async def test_lease_of_a_leader_that_died_is_taken_over(api_server: ControlPlane, namespace: str) -> None:
    quick = Durations(lease=2.0, renew_deadline=1.5, retry=0.2)
    async with await ApiClient.connect(api_server.kubeconfig) as client:
        async with await ApiClient.connect(api_server.kubeconfig) as doomed:
            dead = Election(doomed, namespace, "scaler", "dead", durations=quick)
            async with background(dead.run()):
                await until(lambda: dead.is_leader, "a leader")
                await doomed.close()
        follower = Election(client, namespace, "scaler", "next", durations=quick)
        async with background(follower.run()):
            await until(lambda: follower.is_leader, "the next leader")
