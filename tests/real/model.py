"""Make a model without weights: a config.json and a byte-level tokenizer.

Run by the Python of the venv that serves it (``python model.py FOLDER [HEAD_DIM]``);
the server fills the weights by ``--load-format dummy``, so nothing is downloaded.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

# 256 bytes and two control tokens.
VOCABULARY = 258


def config(head_dim: int) -> dict[str, object]:
    """A Llama of two layers. vLLM's CPU attention takes head_dim 64, but not 16."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 4 * head_dim,
        "head_dim": head_dim,
        "intermediate_size": 512,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "bos_token_id": 256,
        "eos_token_id": 257,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    }


def save_tokenizer(folder: Path) -> None:
    """One token a byte: any text goes in, and any token comes out as text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(alphabet)}
    vocabulary["<s>"], vocabulary["</s>"] = 256, 257
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder)


def make(folder: Path, head_dim: int) -> None:
    """Write the model's files into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config(head_dim), indent=2))
    save_tokenizer(folder)


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 64)
