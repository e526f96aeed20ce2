"""The decision core: pure functions over small frozen values. No I/O, no clock; time is an argument.

    state, decision = decide(settings, state, observation)

One call is one tick. Start with `state = None`, build an `Observation` from whatever world there is (a cluster, a
simulation, Ray Serve), and read `Decision.desired`, `.emission` and `.steps`. Every host runs this same function.
"""

from scaler.policy.decide import decide
from scaler.policy.decision import Decision, Emission, Step
from scaler.policy.observation import Latency, Limits, Load, Observation, Replicas, StartUp, Took
from scaler.policy.parsing import SettingsError
from scaler.policy.settings import PolicySettings
from scaler.policy.state import State

__all__ = [
    "Decision",
    "Emission",
    "Latency",
    "Limits",
    "Load",
    "Observation",
    "PolicySettings",
    "Replicas",
    "SettingsError",
    "StartUp",
    "State",
    "Step",
    "Took",
    "decide",
]
