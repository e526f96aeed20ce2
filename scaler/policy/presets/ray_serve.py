"""Ray Serve's rule with an average over the count: for a model on several GPUs, where jitter must not buy any.

`smoothingFactor` here is the exponential moving average that such designs describe (0.6 · now + 0.4 · before), while
Ray Serve's own deprecated key of that name is a gain. The gains are `upscalingFactor` and `downscalingFactor`.
"""

VALUES = {
    "targetOngoingRequests": "12",
    "smoothingFactor": "0.6",
    "upscalingFactor": "2",
    "downscalingFactor": "0.5",
    "upscaleDelay": "3s",  # half a second of jitter must not start four GPUs
    "downscaleDelay": "300s",  # a cold start takes 30 s to 2 min
    "delayMode": "consecutive",
    "lookAhead": "0",
}
