"""Where samples come from: pods over HTTP, a Prometheus query, a recording."""
