"""Checkpoints with random weights, for what is dropped on a page."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file


def gpt2(
    folder: Path,
    *,
    vocab_size: int = 320,
    n_positions: int = 128,
    width: int = 32,
    layers: int = 3,
    heads: int = 4,
    dtype: type = np.float32,
    files: int = 1,
    scale: float = 0.3,
) -> Path:
    """A GPT-2 of these sizes in a new folder."""
    rng = np.random.default_rng(5)
    shapes = {"wte.weight": (vocab_size, width), "wpe.weight": (n_positions, width)}
    shapes |= {"ln_f.weight": (width,), "ln_f.bias": (width,)}
    for i in range(layers):
        shapes |= {f"h.{i}.{norm}.{part}": (width,) for norm in ("ln_1", "ln_2") for part in ("weight", "bias")}
        for name, rows, columns in (
            ("attn.c_attn", width, 3 * width),
            ("attn.c_proj", width, width),
            ("mlp.c_fc", width, 4 * width),
            ("mlp.c_proj", 4 * width, width),
        ):
            shapes |= {f"h.{i}.{name}.weight": (rows, columns), f"h.{i}.{name}.bias": (columns,)}
    tensors = {
        f"transformer.{name}": (rng.standard_normal(shape, np.float32) * scale).astype(dtype)
        for name, shape in shapes.items()
    }
    config = {"model_type": "gpt2", "vocab_size": vocab_size, "n_positions": n_positions, "n_embd": width}
    save(folder, config | {"n_layer": layers, "n_head": heads}, tensors, files)
    return folder


def save(folder: Path, config: dict[str, Any], tensors: dict[str, np.ndarray], files: int = 1) -> list[str]:
    """Write a checkpoint into a new folder, with an index if there are several files, and returns their names."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    if files == 1:
        save_file(tensors, folder / "model.safetensors")
    else:
        file_of = {name: f"model-{i % files + 1:05}-of-{files:05}.safetensors" for i, name in enumerate(tensors)}
        for file in sorted({*file_of.values()}):
            save_file({name: tensors[name] for name, its in file_of.items() if its == file}, folder / file)
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": file_of}), "utf-8")
    return [path.name for path in folder.iterdir()]


def byte_pairs(folder: Path, texts: list[str], vocab_size: int = 320) -> None:
    """A tokenizer.json of the kind that GPT-2 has, trained on a few texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(texts * 50, trainer)
    made.save(str(folder / "tokenizer.json"))
