"""The Serve application of the tests."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from ray import serve
from starlette.requests import Request


@serve.deployment(max_ongoing_requests=1, ray_actor_options={"num_cpus": 1}, graceful_shutdown_wait_loop_s=0.2)
class Engine:
    """A request leaves a file in the folder `mark`, and takes until a file `until` is there. Told is who had it."""

    async def __call__(self, request: Request) -> dict[str, str]:
        handle, _ = tempfile.mkstemp(dir=request.query_params["mark"])
        os.close(handle)
        end = Path(request.query_params["until"])
        while True:
            await asyncio.sleep(0.05)
            if await asyncio.to_thread(end.exists):
                break
        replica = serve.get_replica_context().replica_id.unique_id
        return {"pod": os.environ.get("RAY_CLOUD_INSTANCE_ID", ""), "replica": replica}


app = Engine.bind()
