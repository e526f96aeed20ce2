"""Reading a Prometheus text page fast, and the engines' dialects: bytes in, `Sample` out."""
