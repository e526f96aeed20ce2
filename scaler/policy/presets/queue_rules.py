"""Rules over rate, utilisation and latency, with a warm pool of a tenth.

Every window is at least twice its sampling (90 s against 1 s): sampling as slowly as one acts oscillates. The
thresholds on `request_rate_per_replica` and `ttft_p95` are the ones to set to your own model's.
"""

VALUES = {
    "rules": (
        "+2 when request_rate_per_replica > 1 and utilization > 0.75 for 90s every 90s; "
        "+2 when ttft_p95 > 0.3 and queue_seconds > 0.3 for 90s every 90s; "
        "-1 when request_rate_per_replica < 0.5 and utilization < 0.4 and worst_ttft_p95 < 0.15 for 90s every 90s; "
        "-1 when ongoing < 1 for 90s every 90s"
    ),
    "headroom": "10%",
    "lookBackPeriod": "60s",
    "downscaleDelay": "0",  # the rules have their own windows: two would add up
    "lookAhead": "0",
}
