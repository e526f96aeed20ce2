"""The default: needs no numbers. Capacity is learned, a rise is carried on over the measured start-up time."""

VALUES = {
    "smoothingFactor": "0.5",  # two or three ticks: less than a start-up, more than a jitter
    "burstThreshold": "1",  # demand that grows by the whole present fleet within a second does not wait
    "lookAhead": "auto",
    "upscaleDelay": "2s",
    "downscaleDelay": "5m",  # dearer than a wrong start is a start that has to be made twice
    "downscaleLimit": "25%/1m",
}
