"""Policies and rivals on committed traffic: what each gives and costs, and where ours misses its aims.

`make backtest` plays the grid and writes docs/benchmarks.md; `make backtest ARGS=--help` says what else there is.
Every run is kept in the cache folder under a key of its configuration and of the code that it can reach, so that a
change is paid for only where it matters, and what was interrupted goes on where it stopped.

- `scenes`: the traffic, the clusters, the seeds; what may be tuned on, and what is judged on
- `contestants`: who takes part, with which settings; `tuning` finds those of the rivals
- `runs`, `cache`, `code`: playing, keeping, and knowing what a result depends on
- `verdict`, `tables`, `page`: what comes out
"""
