"""The longest context of a model: tokens that its position table has rows for, and what the last one adds."""

from __future__ import annotations

import numpy as np
import pytest
from reference import golden, goldens
from small import random_weights

from macros.catalogue import presets
from macros.engine.architectures import find
from macros.engine.forward import logits, trace
from macros.engine.loaded import Arrays


def has_table(name: str) -> bool:
    """Whether places are rows of a table in the file; sinusoids and distances have no end."""
    g = golden(name)
    sizes = (size for w in trace(g.architecture, g.config).weights.values() for size in w.shape)
    return any("n_positions" in size.expr.symbols for size in sizes)


WITH_TABLE = [name for name in goldens() if golden(name).config.position_reach is not None and has_table(name)]
KNOWN = [slug for slug in presets.paths() if presets.preset(slug).config is not None]


@pytest.mark.parametrize("name", WITH_TABLE)
def test_a_text_may_be_as_long_as_the_position_table_reaches(name):
    g, end = golden(name), golden(name).config.position_reach
    assert end is not None and end >= len(g.ids)
    ids = np.resize(g.ids, end + 1)
    assert np.isfinite(logits(g.architecture, g.config, g.weights(), ids[:end], g.start())[0]).all()
    with pytest.raises(IndexError):
        logits(g.architecture, g.config, g.weights(), ids, g.start())


@pytest.mark.parametrize("model_type", ["roberta", "xlm-roberta", "mpnet"])
@pytest.mark.parametrize("rows", [12, 17])
def test_the_rows_before_the_first_token_hold_none(model_type, rows):
    """RoBERTa and MPNet begin behind the padding token's number, 1 in all their published files."""
    raw = {"model_type": model_type, "vocab_size": 31, "hidden_size": 12, "num_hidden_layers": 1}
    raw |= {"num_attention_heads": 2, "intermediate_size": 7, "max_position_embeddings": rows}
    config, _ = find(model_type).config.read(raw)
    weights = Arrays(random_weights(raw))
    ids = np.arange(rows - 1) % 31
    assert config.position_reach == rows - 2
    assert np.isfinite(logits(find(model_type), config, weights, ids[:-1])[0]).all()
    with pytest.raises(IndexError):
        logits(find(model_type), config, weights, ids)


def test_contexts_as_their_makers_state_them():
    for slug in ("roberta-base", "roberta-large", "xlm-roberta-base", "xlm-roberta-large", "mpnet-base"):
        assert presets.model(slug).longest_context == (512, True)
    assert presets.model("all-mpnet-base-v2").longest_context == (512, True)
    assert presets.model("bge-m3").longest_context == (8192, True)


def test_ministral_has_a_full_layer_for_three_with_a_window():
    model = presets.model("ministral-8b")
    assert model.longest_context == (131_072, False)
    assert model.counts.cache_bytes(131_072) == 9 * 131_072 * 4096 + 27 * 32_768 * 4096


def test_recurrent_gemma_keeps_the_columns_that_the_next_step_reads():
    """transformers' class allocates `conv1d_width - 1` columns of each recurrent layer."""
    [kept] = (k for k in presets.model("recurrentgemma-2b").counts.kept if k.holds.value == "convolution")
    assert kept.elements.at(presets.model("recurrentgemma-2b").trace.symbols) == 18 * 3 * 2560
