"""The plant: what Kubernetes does with a decision, in simulated time."""
