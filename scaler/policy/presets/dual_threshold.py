"""Two thresholds on the queue in seconds: a burst is answered at once, gentle growth with a cool-down.

Replicas on the way count towards what a rule adds, so one backlog is asked for once, and the five quiet minutes
before a replica goes must be without a break.
"""

VALUES = {
    "rules": (
        "+3 when queue_seconds >= 15; "
        "+1..2 when queue_seconds >= 5 every 120s; "
        "-1 when utilization < 0.4 and queue_seconds < 1 for 5m"
    ),
    "downscaleDelay": "0",  # the rules have their own windows: two would add up
    "lookAhead": "0",
}
