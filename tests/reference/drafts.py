"""Draft heads as their makers' code builds them: `python -m tests.reference.drafts FOLDER [NAME ...]`, from
the repository.

FOLDER holds the repositories EAGLE (SafeAILab), Medusa (FasterDecoding), dflash (z-lab), SpecForge (sgl-project) and
speculators (vllm-project), whose modules are run as they are. Each small config, and random variants of it, become a
head with random weights, which reads random hidden states; ours has to have the same tensors, logits and FLOPs. The
program writes `tests/golden/drafts`: a checkpoint of each, and the tensors of the variants.
"""

from __future__ import annotations

import importlib.metadata
import json
import random
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import numpy as np
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoTokenizer, LlamaConfig, PretrainedConfig, Qwen3Config

from macros.catalogue.presets import Model, make
from macros.engine.forward import logits
from macros.engine.loaded import Arrays, Cache
from macros.engine.steps import Role

from . import DRAFTS, close, digest
from .configs import PROMPT

SEED = 20261126
VARIANTS = 12
TARGET = ("embed_tokens.weight", "lm_head.weight")  # as ours asks for the target's


class Made(NamedTuple):
    """A head, what it computes from token ids and hidden states, the target's tensors, the width of its input."""

    head: nn.Module
    run: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    target: nn.ModuleDict
    width: int
    counted: Callable[[torch.Tensor, torch.Tensor], Any] | None = None  # what has its FLOPs, if not `run`
    hidden: Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]] | None = None  # of a block


def target(raw: dict[str, Any], *names: str) -> nn.ModuleDict:
    """The target's embedding and LM head, as far as a head reads them."""
    made = {
        "embed_tokens": nn.Embedding(raw["vocab_size"], raw["hidden_size"]),
        "lm_head": nn.Linear(raw["hidden_size"], raw["vocab_size"], bias=False),
    }
    return nn.ModuleDict({name: made[name] for name in names})


def settings(raw: dict[str, Any], cls: type[PretrainedConfig]) -> PretrainedConfig:
    """A config of the maker's class."""
    made = cls(**{name: value for name, value in raw.items() if name not in ("model_type", "architectures")})
    if cls not in (LlamaConfig, Qwen3Config):
        made.rope_theta, made.rope_scaling = raw["rope_theta"], None
    made._attn_implementation = "eager"
    return made


def eagle(raw: dict[str, Any]) -> Made:
    from eagle.model.cnets1 import Model
    from eagle.model.configs import EConfig

    head, other = Model(settings(raw, EConfig), bias=raw.get("bias", True)), target(raw, "lm_head")
    other["embed_tokens"] = head.embed_tokens
    del head.embed_tokens
    head.__dict__["embed_tokens"] = other["embed_tokens"]
    return Made(head, lambda ids, x: other["lm_head"](head(x, ids)), other, raw["hidden_size"])


def eagle3(raw: dict[str, Any]) -> Made:
    from eagle.model.cnets import Model
    from eagle.model.configs import EConfig

    head, other = Model(settings(raw, EConfig)), target(raw)
    other["embed_tokens"] = head.embed_tokens
    del head.embed_tokens
    head.__dict__["embed_tokens"] = other["embed_tokens"]
    width = 3 * raw.get("target_hidden_size", raw["hidden_size"])
    return Made(head, lambda ids, x: head.lm_head(head.norm(head(x, ids))), other, width)


def eagle3_of_specforge(raw: dict[str, Any]) -> Made:
    from specforge.modeling.draft.llama3_eagle import LlamaForCausalLMEagle3

    head, other = LlamaForCausalLMEagle3(settings(raw, LlamaConfig)), target(raw)
    other["embed_tokens"] = head.embed_tokens
    del head.embed_tokens
    width = 3 * raw.get("target_hidden_size", raw["hidden_size"])
    return Made(head, lambda ids, x: head.lm_head(head(x, other["embed_tokens"](ids))), other, width)


