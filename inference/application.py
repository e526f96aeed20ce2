"""The application to deploy with Ray Serve: one replica for each engine, with OpenAI's API, gate and policy.

    # in serveConfigV2, or a file for `serve deploy`
    applications:
      - name: llm
        import_path: inference.application:build
        args: {options: {model: Qwen/Qwen3-8B, max-model-len: 16384}}
        deployments:
          - name: Engine
            ray_actor_options: {num_gpus: 1}
            autoscaling_config: …        # see inference.autoscaling

A replica is RUNNING when its engine has made a first token. On the way out Serve lets it finish its requests
(`graceful_shutdown_timeout_s`). Engines on several nodes are what Ray's own `ray.serve.llm` is for; the policy works in
its deployments too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field
from ray import serve

from inference.engine import Engine
from inference.replica_load import report
from inference.server import Server
from inference.settings import GateSettings
from inference.simulated.openai import SimulatedEngine
from scaler.policy.parsing import Settings, parse

NAME = "Engine"
"""Of the deployment."""
_SHUTDOWN_S = 120.0
"""Longer than most requests; Serve's own default of 20 s cuts the long ones off."""
_ROOM = 1.25
"""Requests that Serve may send to a replica, over those that its gate may admit: the rest wait for their turn there."""


class Args(Settings):
    """What `args` of the application may say."""

    engine: Literal["vllm", "simulated"] = Field(
        "vllm", examples=["vllm"], description="Which engine; the simulated one needs no GPU."
    )
    options: dict[str, Any] = Field(
        default_factory=dict,
        examples=[{"model": "Qwen/Qwen3-8B"}],
        description="Those of `vllm serve`, or of inference.simulated.openai.SimulatedEngine.",
    )
    gate: dict[str, Any] = Field(
        default_factory=dict, examples=[{"ttftSlo": "3s"}], description="Those of inference.settings.GateSettings."
    )


def build(args: dict[str, Any]) -> serve.Application:
    """Return the application. Raises SettingsError where the arguments are wrong."""
    wanted = parse(Args, args)
    gate = parse(GateSettings, wanted.gate)

    def server() -> Server:
        return Server(_engine(wanted), gate)

    deployment = serve.deployment(
        _replica(server),
        name=NAME,
        max_ongoing_requests=int(_ROOM * gate.max_num_seqs),
        graceful_shutdown_timeout_s=_SHUTDOWN_S,
        health_check_period_s=5,
    )
    return deployment.bind()


def _engine(args: Args) -> Engine:
    if args.engine == "simulated":
        return SimulatedEngine(**args.options)
    from inference.vllm_engine import VllmEngine  # noqa: PLC0415 (it needs vLLM)

    return VllmEngine(args.options)


def _replica(server: Callable[[], Server]) -> Any:
    """Return the class of a replica; Serve makes its server, runs the server's lifespan, and sends it requests."""

    class Replica:
        """What Serve asks of a replica beside serving."""

        app: Server

        def record_autoscaling_stats(self) -> dict[str, float]:
            """Tell the policy this replica's load."""
            load = self.app.load()
            return {} if load is None else report(load)

        async def check_health(self) -> None:
            """Raise where the engine has ended: Serve then starts another replica."""
            await self.app.check()

    return serve.ingress(server)(Replica)
