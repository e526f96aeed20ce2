"""What one replica can do: the sizes of its scheduler and KV cache, and how long one step of it takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepTime:
    """The duration of one engine step, in seconds, as a sum over what the step has to do.

    A step reads all weights once (`overhead_s`), reads the KV cache of every decoding request
    (`per_kv_token_s`), computes and samples one token for each of them (`per_sequence_s`), and computes
    the prompt tokens of this step (`per_prompt_token_s`) with their attention to the tokens before them
    (`per_attention_pair_s`). The first three are bound by memory bandwidth, the last two by compute.
    """

    overhead_s: float
    """Reading the weights, launching kernels, scheduling: paid by every step."""
    per_sequence_s: float
    """For each request that is in the step."""
    per_kv_token_s: float
    """For each token in the context of a decoding request."""
    per_prompt_token_s: float
    """For each prompt token computed in the step."""
    per_attention_pair_s: float
    """For each pair of a prompt token of the step and a token at or before its place."""
    jitter: float = 0.0
    """Standard deviation of the logarithm of a factor with mean one that is drawn anew every 32 steps:
    what clocks, neighbours and kernels do to a real step."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of replica, in the names of vLLM's own options."""

    name: str
    step_time: StepTime
    num_gpu_blocks: int
    block_size: int = 16
    """Tokens in one KV block."""
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    """The token budget of one step: prompts longer than what is left of it are computed in chunks."""
    max_model_len: int = 131_072
    """Prompt and output together; longer requests are refused."""

    def __post_init__(self) -> None:
        for key in ("num_gpu_blocks", "block_size", "max_num_seqs", "max_model_len"):
            if (value := getattr(self, key)) < 1:
                raise ValueError(f"{key} is {value}; it must be at least 1")
        if self.max_num_batched_tokens <= self.max_num_seqs:
            raise ValueError(
                f"max_num_batched_tokens is {self.max_num_batched_tokens}; it must be above max_num_seqs "
                f"({self.max_num_seqs}), else a full batch leaves no room for prompts"
            )

    @property
    def kv_tokens(self) -> int:
        """Tokens that the KV cache holds."""
        return self.num_gpu_blocks * self.block_size

    def blocks(self, tokens: int) -> int:
        """Blocks that hold so many tokens."""
        return -(-tokens // self.block_size)


# Both profiles are a 32.8-billion-parameter model with 64 layers, 64 query and 8 KV heads of 128 (Qwen3-32B) on
# two GPUs. From public data sheets and these shapes:
#   KV            2 · 64 · 8 · 128 · 2 B = 262,144 B a token, half of it on each GPU
#   read          bytes on one GPU ÷ the bandwidth that it reaches
#   compute       2 · 32.8e9 flop a token ÷ what two GPUs reach of their dense peak
#   attention     4 · 64 · 64 · 128 = 2.1e6 flop a pair of tokens, at the same rate
#   KV room       0.9 · memory − weights − 4 GB for activations, ÷ 262,144 B
# `per_sequence_s` adds to the compute of one token its share of sampling, detokenising and scheduling, and is set
# so that both sustain 1.4 to 1.5 requests/s of 4,000 prompt and 1,000 output tokens within a TTFT of 3 s and a TPOT
# of 100 ms: what is published for this model on two GPUs (llm-d's guide to SLO-aware autoscaling).

TIME_BOUND = Profile(
    name="time_bound",
    # 192 GB, 5.3 TB/s (65 % reached) and 1.3 Pflop/s in BF16 (40 % reached) a GPU: 32.8 GB of weights on each are
    # read in 9.5 ms, plus 6 ms of host work.
    step_time=StepTime(
        overhead_s=0.0155,
        per_sequence_s=115e-6,
        per_kv_token_s=38e-9,
        per_prompt_token_s=63e-6,
        per_attention_pair_s=2.0e-9,
        jitter=0.05,
    ),
    num_gpu_blocks=65_800,
)
"""KV room for more than it can decode in time: it fails by its time per output token."""

MEMORY_BOUND = Profile(
    name="memory_bound",
    # 80 GB, 3.35 TB/s (70 % reached) and 2 Pflop/s in FP8 (45 % reached) a GPU: 16.4 GB of weights on each are read
    # in 7 ms, plus 6 ms of host work.
    step_time=StepTime(
        overhead_s=0.013,
        per_sequence_s=80e-6,
        per_kv_token_s=56e-9,
        per_prompt_token_s=37e-6,
        per_attention_pair_s=1.1e-9,
        jitter=0.05,
    ),
    num_gpu_blocks=25_500,
)
"""Fast steps and little KV room: it fails by requests that wait for room, so by its time to first token."""

PROFILES = {profile.name: profile for profile in (TIME_BOUND, MEMORY_BOUND)}
"""The profiles by name."""
