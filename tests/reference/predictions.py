"""Modules for multi-token prediction as transformers builds them: `python -m tests.reference.predictions`.

From the repository. For each type whose modules transformers' `MtpModel` reads, the small config with two modules
becomes a model with random weights; ours has to have the same tensors and scores. Its list of tensors is written into
`tests/golden/predictions.json`, against which the tests hold ours.

transformers 5.24 differs from vLLM, which reads the files, in a few things: Step 3.5's modules share the model's LM
head there and have the heads of layers that see everything; of Inkling's it leaves out the norm of the embedding and,
in a prompt, the window.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
from transformers.cache_utils import MtpCache
from transformers.modeling_layers import MtpModel

from macros.catalogue.presets import Model, make
from macros.engine.architectures import find
from macros.engine.architectures.predicted import Module
from macros.engine.loaded import Arrays, Cache
from macros.engine.predictions import forward

from . import TESTS, close, digest, models
from .configs import PROMPT, configs
from .packing import unfuse

FILE = TESTS / "golden" / "predictions.json"
MODULES_EACH = 2
# What a config says of its modules besides their number.
SAYS: dict[str, dict[str, Any]] = {
    "deepseek_v3": {"mtp_mlp_layer_types": ["sparse"] * 2},
    "glm4_moe": {"mtp_mlp_layer_types": ["sparse"] * 2},
    "bailing_hybrid": {"mtp_layer_types": ["full_attention"] * 2, "mtp_mlp_layer_types": ["sparse"] * 2},
    "inkling_text": {
        "mtp_local_layer_ids": [1],
        "chain_hidden_post_norm": True,
        "sliding_window_size": PROMPT + 1,
    },
    "step3p5": {
        "mtp_layer_types": ["sliding_attention", "full_attention"],
        "mtp_mlp_layer_types": ["dense", "sparse"],
        "num_sliding_attention_heads": configs()["step3p5"]["num_attention_heads"],
        "swiglu_limits": None,
        "swiglu_limits_shared": None,
    },
    "mellum": {},
}


def says(model_type: str) -> dict[str, Any]:
    """What the config says of two modules, of Mellum's one."""
    return {"num_nextn_predict_layers": 1 if model_type == "mellum" else MODULES_EACH} | SAYS[model_type]


def raw_of(model_type: str) -> dict[str, Any]:
    """The small config with modules."""
    return configs()[model_type] | says(model_type)


def published(ours: Model, modules: MtpModel) -> dict[str, np.ndarray]:
    """The tensors of the modules under the published names, without those of the model."""
    module = ours.architecture.predicts
    assert isinstance(module, Module)
    found: dict[str, np.ndarray] = {}
    for name, tensor in modules.state_dict().items():
        if name.startswith("shared_post_norm."):
            found["model.mtp.chain_norm.weight"] = tensor.numpy()
        if not name.startswith("layers."):
            continue
        _, number, part, *rest = name.split(".")
        k = int(number)
        place = module.place.format(k=k, after=ours.config.n_layers + k)
        words = {
            "enorm": module.token_norm,
            "hnorm": module.state_norm,
            "eh_proj": module.projection,
            "post_norm": module.last_norm,
            "mtp_block": module.block,
        }
        found[".".join(word for word in (place, words[part].format(k=k), *rest) if word)] = tensor.numpy()
    return unfuse(ours.architecture, found)


def build(model_type: str) -> tuple[Model, torch.nn.Module, MtpModel]:
    """Ours, transformers' model, and its modules, each weight random."""
    raw = raw_of(model_type)
    ours = make("it", raw)
    main = models.filled(raw | {"num_mtp_layers": raw["num_nextn_predict_layers"]})
    return ours, main, models.fill(MtpModel(main, raw["num_nextn_predict_layers"]).eval())


def compare(model_type: str) -> dict[str, Any]:
    """What the config says, and a digest of the list of tensors. Raises AssertionError where ours differs in them or in
    the scores."""
    ours, main, modules = build(model_type)
    assert ours.prediction is not None
    weights, module, n = published(ours, modules), find(model_type).predicts, len(modules.layers)
    assert isinstance(module, Module)
    counts = ours.prediction.counts
    buffers = {name for name, _ in counts.tensors(counts.buffers)}
    there = {name: array.shape for name, array in weights.items() if name not in buffers}
    heads = {name for name, _ in counts.tensors() if module.head and name.endswith(module.head)}
    here = {name: shape for name, shape in counts.tensors() if name not in heads}
    assert here == there, sorted(here.items() ^ there.items())[:6]
    of_main = {name: tensor.detach().numpy() for name, tensor in main.state_dict().items()}
    weights |= {name: of_main[name] for name in of_main if name.startswith(("lm_head.", "model.embed_tokens."))}
    weights |= dict.fromkeys([*heads, "lm_head.weight"], main.lm_head.weight.numpy())
    embedding = main.get_input_embeddings()
    weights["model.embed_tokens.weight"] = embedding.weight.numpy()
    ids, generator = models.token_ids(main, PROMPT), torch.Generator().manual_seed(models.SEED)
    states = x = torch.randn((1, PROMPT, int(ours.config.d_model)), generator=generator)
    cache, places = MtpCache(config=main.config.get_mtp_config()), torch.arange(PROMPT)[None]
    for k in range(n):
        x = modules.forward_layer(k, x, places, cache, inputs_embeds=embedding(ids))
    scores = modules._project_to_logits(x[:, -1:])[0].numpy()
    start = Cache(states=states[0].numpy())
    close(
        forward(Arrays(weights), ids[0].numpy(), ours.config, start, module, ours.raw, n)[:, : scores.shape[1]], scores
    )
    return {"says": says(model_type), "tensors": digest(there)}


def main() -> None:
    rows = [f"{json.dumps(model_type)}: {json.dumps(compare(model_type))}" for model_type in SAYS]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
