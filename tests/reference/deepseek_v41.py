"""DeepSeek V4.1 as mlx-vlm computes it: `python -m tests.reference.deepseek_v41`, from the repository.

Needs `mlx[cpu]` and `mlx-vlm`, in an environment of their own; no accelerator. What mlx-vlm adds to imitate 8 and 4
bits is turned off, and the projector has the exact GELU of vLLM and SGLang. The program compares the names and shapes
of the published config, whose arrays are never made, then a small model and random variants of it, text and tower, and
writes what the tests read into `tests/golden`.
"""

from __future__ import annotations

import json
import math
import random
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten, tree_unflatten
from mlx_vlm.models.deepseek_v41 import fakequant
from mlx_vlm.models.deepseek_v41.config import ModelConfig
from mlx_vlm.models.deepseek_v41.deepseek_v41 import Model
from mlx_vlm.models.deepseek_v41.engram import NgramHashState
from mlx_vlm.models.deepseek_v41.language import LanguageModel
from mlx_vlm.models.deepseek_v41.processing_deepseek_v41 import num_image_tokens, plan_image_grid
from mlx_vlm.models.deepseek_v41.vision import Aligner, ViT

from macros.catalogue import presets
from macros.catalogue.presets import make
from macros.engine.architectures import find
from macros.engine.forward import logits
from macros.engine.layouts import respelled
from macros.engine.loaded import Arrays
from macros.engine.towers import Grid, read_config
from macros.engine.towers import find as find_tower

from . import TESTS, changed, close, digest
from .configs import PROMPT, small_config
from .held_towers import compare

NAME, SEED, VARIANTS = "deepseek_v41_text", 20261129, 12
EXPERTS = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}
# Keys of a variant, and what they may be.
OTHERWISE: dict[str, tuple[Any, ...]] = {
    "hidden_size": (30, 44),
    "num_attention_heads": (4, 2),
    "head_dim": (16, 24),
    "qk_rope_head_dim": (4, 8),
    "q_lora_rank": (17, 26),
    "o_groups": (1, 3),
    "o_lora_rank": (5, 9),
    "rms_norm_eps": (1e-20, 1e-3),
    "hc_mult": (2, 4),
    "hc_sinkhorn_iters": (1, 3),
    "moe_intermediate_size": (11, 16),
    "n_routed_experts": (5, 9),
    "num_experts_per_tok": (1, 3),
    "norm_topk_prob": (False,),
    "routed_scaling_factor": (1.0, 2.5),
    "swiglu_limit": (0.5, 9.0),
    "sliding_window": (2, 5),
    "compress_rope_theta": (500.0, 9000.0),
    "index_n_heads": (3, 5),
    "index_head_dim": (8, 12),
    "index_topk": (3, 5),
    "candidate_topk_blocks": (3, 4),
    "candidate_block_size": (2, 3),
    "candidate_source_layer_id": (-1, 3),
    "compress_ratios": ([0, 2, 2, 1, 1, 1, 1, 0], [0, 1, 1, 2, 2, 2, 2, 0, 0]),
    "engram_layer_ids": ([0, 3], [2, 7]),
    "engram_max_ngram_size": (2,),
    "engram_n_heads": (2, 1),
    "engram_head_dim": (4, 7),
    "engram_pad_token_id": (0, 31),
    "image_token_id": (9, 96),
}


def theirs(raw: dict[str, Any]) -> LanguageModel:
    """mlx-vlm's model of a text config, with random weights and ids that no map shortens."""
    c = ModelConfig.from_dict(raw)
    model = LanguageModel(c)
    if model.layout is not None:
        model.engram_hash = NgramHashState(c, model.layout, token_map=list(range(c.vocab_size)))
    model.update(tree_unflatten(list(drawn(of_model(model)).items())))
    return model


def of_model(model: Any) -> dict[str, mx.array]:
    """A model's parameters by their names."""
    return dict(tree_flatten(model.parameters()))