def eagle3_of_speculators(raw: dict[str, Any]) -> Made:
    from speculators.models.eagle3.model_definitions import model_classes

    inner = raw["transformer_layer_config"]
    classes = model_classes[inner["model_type"]]
    of_layers = settings(inner, {"llama": LlamaConfig, "qwen3": Qwen3Config}[inner["model_type"]])
    width, eps, features = inner["hidden_size"], inner["rms_norm_eps"], len(raw["eagle_aux_hidden_state_layer_ids"])
    head, other = nn.Module(), target(inner, "embed_tokens")
    # As the class's __init__ and forward do, which also need the target's files.
    head.fc = nn.Linear(features * width, width, bias=False)
    first = classes.first_layer_class(of_layers, layer_idx=0, norm_before_residual=raw["norm_before_residual"])
    rest = (classes.decoder_layer_class(of_layers, n) for n in range(1, inner["num_hidden_layers"]))
    head.layers = nn.ModuleList([first, *rest])
    head.norm = classes.norm_class(width, eps=eps)
    if raw["norm_before_fc"]:
        head.input_norm = classes.norm_class(features * width, eps=eps)
    if raw["fc_norm"]:
        head.fc_norm = nn.ModuleList([classes.norm_class(width, eps=eps) for _ in range(features)])
    head.lm_head = nn.Linear(width, raw["draft_vocab_size"], bias=False)
    head.register_buffer("t2d", torch.ones(inner["vocab_size"], dtype=torch.bool))
    head.register_buffer("d2t", torch.zeros(raw["draft_vocab_size"], dtype=torch.long))
    turning = classes.rotary_emb_class(of_layers)

    def run(ids: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        if raw["norm_before_fc"]:
            x = head.input_norm(x)
        if raw["fc_norm"]:
            x = torch.cat([norm(part) for norm, part in zip(head.fc_norm, x.chunk(features, -1))], -1)
        tokens = ids.shape[1]
        x = torch.cat([other["embed_tokens"](ids), head.fc(x)], -1)
        hidden = torch.full((tokens, tokens), -torch.inf).triu(1)[None, None]
        for layer in head.layers:
            x = layer(x, attention_mask=hidden, position_embeddings=turning(x, torch.arange(tokens)[None]))
        return head.lm_head(head.norm(x))

    return Made(head, run, other, features * width)


def medusa(raw: dict[str, Any]) -> Made:
    from medusa.model.medusa_model_new import MedusaLlamaModel

    whole = MedusaLlamaModel(PretrainedConfig(**raw))
    return Made(
        whole.medusa_head,
        lambda ids, x: torch.stack([head(x) for head in whole.medusa_head], dim=2),
        target(raw),
        raw["hidden_size"],
    )


def dflash(raw: dict[str, Any]) -> Made:
    from dflash.model import DFlashDraftModel

    return _dflash(raw, DFlashDraftModel)


def dflash_of_specforge(raw: dict[str, Any]) -> Made:
    from specforge.modeling.draft.dflash import DFlashDraftModel

    return _dflash(raw, DFlashDraftModel)


def domino(raw: dict[str, Any]) -> Made:
    """Its own loop applies its correction to the whole block for each token; the counted one once."""
    from specforge.modeling.draft.domino import DominoDraftModel

    made = _dflash(raw, DominoDraftModel)
    head, other, size = made.head, made.target, raw["block_size"]
    first, shift = head.pure_draft_prefix_len, 0 if head.shift_label else 1

    def run(ids: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        out, block = made.hidden(ids, x)
        base, rows = other["lm_head"](out), []
        for place in range(1, size):
            before = other["embed_tokens"](block)[:, None]
            final = head.apply_logits_head(base[:, None], prev_token_embeddings=before, hidden_states=out[:, None])
            rows.append(final[:, 0, place - 1 + shift])
            block[:, place] = rows[-1].argmax(-1)
        return torch.stack(rows, 1)[:, None]

    def once(ids: torch.Tensor, x: torch.Tensor) -> None:
        out, block = made.hidden(ids, x)
        out = out[:, shift : shift + size - 1]
        other["lm_head"](out)
        states = head.prefix_gru(other["embed_tokens"](block[:, : size - 1]))[0]
        head.embed_proj(torch.cat([out[:, first:], states[:, first:]], -1))

    return made._replace(run=run, counted=once)


def dspark(raw: dict[str, Any]) -> Made:
    from specforge.modeling.draft.dspark import DSparkDraftModel

    made = _dflash(raw, DSparkDraftModel)
    head, other, size = made.head, made.target, raw["block_size"]

    def run(ids: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        out, block = made.hidden(ids, x)
        out = out[:, 1 - size :]
        scores, tokens = other["lm_head"](out), block[:, :-1]
        if head.markov_head is not None:
            chosen, scores = head.markov_head.sample_block_tokens(
                scores, first_prev_token_ids=block[:, 0], hidden_states=out
            )
            tokens = torch.cat([block[:, :1], chosen[:, :-1]], 1)
        head.predict_confidence(out, prev_token_ids=tokens)
        return scores[:, None]

    return made._replace(run=run)


def _dflash(raw: dict[str, Any], cls: type[nn.Module]) -> Made:
    from specforge.algorithms.common.dflash_family_model import create_dflash_sdpa_mask

    head, other = cls(settings(raw, Qwen3Config)), target(raw, "embed_tokens", "lm_head")
    size, mask = raw["block_size"], raw["dflash_config"]["mask_token_id"]
    window = raw.get("sliding_window") if "sliding_attention" in raw["layer_types"] else None

    def hidden(ids: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        tokens = ids.shape[1]
        of_block = torch.cat([ids[:, -1:], torch.full((1, size - 1), mask)], 1)
        block = other["embed_tokens"](of_block)
        positions = torch.arange(tokens + size)[None]
        if window is None:
            out = head(positions, noise_embedding=block, target_hidden=x)
        else:  # as its training loop gives each kind of layer its mask
            start, kept = torch.tensor([[tokens]]), torch.ones(1, 1, dtype=torch.bool)
            masks = {
                kind: create_dflash_sdpa_mask(start, kept, tokens, size, "cpu", sliding_window=width)
                for kind, width in (("full_attention", None), ("sliding_attention", window))
            }
            out = head(positions, attention_mask=masks, noise_embedding=block, target_hidden=x)
        return out, of_block

    def run(ids: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return other["lm_head"](hidden(ids, x)[0][:, 1 - size :])[:, None]

    width = len(raw["dflash_config"]["target_layer_ids"]) * raw["hidden_size"]
    return Made(head, run, other, width, hidden=hidden)


LAYERS = dict(hidden_size=24, intermediate_size=40, num_attention_heads=6, num_key_value_heads=2, rms_norm_eps=1e-4)
OF_LLAMA = dict(model_type="llama", vocab_size=61, max_position_embeddings=64, rope_theta=700.0) | LAYERS

OF_BLOCKS = OF_LLAMA | {"model_type": "qwen3", "num_hidden_layers": 2, "head_dim": 10, "num_target_layers": 11}
OF_BLOCKS |= {"attention_bias": False, "layer_types": ["full_attention"] * 2, "sliding_window": None}
OF_DOMINO = {"projector_type": "domino", "mask_token_id": 60, "target_layer_ids": [1, 4, 8], "emb_dim": 9}
OF_DOMINO |= {"gru_hidden_dim": 13, "pure_draft_prefix_len": 1, "shift_label": True}
OF_DSPARK = {"projector_type": "dspark", "mask_token_id": 60, "target_layer_ids": [1, 4, 8], "markov_rank": 7}
OF_DSPARK |= {"confidence_head_alpha": 1.0, "attention_mode": "gqa"}

SMALL: dict[str, tuple[Callable[[dict[str, Any]], Made], dict[str, Any], dict[str, list[Any]]]] = {
    "eagle": (
        eagle,
        OF_LLAMA | {"architectures": ["LlamaForCausalLMEagle"], "num_hidden_layers": 2, "bias": True, "qkv_bias": True},
        {"bias": [True, False], "num_hidden_layers": [1, 2, 3], "qkv_bias": [True, False]},
    ),
    "eagle3": (
        eagle3,
        OF_LLAMA
        | {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "draft_vocab_size": 23}
        | {"target_hidden_size": 20},
        {"draft_vocab_size": [23, 47], "target_hidden_size": [20, 24, 31]},
    ),
    "eagle3_specforge": (
        eagle3_of_specforge,
        OF_LLAMA
        | {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "draft_vocab_size": 23}
        | {"fc_norm": True, "head_dim": 10, "target_hidden_size": 20},
        {"fc_norm": [True, False], "head_dim": [4, 10], "target_hidden_size": [20, 31]},
    ),
    "eagle3_speculators": (
        eagle3_of_speculators,
        {
            "architectures": ["Eagle3Speculator"],
            "speculators_model_type": "eagle3",
            "transformer_layer_config": OF_LLAMA
            | {"model_type": "qwen3", "num_hidden_layers": 3, "head_dim": 10, "attention_bias": True},
            "draft_vocab_size": 23,
            "norm_before_residual": True,
            "norm_before_fc": True,
            "fc_norm": False,
            "eagle_aux_hidden_state_layer_ids": [1, 4, 7, 9],
        },
        {"norm_before_residual": [True, False], "norm_before_fc": [True, False], "draft_vocab_size": [23, 47]},
    ),
    "medusa": (
        medusa,
        dict(vocab_size=61, hidden_size=24, medusa_num_heads=3, medusa_num_layers=1),
        {"medusa_num_heads": [1, 2, 3, 7]},
    ),
    "dflash": (
        dflash,
        OF_LLAMA
        | {"model_type": "qwen3", "architectures": ["DFlashDraftModel"], "num_hidden_layers": 2, "head_dim": 10}
        | {"attention_bias": True, "layer_types": ["full_attention"] * 2, "sliding_window": None, "block_size": 5}
        | {"num_target_layers": 11, "dflash_config": {"mask_token_id": 60, "target_layer_ids": [1, 4, 8]}},
        {"attention_bias": [True, False], "head_dim": [4, 10], "block_size": [2, 5, 8]},
    ),
    "dflash_specforge": (
        dflash_of_specforge,
        OF_LLAMA
        | {"model_type": "qwen3", "architectures": ["DFlashDraftModel"], "num_hidden_layers": 2, "head_dim": 10}
        | {"attention_bias": False, "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 7}
        | {"use_sliding_window": True, "block_size": 4, "num_target_layers": 11}
        | {"dflash_config": {"mask_token_id": 60, "target_layer_ids": [1, 4, 8]}},
        {"block_size": [2, 4, 5], "sliding_window": [5, 7, 9]},
    ),
    "domino": (
        domino,
        OF_BLOCKS | {"architectures": ["DominoDraftModel"], "block_size": 6} | {"dflash_config": OF_DOMINO},
        {
            "dflash_config": [
                OF_DOMINO | {"pure_draft_prefix_len": first, "shift_label": shift, "gru_hidden_dim": width}
                for first in (0, 1, 3)
                for shift in (True, False)
                for width in (13, 24)
            ],
            "block_size": [5, 6, 8],
        },
    ),
    **{
        f"dspark_{kind}": (
            dspark,
            OF_BLOCKS
            | {"architectures": ["DSparkDraftModel"], "block_size": 5}
            | {"dflash_config": OF_DSPARK | {"markov_head_type": kind, "confidence_head_with_markov": kind == "gated"}},
            {
                "dflash_config": [
                    OF_DSPARK | {"markov_head_type": kind, "markov_rank": rank, "enable_confidence_head": estimates}
                    for rank in (0, 7, 11)
                    for estimates in (True, False)
                ],
                "num_attention_heads": [6, 12],
                "num_key_value_heads": [2, 3],
                "block_size": [2, 5, 8],
            },
        )
        for kind in ("vanilla", "gated", "rnn")
    },
}
SIZES = {
    "vocab_size": [61, 67],
    "hidden_size": [24, 48],
    "intermediate_size": [40, 44],
    "num_attention_heads": [6, 12],
    "num_key_value_heads": [2, 3, 6],
    "rope_theta": [700.0, 1e4],
}


def filled(made: Made, seed: int) -> None:
    """Random weights that leave no norm at 1."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in [*made.head.parameters(), *made.target.parameters()]:
            spread = torch.randn_like(parameter)
            parameter.copy_(spread / parameter.shape[-1] ** 0.5 if parameter.ndim > 1 else 1 + spread / 5)


def stored(made: Made) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A head's own tensors as its file has them, and the target's that it reads."""
    own = {name: tensor.numpy().copy() for name, tensor in made.head.state_dict().items()}
    return own, {name: tensor.detach().numpy().copy() for name, tensor in made.target.state_dict().items()}


def compared(name: str, raw: dict[str, Any], seed: int) -> tuple[float, dict[str, np.ndarray], list[Any]]:
    """The largest difference of ours; what a golden file holds; the parameters, and a digest of the own tensors."""
    made = SMALL[name][0](raw)
    made.head.float().eval().requires_grad_(False)
    filled(made, seed)
    own, others = stored(made)
    ours = make(name, raw)
    here = dict(ours.counts.tensors()) | dict(ours.counts.tensors(ours.counts.buffers))
    there = {one: array.shape for one, array in own.items()}
    assert here == there, sorted(here.items() ^ there.items())
    assert {w.name for w, _ in ours.counts.trace.borrowed.values()} == others.keys(), others.keys()
    generator = torch.Generator().manual_seed(seed)
    vocabulary = raw.get("vocab_size") or raw["transformer_layer_config"]["vocab_size"]
    ids = torch.randint(0, vocabulary, (1, PROMPT), generator=generator)
    states = torch.randn(1, PROMPT, made.width, generator=generator)
    # As plain products, which the counters of all versions know on a CPU.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        (made.counted or made.run)(ids, states)
    with torch.no_grad():
        reference = made.run(ids, states)[0].numpy()
    assert counter.get_total_flops() == flops(ours), (counter.get_total_flops(), flops(ours))
    start = Cache(states=states[0].numpy())
    mine, _ = logits(ours.architecture, ours.config, Arrays(own | others), ids[0].numpy(), start)
    close(mine, reference)
    worst = float(np.abs(mine - reference).max() / max(1, np.abs(reference).max()))
    arrays = {f"w/{one}": array for one, array in own.items()} | {f"t/{one}": array for one, array in others.items()}
    told = {"input_ids": ids.numpy(), "states": states.numpy(), "logits": reference[None]}
    trained = sum(parameter.numel() for parameter in made.head.parameters())
    return worst, {**told, **arrays}, [trained, digest(there)]


def flops(ours: Model) -> int:
    """FLOPs of a step over the prompt with the scores for each token; a block has them anyway."""
    root, values = ours.counts.trace.root, ours.counts.values(T=1, S=1)
    heads = (node.flops.at(values) for node in root.children if node.role is Role.UNEMBED)
    more = 0 if ours.architecture.name in ("dflash", "domino", "dspark") else PROMPT - 1
    return ours.counts.flops_at(PROMPT, PROMPT) + more * sum(heads)


def varied(name: str, chance: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """A random variant of a small config: the changes, and the config."""
    _, raw, keys = SMALL[name]
    changes = {key: chance.choice(values) for key, values in keys.items()}
    inner = raw.get("transformer_layer_config", raw)
    sizes = {key: chance.choice(values) for key, values in SIZES.items() if key in inner and key not in keys}
    if inner is not raw:
        return changes | {"transformer_layer_config": inner | sizes}, raw | changes | {
            "transformer_layer_config": inner | sizes
        }
    return changes | sizes, raw | changes | sizes


def stand_ins(folder: Path) -> None:
    """Make the repositories importable: without what they need for whole models alone."""
    sys.path[:0] = [str(folder / name) for name in ("EAGLE", "Medusa", "dflash", "SpecForge", "speculators/src")]
    torch._dynamo.config.disable = True
    version = importlib.metadata.version
    importlib.metadata.version = lambda name: "0" if name == "speculators" else version(name)
    for name, classes in (
        ("medusa.model.modeling_llama_kv", ("LlamaForCausalLM",)),
        ("medusa.model.modeling_mistral_kv", ("MistralForCausalLM",)),
        ("medusa.model.utils", ()),
        ("medusa.model.kv_cache", ("initialize_past_key_values",)),
        ("medusa.model.medusa_choices", ("mc_sim_7b_63",)),
    ):
        module = types.ModuleType(name)
        for one in classes:
            setattr(module, one, type(one, (nn.Module,), {"__init__": lambda self, config: nn.Module.__init__(self)}))
        sys.modules[name] = module
    for name in ("datasets", "hs_connectors", "openai", "openai.types", "openai.types.chat", "openai.types.completion"):
        sys.modules.setdefault(name, MagicMock())
    AutoTokenizer.from_pretrained = lambda *given, **more: None


def main(folder: str, *names: str) -> None:
    warnings.simplefilter("ignore")
    stand_ins(Path(folder).resolve())
    chance, file = random.Random(SEED), DRAFTS / "tensors.json"
    rows = json.loads(file.read_text("utf-8"))  # the heads of `assistants` too, which stay
    for name in names or SMALL:
        raw = SMALL[name][1]
        worst, arrays, row = compared(name, raw, SEED)
        DRAFTS.mkdir(exist_ok=True)
        np.savez_compressed(DRAFTS / f"{name}.npz", config_json=json.dumps(raw), **arrays)
        rows[name] = [[{}, *row]]
        for number in range(VARIANTS):
            changes, variant = varied(name, chance)
            difference, _, row = compared(name, variant, SEED + number)
            worst = max(worst, difference)
            rows[name].append([changes, *row])
        print(f"{name}: {worst:.1e}")
    rows = {name: rows[name] for name in dict.fromkeys([*SMALL, *rows]) if name in rows}
    lines = (f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, of)) + "\n]" for name, of in rows.items())
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
