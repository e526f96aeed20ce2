"""A simulated engine and fleet that serve real vLLM metrics pages over real HTTP."""
