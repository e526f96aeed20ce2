"""What the data plane's own ideas are worth, in simulated time: `python -m benchmarks.serving` prints the tables of
docs/inference.md in about three minutes.

- `admission`: one replica, with and without the gate's limit, and with and without a share for long requests
- `routing`: eight replicas, one of them slow, behind routers that know more or less
"""
