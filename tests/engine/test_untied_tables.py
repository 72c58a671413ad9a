"""Stacks whose tables are not tied: transformers 5.23 keeps one for each, one that neither reads, and the head's."""

import pytest
from reference import golden

from macros.catalogue.presets import make

# The parent of the tables, and what each is called, as transformers' own models on the meta device have them.
NAMES = {
    "bart": ("model", "embed_tokens", "shared"),
    "marian": ("model", "embed_tokens", "shared"),
    "nllb-moe": ("model", "embed_tokens", "shared"),
    "pegasus_x": ("model", "embed_tokens", "shared"),
    "bigbird_pegasus": ("model", "embed_tokens", "shared"),
    "led": ("led", "embed_tokens", "shared"),
    "prophetnet": ("prophetnet", "word_embeddings", "word_embeddings"),
    "switch_transformers": ("", "embed_tokens", "shared"),
}


@pytest.mark.parametrize("model_type", NAMES)
def test_each_stack_has_a_table_of_its_own(model_type):
    trunk, table, shared = NAMES[model_type]
    raw = golden(model_type).raw
    if model_type == "marian":
        raw = raw | {"share_encoder_decoder_embeddings": True, "decoder_vocab_size": raw["vocab_size"]}
    tied, untied = (dict(make("it", raw | {"tie_word_embeddings": tie}).counts.tensors()) for tie in (True, False))
    below = f"{trunk}." if trunk else ""
    new = {f"{below}encoder.{table}.weight", f"{below}decoder.{table}.weight", "lm_head.weight"}
    assert untied.keys() - tied.keys() == new and tied.keys() <= untied.keys()
    assert {untied[name] for name in (*new, f"{below}{shared}.weight")} == {tied[f"{below}{shared}.weight"]}
