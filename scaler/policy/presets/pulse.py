"""A pulse: twenty times the load within half a second, held for half an hour.

The answer falls in the first tick, grows geometrically while the load still rises, and nothing is given back for
ten minutes. Keep the floor for known events in `minReplicasSchedule` (or minReplicaCount, say 64 of 512).
"""

VALUES = {
    "targetOngoingRequests": "5",
    "metricsInterval": "0.5s",
    "lookBackPeriod": "2s",
    "upscaleDelay": "0",
    "downscaleDelay": "600s",
    "upscalingFactor": "2",
    "burstThreshold": "0.5",
    "lookAhead": "auto",
    "delivery": "direct",  # the HPA looks every 15 s: half of such a start-up
}
