"""What the scheduler's words say is lacking."""

from __future__ import annotations

import pytest

from scaler.cluster.scheduling import lacking

PREEMPTION = " preemption: 0/5 nodes are available: 5 No preemption victims found for incoming pod."
MESSAGES = {
    "0/5 nodes are available: 5 Insufficient nvidia.com/gpu." + PREEMPTION: "nvidia.com/gpu",
    "0/5 nodes are available: 2 Insufficient cpu, 3 Insufficient nvidia.com/gpu." + PREEMPTION: "nvidia.com/gpu",
    "0/5 nodes are available: 1 Insufficient amd.com/gpu, 4 Insufficient rdma/hca." + PREEMPTION: (
        "amd.com/gpu, rdma/hca"
    ),
    "0/5 nodes are available: 5 Insufficient memory. no new claims to deallocate," + PREEMPTION: "memory",
    "0/5 nodes are available: 1 Insufficient cpu, 4 Insufficient memory": "cpu, memory",
    "0/5 nodes are available: 5 Too many pods.": "pods",
    "0/5 nodes are available: pod has unbound immediate PersistentVolumeClaims.": "volume",
    "0/5 nodes are available: 5 node(s) had volume node affinity conflict.": "volume",
    "0/5 nodes are available: 5 cannot allocate all claims. still not schedulable," + PREEMPTION: "resource claim",
    "0/5 nodes are available: 5 node(s) didn't match Pod's node affinity/selector." + PREEMPTION: "fitting node",
    "0/5 nodes are available: 5 node(s) had untolerated taint(s)." + PREEMPTION: "fitting node",
    "no nodes available to schedule pods": "fitting node",
    "": "fitting node",
}


@pytest.mark.parametrize(("message", "lacks"), MESSAGES.items(), ids=MESSAGES.values())
def test_what_a_pod_lacks_is_read_from_the_schedulers_words(message: str, lacks: str) -> None:
    assert lacking(message) == lacks
