"""vLLM in this process: its AsyncLLM engine behind its own OpenAI-compatible API.

All of the API is vLLM's (chat, completions, tools, structured output, metrics page), made by the functions that Ray's
own LLM library uses too. Tested with vLLM 0.32.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.entrypoints.openai.api_server import build_app, init_app_state
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.metrics.loggers import StatLoggerBase
from vllm.v1.metrics.ray_wrappers import RayPrometheusStatLogger

from inference.asgi import Application
from inference.meter import Gauges


class VllmEngine:
    """Implements `inference.engine.Engine`. `options` are those of `vllm serve`, as keys without the dashes.

    A key without a value of its own is true or false, a list is given as several values:
    `{"model": "Qwen/Qwen3-8B", "tensor-parallel-size": 2, "enable-prefix-caching": true}`.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._client: Any = None
        self._stats: dict[int, Any] = {}
        """By engine (there are several with data parallelism): what its scheduler said last."""

    async def start(self) -> Application:
        """Load the weights and return the API; that takes minutes."""
        args = parse(self._options)
        config = AsyncEngineArgs.from_cli_args(args).create_engine_config()
        self._client = client = AsyncLLM.from_vllm_config(config, stat_loggers=self._loggers())
        tasks = await client.get_supported_tasks()
        known = {"supported_tasks": tasks, "model_config": client.model_config, "vllm_config": config}
        app = build_app(args, **_taken_by(build_app, known))
        await init_app_state(client, state=app.state, args=args, **_taken_by(init_app_state, known))
        application: Application = app
        return application

    async def check(self) -> None:
        """Raise EngineDeadError where the engine has ended."""
        if self._client is not None:
            await self._client.check_health()

    def gauges(self) -> Gauges:
        """Say what the schedulers said last."""
        stats = list(self._stats.values())
        if not stats:
            return Gauges()
        return Gauges(
            waiting=float(sum(each.num_waiting_reqs for each in stats)),
            running=float(sum(each.num_running_reqs for each in stats)),
            kv_cache_usage=sum(each.kv_cache_usage for each in stats) / len(stats),
        )

    async def stop(self) -> None:
        """End the engine's processes."""
        if self._client is not None:
            self._client.shutdown()

    def _loggers(self) -> list[Any]:
        """Let statistics come here, and inside Ray also to the node's metrics page."""
        listener = partial(_Listener, self._stats)
        return [listener, RayPrometheusStatLogger] if "ray" in sys.modules else [listener]


class _Listener(StatLoggerBase):  # type: ignore[misc]  # vLLM is not there where types are checked
    """Keeps what the scheduler of one engine says."""

    def __init__(self, stats: dict[int, Any], _: Any, engine_index: int = 0) -> None:
        self._stats = stats
        self._engine = engine_index

    def record(self, scheduler_stats: Any, *_: Any, **__: Any) -> None:
        """Take note."""
        if scheduler_stats is not None:
            self._stats[self._engine] = scheduler_stats

    def log_engine_initialized(self) -> None:
        """Say nothing."""


def parse(options: Mapping[str, Any]) -> argparse.Namespace:
    """Read options as `vllm serve` does; it ends the process with its own words where they are wrong."""
    parsed: argparse.Namespace = make_arg_parser(FlexibleArgumentParser()).parse_args(command_line(options))
    return parsed


def command_line(options: Mapping[str, Any]) -> list[str]:
    """Write options as arguments of a command."""
    words: list[str] = []
    for key, value in options.items():
        match value:
            case True:
                words.append(f"--{key}")
            case False:
                words.append(f"--no-{key}")
            case list() | tuple():
                words += [f"--{key}", *map(str, value)]
            case _:
                words += [f"--{key}", str(value)]
    return words


def _taken_by(function: Callable[..., Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a function takes of what is known: vLLM's versions differ."""
    return {name: value for name, value in known.items() if name in inspect.signature(function).parameters}
