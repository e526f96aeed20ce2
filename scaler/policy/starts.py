"""How long the next start takes, from the starts that were seen."""

from __future__ import annotations

from scaler.policy.observation import Observation, StartUp

_POD_S = 60.0
"""Taken for a start on a node that is there, until one was seen."""
_NODE_S = 180.0
"""Taken for a node, until one was seen: clouds take two to eight minutes for one with a GPU."""
_NODE_BOUND_S = 900.0
"""How long a node may take until one was seen: as long as the Cluster Autoscaler and Karpenter give it."""
_LEAST_BOUND_S = 300.0
"""However quick nodes are: autoscalers try another zone or kind of node when one is sold out."""


def warm_s(start_up: StartUp | None) -> float:
    """Return the seconds from "asked for" to "ready" where a node has room."""
    if start_up is None:
        return _POD_S
    if start_up.warm is not None:
        return start_up.warm.median
    return max(0.0, start_up.median - (start_up.node.median if start_up.node else 0.0))


def cold_s(start_up: StartUp | None) -> float:
    """Return the seconds from "asked for" to "ready" where a node has to come first."""
    if start_up is not None and start_up.cold is not None:
        return start_up.cold.median
    return _NODE_S + warm_s(start_up)


def node_bound_s(start_up: StartUp | None) -> float:
    """Return after how many seconds a node that was waited for is not late any more, but missing."""
    if start_up is None or start_up.node is None:
        return _NODE_BOUND_S
    return max(_LEAST_BOUND_S, 2 * start_up.node.p90)


def may_wait_for_node(observation: Observation) -> bool:
    """Tell whether replicas of this target were ever seen to wait for a node."""
    start_up = observation.start_up
    return observation.replicas.unschedulable > 0 or (start_up is not None and start_up.cold is not None)


def waits_for_node(observation: Observation) -> bool:
    """Tell whether the next replica would wait for a node: as pods do just now, or as one of the last ones did.

    Not while room is kept for it.
    """
    replicas, start_up = observation.replicas, observation.start_up
    return not replicas.room and (replicas.unschedulable > 0 or (start_up is not None and start_up.last_cold))
