"""The other autoscalers, each as its authors describe it and with the settings that they recommend.

A rival is one file: its source, its formula, its settings and what stands in for a signal that plain vLLM pods do not
have. A new one is a new file and a line here. All are called in simulated time by the same plant as our own policy;
`functools.partial(KedaQueue, settings=…, name=…)` is one with other settings.
"""

from __future__ import annotations

from functools import partial

from scaler.backtest.contender import Maker, Makers
from scaler.backtest.rivals import dynamo, llm_d_queue, ray_serve, static
from scaler.backtest.rivals.aibrix_apa import AibrixApa
from scaler.backtest.rivals.aibrix_kpa import AibrixKpa
from scaler.backtest.rivals.kaito import Kaito
from scaler.backtest.rivals.keda_queue import KedaQueue
from scaler.backtest.rivals.knative import Kpa
from scaler.backtest.rivals.llm_d_slo import LlmDSlo
from scaler.backtest.rivals.llm_d_tokens import LlmDTokens
from scaler.backtest.rivals.oracle import Oracle
from scaler.backtest.rivals.wva_v1 import WvaV1
from scaler.backtest.rivals.wva_v2 import WvaV2

RIVALS: Makers = {
    "keda-queue": KedaQueue,
    "llm-d-queue": llm_d_queue.LlmDQueue,
    "llm-d-queue-guard": partial(
        llm_d_queue.LlmDQueue, settings=llm_d_queue.Settings(guard=True), name="llm-d-queue-guard"
    ),
    "llm-d-slo": LlmDSlo,
    "llm-d-tokens": LlmDTokens,
    "wva-v1": WvaV1,
    "wva-v2": WvaV2,
    "knative": Kpa,
    "aibrix-apa": AibrixApa,
    "aibrix-kpa": AibrixKpa,
    "ray-serve": ray_serve.RayServe,
    "ray-serve-tuned": ray_serve.tuned,
    "dynamo-throughput": dynamo.Dynamo,
    "dynamo-latency": partial(dynamo.Dynamo, settings=dynamo.LATENCY, name="dynamo-latency"),
    "kaito": Kaito,
    "static-peak": static.Static,
    "oracle": Oracle,
}
"""By the names in tables."""


def fixed(replicas: int) -> Maker:
    """Return the rival that always has so many replicas: one point of the static frontier."""
    return partial(static.Static, settings=static.Settings(replicas=replicas), name=f"static-{replicas}")
