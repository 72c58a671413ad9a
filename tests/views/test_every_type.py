"""Every covered type goes through what a model of the catalog goes through, with its small config as a preset."""

from __future__ import annotations

import json
import re

import jinja2
import pytest
from reference.configs import every_type

from macros.catalogue import presets
from macros.cli.skeleton import skeleton
from macros.counting.costs import of as costs_of
from macros.engine.dims import Poly
from macros.site import model_pages, page_macros
from macros.views.trace import operations
from macros.views.trace.parts import groups
from macros.views.words import descriptions

BLANKS = {'organization = ""': 'organization = "Tests"', 'released = ""': 'released = "2026"'}
BLANKS |= {'components = ""': 'components = "tests/reference/configs.json"'}
BLANKS |= {'config = ""': 'config = "tests/reference/configs.json"', 'family = ""': 'family = "Small"'}

# Weights that a file holds and that no operation of ours reads, by a part of their names.
UNREAD = {
    "big_bird": "pooler",  # of a head for other tasks
    "squeezebert": "pooler",
    "layoutlm": "pooler",
    "luke": ("pooler", "entity_", "w2e_query", "e2w_query", "e2e_query"),
    "udop": "decoder.relative_bias.biases",
    "led": "_global",  # for tokens that a task marks
    "eagle3": "2",  # which of the target's tokens are the head's
    "xlm": "lang_embeddings",
    "xlnet": ("mask_emb", "r_s_bias", "seg_embed"),  # of training, and of two segments
    "xmod": "adapter_modules",  # of the other languages
}

MORE = dict.fromkeys(("seamless_m4t", "seamless_m4t_v2"), {"speech_encoder_attention_heads": 3})


@pytest.fixture
def small(tmp_path):
    """A preset of a type in a folder of its own, and what takes it away again."""

    def made(model_type: str) -> presets.Model:
        raw = {name: value for name, value in every_type()[model_type].items() if name != "architectures"}
        (tmp_path / "config.json").write_text(json.dumps(raw | MORE.get(model_type, {})), "utf-8")
        text = skeleton(str(tmp_path / "config.json"), "a-small-one").text
        for blank, filled in BLANKS.items():
            text = text.replace(blank, filled)
        file = tmp_path / "a-small-one.toml"
        file.write_text(text, "utf-8")
        presets.read_also(file)
        return presets.model("a-small-one")

    yield made
    presets.read_also(None)


def page(slug: str) -> str:
    """A model's page with each of its macros called."""
    known = {name: with_link(call) for name, call in page_macros.MACROS.items()}
    return jinja2.Environment().from_string(model_pages.model_page(slug)).render(**known)


def with_link(call):
    def called(*given, **named):
        try:
            return call(*given, **named)
        except TypeError as wrong:
            if "page_link" not in str(wrong):
                raise
            return call(*given, **named, page_link=lambda path, **of: path)

    return called


@pytest.mark.parametrize("model_type", every_type())
def test_every_type_is_a_model(model_type, small):
    model = small(model_type)
    counts = model.counts
    assert descriptions.lacking(model.trace) == []
    assert sum(part.count for part in counts.parts) == counts.total
    assert sum(g.count for g in groups(model.drawn)) == counts.total
    assert sum((g.poly for g in groups(model.drawn)), Poly.of(0)) == model.drawn.counts.total_poly
    rows, drawn = list(operations.sections(model).operations()), model.drawn
    shown = {w for r, _ in rows for w in r.weights}
    unread = UNREAD.get(model_type, ())
    parts = (unread,) if isinstance(unread, str) else unread
    lost = {w.name for w in drawn.trace.weights.values() if w not in shown}
    assert lost == {w.name for w in drawn.trace.weights.values() if w not in shown and any(p in w.name for p in parts)}
    at = drawn.counts.values(T=11, S=29)
    assert sum(r.flops.at(at) * n for r, n in rows) == drawn.counts.flops.at(at)
    assert costs_of(counts)
    assert len(re.findall("<table", page("a-small-one"))) > 5
