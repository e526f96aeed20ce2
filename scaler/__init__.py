"""vllm-scaler: a KEDA external scaler for LLM inference."""
