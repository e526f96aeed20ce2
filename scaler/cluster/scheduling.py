"""What a pod that no node takes lacks, out of the scheduler's own words."""

from __future__ import annotations

import re
from functools import lru_cache

_INSUFFICIENT = re.compile(r"Insufficient (\S+?)[,.;]*(?=\s|$)")
_OTHER = {
    "Too many pods": "pods",
    "unbound immediate PersistentVolumeClaims": "volume",
    "volume": "volume",
    "claims": "resource claim",
}
"""What a message without `Insufficient` speaks of → what is lacking."""
_NO_NODE = "fitting node"


@lru_cache(maxsize=1024)
def lacking(message: str) -> str:
    """Return the resource that an unschedulable pod lacks, such as `nvidia.com/gpu`, from its condition's message.

    Several are separated by commas. Where nodes lack a device and others lack CPU, it is the device: the scheduler
    counts every node, those that were never meant for the pod too. `fitting node` is what is lacking where selectors,
    affinities or taints keep the pod from every node.
    """
    reasons = message.partition("preemption:")[0]
    resources = sorted(set(_INSUFFICIENT.findall(reasons)))
    if resources:
        return ", ".join([name for name in resources if "/" in name] or resources)
    return next((lack for words, lack in _OTHER.items() if words in reasons), _NO_NODE)