def drawn(parameters: dict[str, mx.array]) -> dict[str, mx.array]:
    """Random numbers of the same shapes: norms and the like near what they begin with."""
    rng, made = np.random.default_rng(SEED), {}
    for name in sorted(parameters):
        shape = parameters[name].shape
        number = rng.normal(size=shape)
        near = 1 if name.endswith(("norm.weight", "norm1.weight", "norm2.weight", "q_weight", "k_weight")) else 0
        matrix = len(shape) > 1 and not near
        made[name] = mx.array((near + number / (shape[-1] ** 0.5 if matrix else 5)).astype(np.float32))
    return made


def published(parameters: dict[str, Any], reads: Any = lambda x: x) -> dict[str, Any]:
    """Arrays, or their shapes, by the names and in the form of the published file: experts one by one."""
    made: dict[str, Any] = {}
    for name, value in parameters.items():
        name = name.removeprefix("language_model.").replace("embed_tokens.", "embed.")
        part, _, inner = name.partition(".switch_mlp.")
        if inner:
            expert = EXPERTS[inner.partition(".")[0]]
            made |= {f"{part}.experts.{e}.{expert}.weight": one for e, one in enumerate(members(value))}
        else:
            for there, here in EXPERTS.items():
                name = name.replace(f".shared_experts.{there}.", f".shared_experts.{here}.")
            made[name] = flat(value) if name.endswith("wo_a.weight") else value
    return {name: reads(value) for name, value in made.items()}


def members(value: Any) -> list[Any]:
    """The experts of a stack: arrays, or shapes."""
    return [value[1:]] * value[0] if isinstance(value, tuple) else list(value)


def flat(value: Any) -> Any:
    """The groups of a matrix one below the other."""
    shape = value if isinstance(value, tuple) else value.shape
    rows = shape[0] * shape[1], shape[2]
    return rows if isinstance(value, tuple) else value.reshape(rows)


def here(parameters: dict[str, Any]) -> dict[str, Any]:
    """The same by our names."""
    spellings = find(NAME).spellings
    return {respelled(name, spellings): value for name, value in published(parameters).items()}


