"""What only a real control plane can tell: minutes each, so they run when named, `python -m benchmarks spike`.

They use the toolchain and the cluster of `tests/cluster`, and need Go where that is not built yet.
"""
