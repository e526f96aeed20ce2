"""One request to a model: when it comes and how many tokens it has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the traffic makes it."""

    arrival_s: float
    """Seconds on the clock of the simulation."""
    prompt_tokens: int
    output_tokens: int
    """Tokens that it generates before it ends."""
    request_class: str = "chat"
    cached_tokens: int = 0
    """Tokens at the head of the prompt that the engine's prefix cache holds already."""

    def __post_init__(self) -> None:
        if self.prompt_tokens < 1:
            raise ValueError(f"prompt_tokens is {self.prompt_tokens}; a prompt has at least one token")
        if self.output_tokens < 1:
            raise ValueError(f"output_tokens is {self.output_tokens}; an answer has at least one token")
        if not 0 <= self.cached_tokens <= self.prompt_tokens:
            raise ValueError(
                f"cached_tokens is {self.cached_tokens}; it must lie between 0 and prompt_tokens ({self.prompt_tokens})"
            )