def hold_tensors(raw: dict[str, Any], there: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Fail unless both list the same tensors; ours without the buffers."""
    counts = make(NAME, raw).counts
    own = {name: tuple(map(int, shape)) for name, shape in counts.tensors()}
    both = own | {name: tuple(map(int, shape)) for name, shape in counts.tensors(counts.buffers)}
    assert both == there, sorted(both.items() ^ there.items())[:6]
    return own


def held(raw: dict[str, Any], ids: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray, float]:
    """A model's arrays by our names, its logits [T V], and how far ours are from them; both ways of tensors are held.

    mlx-vlm has to say the same of a text at once, and token by token.
    """
    model, ours = theirs(raw), make(NAME, raw)
    arrays = {name: np.array(value) for name, value in here(of_model(model)).items()}
    hold_tensors(raw, {name: a.shape for name, a in arrays.items()})
    out = np.array(model(mx.array(ids[None]), cache=None).logits[0])
    cache = model.make_cache()
    steps = [np.array(model(mx.array(ids[None, i : i + 1]), cache=cache).logits[0, 0]) for i in range(len(ids))]
    close(np.array(steps), out, what="mlx-vlm token by token ")
    mine, _ = logits(ours.architecture, ours.config, Arrays(arrays), ids)
    close(mine, out, what=f"{raw} ")
    return arrays, out, float(np.abs(mine - out).max() / max(1, np.abs(out).max()))


def text_of(raw: dict[str, Any]) -> np.ndarray:
    """Token ids, one of them an image's."""
    ids = np.random.default_rng(SEED).integers(0, raw["vocab_size"], PROMPT)
    ids[3] = raw["image_token_id"]
    return ids


def hold_published() -> None:
    """The tensors of the published config, whose arrays mlx-vlm never makes."""
    ours = presets.model("deepseek-v4.1-flash")
    model = Model(ModelConfig.from_dict(dict(ours.whole)))
    shapes = {name: tuple(a.shape) for name, a in of_model(model).items()}
    text = here({name: shape for name, shape in shapes.items() if name.startswith("language_model.")})
    hold_tensors(dict(ours.raw), text)
    tables = sum(math.prod(s) for name, s in text.items() if name.endswith("engram.embed.weight"))
    print(f"{len(text):,} tensors, {sum(map(math.prod, text.values())):,} values, of which {tables:,} in tables")
    [tower] = [part.counts for part in ours.components]
    rest = {name: shape for name, shape in shapes.items() if not name.startswith("language_model.")}
    assert dict(tower.tensors()) == rest, sorted(dict(tower.tensors()).items() ^ rest.items())[:6]
    print(f"{len(rest)} tensors of the tower, {sum(map(math.prod, rest.values())):,} values")


def variants(base: dict[str, Any]) -> list[list[Any]]:
    """Changed keys, parameters and a digest of the tensors, of variants that both compute alike."""
    found: dict[str, list[Any]] = {}
    for number in range(200):
        rng = random.Random(f"{NAME} {number}")
        new = {key: rng.choice(OTHERWISE[key]) for key in rng.sample(sorted(OTHERWISE), rng.choice((1, 2, 3)))}
        if len(found) == VARIANTS or json.dumps(new) in found or not is_possible(base | new):
            continue
        raw = base | new
        arrays, _, off = held(raw, text_of(raw))
        own = dict(make(NAME, raw).counts.tensors())
        found[json.dumps(new)] = [new, sum(arrays[name].size for name in own), digest(own)]
        print(f"{new}: {off:.1e}")
    return list(found.values())


def is_possible(raw: dict[str, Any]) -> bool:
    """Whether the sizes go together, as both ask for."""
    rows = raw["engram_n_heads"] * (raw["engram_max_ngram_size"] - 1)
    return (
        raw["num_attention_heads"] % raw["o_groups"] == 0
        and raw["index_topk"] <= raw["candidate_topk_blocks"] * raw["candidate_block_size"]
        and raw["qk_rope_head_dim"] < min(raw["head_dim"], raw["index_head_dim"])
        and rows <= small_config(NAME)["engram_n_heads"] * (small_config(NAME)["engram_max_ngram_size"] - 1)
    )


# --- the tower --------------------------------------------------------------------------------------------------------

TOWER, PART = "deepseek_v41", "vision_config"
SMALL_TOWER = {
    "model_type": TOWER,
    "text_config": {"model_type": NAME, "hidden_size": 22},
    PART: {
        "num_hidden_layers": 2,
        "hidden_size": 40,
        "num_attention_heads": 5,
        "intermediate_size": 27,
        "patch_size": 5,
        "rope_theta": 900.0,
        "downsample_ratio": 2,
    },
}
OF_TOWER: dict[str, tuple[Any, ...]] = {
    "num_hidden_layers": (1, 3),
    "hidden_size": (20, 60),
    "intermediate_size": (19, 33),
    "patch_size": (4, 7),
    "rope_theta": (50.0, 1e4),
    "downsample_ratio": (1, 3),
}


class Products:
    """Counts 2 for each multiply-add of linear layers and of products of two arrays, while mlx-vlm computes."""

    def __enter__(self) -> Products:
        self.flops, self.linear, self.matmul = 0, nn.Linear.__call__, mx.matmul

        def linear(layer: Any, x: mx.array) -> mx.array:
            self.flops += 2 * x.size * layer.weight.shape[0]
            return self.linear(layer, x)

        def matmul(a: mx.array, b: mx.array, **options: Any) -> mx.array:
            self.flops += 2 * a.size * b.shape[-1]
            return self.matmul(a, b, **options)

        nn.Linear.__call__, mx.matmul = linear, matmul
        return self

    def __exit__(self, *_: object) -> None:
        nn.Linear.__call__, mx.matmul = self.linear, self.matmul


def held_tower(raw: dict[str, Any], grid: Grid) -> dict[str, Any]:
    """What a file of a tower holds."""
    c = ModelConfig.from_dict(raw | {"text_config": {"hidden_size": raw["text_config"]["hidden_size"]}})
    tower = nn.Module()
    tower.vision, tower.aligner = ViT(c), Aligner(c)
    tower.aligner.act = nn.GELU()
    for name in ("image_start", "image_end", "image_newline"):
        tower[name] = mx.zeros((c.hidden_size,))
    weights = drawn(of_model(tower))
    tower.update(tree_unflatten(list(weights.items())))
    side = c.vision_patch_size
    pixels = np.random.default_rng(SEED).random((grid.rows * grid.columns, 3 * side * side)).astype(np.float32)
    with Products() as products:
        patches = tower.vision(mx.array(pixels), grid.rows, grid.columns)
        read = np.array(tower.aligner(patches, grid.rows, grid.columns))
    return (
        {"config_json": json.dumps(raw), "part": PART, "grid": np.array([grid.rows, grid.columns])}
        | {"input": pixels, "flops": np.array(products.flops), "read/0": read}
        | {f"w/{name}": np.array(value) for name, value in weights.items()}
    )


def tower_variants() -> list[list[Any]]:
    """What is changed, the grid, parameters, FLOPs, vectors and a digest of the tensors, of random variants."""
    found: dict[str, list[Any]] = {}
    for number in range(100):
        rng = random.Random(f"{TOWER} {number}")
        new = {f"{PART}.{key}": rng.choice(OF_TOWER[key]) for key in rng.sample(sorted(OF_TOWER), rng.choice((1, 2)))}
        if len(found) == VARIANTS or json.dumps(new) in found:
            continue
        grid = Grid(rng.randint(3, 11), rng.randint(3, 11))
        there = held_tower(changed(SMALL_TOWER, new), grid)
        compare(there)
        shapes = {name[2:]: a.shape for name, a in there.items() if name.startswith("w/")}
        total = sum(map(math.prod, shapes.values()))
        sizes = [grid.rows, grid.columns], total, int(there["flops"]), len(there["read/0"])
        found[json.dumps(new)] = [new, *sizes, digest(shapes)]
    return list(found.values())


def hold_tokens() -> None:
    """The tokens of images of many sizes, as mlx-vlm's processor plans them."""
    config, _ = read_config(find_tower(SMALL_TOWER, PART), SMALL_TOWER, PART)
    c = ModelConfig.from_dict(SMALL_TOWER | {"text_config": {"hidden_size": 22}})
    rng = random.Random(SEED)
    for _ in range(2000):
        height, width = (int(10 ** rng.uniform(1, 4)) for _ in range(2))
        rows, columns, *_ = plan_image_grid(width, height, c)
        assert config.image_tokens(height, width, 0) == num_image_tokens(rows, columns), (height, width)
    print("2,000 sizes of images: the same tokens")


def write(path: Path, rows: dict[str, list[Any]]) -> None:
    """Add variants to those of a file, a row a line."""
    known = json.loads(path.read_bytes()) | rows
    types = [f'"{name}": [\n' + ",\n".join(map(json.dumps, known[name])) + "\n]" for name in sorted(known)]
    path.write_text("{\n" + ",\n".join(types) + "\n}\n", "utf-8")
    print({name: f"{len(found)} variants, the same" for name, found in rows.items()})


def main() -> None:
    fakequant.DISABLE = True
    hold_tokens()
    tower, golden = held_tower(SMALL_TOWER, Grid(5, 8)), TESTS / "golden" / "towers"
    print(f"{TOWER}: {compare(tower):.1e}")
    versions = {"seed": SEED, "mlx-vlm": version("mlx-vlm")}
    np.savez_compressed(golden / f"{TOWER}.npz", meta_json=json.dumps(versions), **tower)
    write(golden / "variants.json", {TOWER: tower_variants()})
    hold_published()
    raw = small_config(NAME)
    ids = text_of(raw)
    arrays, out, off = held(raw, ids)
    print(f"{NAME}: {len(arrays)} tensors, {off:.1e}")
    buffers = dict(make(NAME, raw).counts.tensors(make(NAME, raw).counts.buffers))
    told = {"config_json": json.dumps(raw), "meta_json": json.dumps(versions)}
    stored = {f"{'b' if name in buffers else 'w'}/{name}": array for name, array in arrays.items()}
    file = TESTS / f"golden/{NAME}.npz"
    np.savez_compressed(file, **told, input_ids=ids[None], logits=out[None], hidden=np.zeros(0), **stored)
    write(TESTS / "golden" / "variants.json", {NAME: variants(raw)})


if __name__ == "__main__":
    main()
