"""A model of a few thousand weights for a real engine: its configuration and tokenizer, made here, nothing fetched.

The tokenizer has one token for each byte, so a text's length is its number of tokens. There are no weights: the
engine is told to make some up. What it says is noise, and takes work and time as any answer does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CONTEXT = 512
"""Tokens of prompt and answer together."""
_END = "<|endoftext|>"


def write(folder: Path) -> None:
    """Write a model's folder as Hugging Face lays it out."""
    files = {
        "config.json": _config(),
        "generation_config.json": {"bos_token_id": 0, "eos_token_id": 0},
        "tokenizer.json": _tokenizer(),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": CONTEXT,
            "eos_token": _END,
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1))


def _config() -> dict[str, Any]:
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "dtype": "bfloat16",
        "vocab_size": 1024,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": CONTEXT,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }


def _tokenizer() -> dict[str, Any]:
    """Byte-level BPE without merges."""
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    end = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "added_tokens": [{"id": 0, "content": _END, **end}],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "unk_token": None,
            "vocab": {character: i for i, character in enumerate([_END, *_alphabet()])},
            "merges": [],
        },
    }


def _alphabet() -> list[str]:
    """How byte-level BPE writes bytes: printable ones of Latin-1 as themselves, the others from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(0x100 + others.index(byte)) for byte in range(256)]
