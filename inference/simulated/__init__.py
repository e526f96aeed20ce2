"""A simulated vLLM: an engine, a fleet of pods behind a router, and real metrics pages over real HTTP.

Everything but the server is pure: it has no clock, it is told the time in seconds, and the same seed gives the same
run. Demo, tests and backtest share it.

- `Profile` says what one replica can do. `TIME_BOUND` and `MEMORY_BOUND` sustain the same 1.4 to 1.5 requests/s of
  4,000 prompt and 1,000 output tokens, and fail in different ways beyond it.
- `Engine` is one replica: `submit(request, now)`, `advance(until)` → `FirstToken` and `Finished` events, gauges, and
  `metrics` with vLLM's counters and histograms.
- `inference.simulated.traffic` makes requests: a rate (`constant`, `wave`, `pulse`, `ramp`, `steps`, `on_off`) and
  `arrivals(rate, duration_s, mix=…, seed=…)`.
- `Fleet` plays traffic on pods: `add`, `drain`, `kill`, `scale`, `advance(until)` → an `Outcome` for each request that
  ended. `summarize(outcomes)` says how well the objectives were kept.
- `Page` is an engine's metrics page, as vLLM 0.32 writes it; `SglangPage` what scalers read of SGLang's.
- `inference.simulated.server.FleetServer` serves a fleet's pods over HTTP on loopback addresses, with a `Fault` for
  each pod that shall have one.
"""

from inference.simulated.engine import Engine, Event, Finished, FirstToken
from inference.simulated.faults import Fault
from inference.simulated.fleet import Fleet, Outcome, Pod, PodState, Verdict
from inference.simulated.page import Page
from inference.simulated.profile import MEMORY_BOUND, PROFILES, TIME_BOUND, Profile, StepTime
from inference.simulated.request import Request
from inference.simulated.sglang_page import SglangPage
from inference.simulated.slo import SloSummary, summarize

__all__ = [
    "MEMORY_BOUND",
    "PROFILES",
    "TIME_BOUND",
    "Engine",
    "Event",
    "Fault",
    "Finished",
    "FirstToken",
    "Fleet",
    "Outcome",
    "Page",
    "Pod",
    "PodState",
    "Profile",
    "Request",
    "SglangPage",
    "SloSummary",
    "StepTime",
    "Verdict",
    "summarize",
]
