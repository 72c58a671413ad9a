"""The map that grows: at any width and with any layers its parts are those of the model that is built so."""

import html
import re

import pytest

from macros.catalogue import presets
from macros.engine.errors import Problem
from macros.views.guide import growing_map


@pytest.mark.parametrize("slug", ["llama3-8b", "qwen3-8b", "gpt2", "mistral-7b-v0.1"])
@pytest.mark.parametrize("factor, layers", [(1, 32), (2, 5), (3, 17)])
def test_the_parts_are_those_of_a_model_of_that_width(slug, factor, layers):
    """The same model from a config with the width, the heads and the feed-forward network widened."""
    model, raw = presets.model(slug), dict(presets.preset(slug).config)
    width = int(model.counts.values()["d_model"]) * factor
    for names, value in (
        (("hidden_size", "n_embd"), width),
        (("num_hidden_layers", "n_layer"), layers),
        (("num_attention_heads", "n_head"), int(model.counts.values()["n_heads"]) * factor),
        (("intermediate_size",), int(model.counts.values()["d_ff"]) * factor),
    ):
        raw |= {name: value for name in names if name in raw}
    raw |= {"head_dim": int(model.counts.values()["d_head"])} if slug != "gpt2" else {}
    raw.pop("layer_types", None)
    raw.pop("max_window_layers", None)
    assert growing_map.total_of(growing_map.parts(model), width, layers) == presets.make("wider", raw).counts.total


def test_twice_the_width_and_twice_the_layers():
    data = growing_map.parts(presets.model("llama3-8b"))
    assert growing_map.total_of(data, 8192, 32) == 29_482_295_296
    made = html.unescape(str(growing_map.grows_with("llama3-8b")))
    assert re.findall(r'ep-panel-title">([^<]*)', made) == [
        "Width 2,048, 32 layers: 2.34B",
        "Width 4,096, 32 layers: 8.03B",
        "Width 8,192, 32 layers: 29.5B",
    ]
    assert "8,030,261,248 parameters are 16.1 GB in bfloat16: GeForce RTX 4090 is the smallest of five" in made


def test_a_model_that_does_not_grow_so_is_refused():
    with pytest.raises(Problem, match="dense model"):
        growing_map.grows_with("mamba-130m")
