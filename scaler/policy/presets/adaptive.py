"""The default: needs no numbers. Capacity is learned within the objectives, and load is forecast over a start-up."""

VALUES = {
    "ttftSlo": "3s",  # what people bear; engines that cannot keep the second one even when idle are not held to it
    "itlSlo": "100ms",
    "lookAhead": "auto",
    "lookBackPeriod": "10s",  # arrivals should tell soon; forecasts and capacity average by themselves
    "downscaleDelay": "1m",  # the forecast remembers longer: this only keeps single pods from going and coming
}
