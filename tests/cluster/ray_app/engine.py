"""The Serve application of the tests."""

from __future__ import annotations

import asyncio
import os
import tempfile

from ray import serve
from starlette.requests import Request


@serve.deployment(
    num_replicas=1, max_ongoing_requests=1, ray_actor_options={"num_cpus": 1}, graceful_shutdown_wait_loop_s=0.2
)
class Engine:
    """A request takes as many `seconds` as it says, leaves a file in the folder `mark`, and is told its pod."""

    async def __call__(self, request: Request) -> str:
        handle, _ = tempfile.mkstemp(dir=request.query_params["mark"])
        os.close(handle)
        await asyncio.sleep(float(request.query_params["seconds"]))
        return os.environ["RAY_CLOUD_INSTANCE_ID"]


app = Engine.bind()
