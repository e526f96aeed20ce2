"""The data plane: what serves the model. It may import `scaler.policy` and nothing else of the scaler."""
