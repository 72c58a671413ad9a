"""What transformers' `save_pretrained` writes of each small model: `python -m tests.reference.layouts [NAME ...]`.

Each saved folder is read by our engine, whose logits have to be transformers'. What is kept in
`tests/golden/layouts.json` are the names and shapes of the language model's tensors where they are not ours, and a
digest of our tensors as transformers holds them, once each stored number is `number` of its name and place: to that the
tests hold what is read of such a file. Which stored number is which of ours is found by saving the model with all its
numbers different.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from safetensors.numpy import load_file
from transformers import AutoConfig, AutoModelForImageTextToText

from macros.catalogue.checkpoints import Checkpoint
from macros.engine.forward import logits
from macros.engine.loaded import Cache

from . import TESTS, close, content, number
from .configs import PROMPT, configs
from .listing import collapsed
from .models import DECODERS, SEED, TOWERS, fill, filled, run, saved_buffers, source, text_part, token_ids
from .packing import unfuse

FILE = TESTS / "golden" / "layouts.json"
LARGEST = 2**24  # up to here each whole number is one of float32

# Multimodal models whose text is a type of ours, with towers as small as they go: their makers' names are the whole's.
WHOLES = {
    "inkling_mm_model": (
        "inkling_text",
        {"vision_config": {"hidden_size": 8, "n_layers": 1, "num_attention_heads": 2, "patch_size": 40}},
    ),
    "minimax_m3_vl": (
        "minimax_m3_vl_text",
        {
            "vision_config": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
            | {"num_attention_heads": 2, "image_size": 28}
        },
    ),
    "qwen4_exp": ("qwen4_exp_text", {"vision_config": TOWERS["qwen3_vl"] | {"out_hidden_size": 36}}),
    "llama4": (
        "llama4_text",
        {
            "vision_config": {"hidden_size": 8, "intermediate_size": 32, "num_hidden_layers": 1}
            | {"num_attention_heads": 2, "image_size": 28, "vision_output_dim": 8}
            | {"projector_input_dim": 8, "projector_output_dim": 8}
        },
    ),
    "mistral3": (
        "ministral3",
        {"vision_config": TOWERS["mistral_large4"] | {"image_size": 28}},
    ),
    "kimi_k25": (
        "deepseek_v3",
        {"vision_config": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}},
    ),
}


# Types whose files hold what no layout of ours describes: their tensors are read under transformers' names alone.
UNREAD = {
    "ernie4_5_vl_moe_text": "the files hold the routers' matrices transposed",
    "lara_mini": "the files hold the inputs of the delta rule, of unequal widths, in one tensor",
    "molmo2_text": "the files hold queries, keys and values, of unequal widths, in one tensor",
}


def model_of(name: str) -> torch.nn.Module:
    """The model of a type's small config, or of a whole around one, its weights random."""
    if name not in WHOLES:
        return filled(configs()[name])
    text, towers = WHOLES[name]
    inner = configs()[text]
    config = AutoConfig.for_model(name, text_config=inner, tie_word_embeddings=inner["tie_word_embeddings"], **towers)
    torch.manual_seed(SEED)
    make = AutoModelForImageTextToText.from_config
    return fill(make(config, attn_implementation="eager", experts_implementation="eager").eval())


def saved(model: torch.nn.Module, folder: str) -> dict[str, np.ndarray]:
    """What `save_pretrained` writes."""
    model.save_pretrained(folder)
    if model.config.model_type in (*DECODERS, "pp_formulanet_text"):  # of a class of another type
        path = Path(folder) / "config.json"
        keys = json.loads(path.read_bytes()) | {"model_type": model.config.model_type, "architectures": None}
        path.write_text(json.dumps(keys), "utf-8")
    return {
        name: array for path in sorted(Path(folder).glob("*.safetensors")) for name, array in load_file(path).items()
    }


def compare(name: str, model: torch.nn.Module, folder: str) -> Checkpoint:
    """The saved folder as ours reads it. AssertionError where its logits are not transformers'."""
    ids, read = token_ids(model, PROMPT), source(model)
    with torch.no_grad():
        there = run(model, ids, read).logits[0].numpy()
    asked = Checkpoint(name, Path(folder))
    cache = Cache(read=None if read is None else read[0].numpy())
    close(logits(asked.model.architecture, asked.model.config, asked.weights(), ids[0].numpy(), cache)[0], there)
    return asked


def counted(model: torch.nn.Module) -> dict[str, np.ndarray]:
    """The language model's parameters and buffers under their names, each of their numbers another one; all else 0."""
    for tensor in (*model.parameters(), *saved_buffers(model).values()):
        tensor.zero_()
    next_one, ours = 1, text_part(dict(model.named_parameters())) | text_part(saved_buffers(model))
    for tensor in ours.values():
        tensor.copy_(torch.arange(next_one, next_one + tensor.numel()).reshape(tensor.shape))
        next_one += tensor.numel()
    assert next_one < LARGEST, "too many numbers"
    return {name: tensor.numpy().astype(np.int64) for name, tensor in ours.items()}


def row(name: str) -> list[object] | None:
    """The stored names and shapes, collapsed, and the digest of what they hold; None where they are ours."""
    model = model_of(name)
    with TemporaryDirectory() as folder:
        saved(model, folder)
        asked = compare(name, model, folder)
    counts = asked.model.counts
    wanted = dict(counts.tensors()) | dict(counts.tensors(counts.buffers))
    places = {called: at for called, at in unfuse(asked.model.architecture, counted(model)).items() if called in wanted}
    is_ours, values = np.zeros(LARGEST, bool), np.zeros(LARGEST, np.float32)
    for at in places.values():
        is_ours[at] = True
    with TemporaryDirectory() as folder:
        stored = {called: array.astype(np.int64) for called, array in saved(model, folder).items()}
    stored = {called: at for called, at in stored.items() if is_ours[at].any()}
    for called, at in stored.items():
        values[at] = number(called, at.shape)
    tensors = {called: values[at] for called, at in places.items()}
    assert tensors.keys() == wanted.keys() and all(array.all() for array in tensors.values()), "not all is saved"
    if {called: at.shape for called, at in stored.items()} == wanted:
        return None
    return [collapsed({called: torch.empty(at.shape) for called, at in stored.items()}), content(tensors)]


def main(names: list[str]) -> None:
    rows = json.loads(FILE.read_bytes()) if names else {}
    for name in names or (*configs(), *WHOLES):
        print(name, flush=True)
        text = WHOLES[name][0] if name in WHOLES else None
        found = None if name in UNREAD else row(name)
        rows[name] = {"text": text, "stored": found and found[0], "content": found and found[1]}
    lines = [f"{json.dumps(name)}: {json.dumps(rows[name], separators=(',', ':'))}" for name in sorted(rows)]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
