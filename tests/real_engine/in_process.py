"""`python in_process.py HOST PORT OPTIONS`: AsyncLLM behind the gate, served by uvicorn and not Serve."""

from __future__ import annotations

import json
import sys

import uvicorn

from inference.server import Server
from inference.settings import GateSettings
from inference.vllm_engine import VllmEngine


class Told(Server):
    """Tells at `/told` what it would tell Serve."""

    async def __call__(self, scope, receive, send):  # type: ignore[no-untyped-def]
        if scope.get("path") == "/told":
            load = self.load()
            body = json.dumps(
                {"running": load and load.running, "kv_cache_usage": load and load.kv_cache_usage}
            ).encode()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": body})
        else:
            await super().__call__(scope, receive, send)


if __name__ == "__main__":
    host, port, options = sys.argv[1:]
    server = Told(VllmEngine(json.loads(options)), GateSettings())
    uvicorn.run(server, host=host, port=int(port), lifespan="on", log_level="warning")
