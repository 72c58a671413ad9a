"""Counts against reference lists, published totals and closed forms that are derived a second time here."""

from __future__ import annotations

import math

import pytest
from fuzzing import examples
from hypothesis import given
from hypothesis import strategies as st
from reference import checkpoint, golden
from small import configs, counts, degree

from macros.catalogue import presets
from macros.counting import identities
from macros.counting.costs import Costs
from macros.counting.parts import grouped
from macros.engine.architectures import architectures, find
from macros.engine.errors import Problem

FIRST = ("gpt2", "llama", "mistral")


def slugs(*model_types: str) -> list[str]:
    """The presets of these model types, or of all that are registered."""
    return [
        s
        for s in presets.paths()
        if (c := presets.preset(s).config) and c.get("model_type") in (model_types or architectures())
    ]


def expand(rows):
    for name, ranges, shape in rows:
        for i in [n for a, b, s in ranges["i"] for n in range(a, b + 1, s)] if ranges else [""]:
            for e in [n for a, b, s in ranges["e"] for n in range(a, b + 1, s)] if ranges and "e" in ranges else [""]:
                yield name.replace("{i}", str(i)).replace("{e}", str(e)), tuple(shape)


@pytest.mark.parametrize("slug", [s for s in slugs() if checkpoint(s)])
def test_tensors_are_the_references_both_ways(slug):
    listed, found = checkpoint(slug), presets.model(slug).counts
    ours = list(found.tensors())
    assert len(ours) == len(dict(ours)), "a tensor twice"
    assert dict(ours) == dict(expand(listed["tensors"]))
    assert dict(found.tensors(found.buffers)) == dict(expand(listed["buffers"]))


@pytest.mark.parametrize("slug", [s for s in slugs() if checkpoint(s)])
def test_totals_are_the_references(slug):
    listed, model = checkpoint(slug), presets.model(slug)
    found = model.counts
    assert found.total == listed["total"] == sum(math.prod(shape) for _, shape in expand(listed["tensors"]))
    published = [model.preset.published, *model.preset.published.other] if model.preset.published else []
    assert listed["stored"] in (None, model.stored, *(figure.parameters for figure in published))
    assert listed["active"] in (None, found.active)
    assert listed["active_excluding_input_embedding"] in (None, found.active_excluding_input_embedding)
    assert listed["kv_cache_bytes_per_token"] in (None, found.cache_bytes_per_token_uncapped())
    assert found.is_tied == any("embed" in n or "wte" in n or "word" in n for group in listed["tied"] for n in group)


@pytest.mark.parametrize("slug", slugs())
def test_the_polynomial_is_the_integer(slug):
    model = presets.model(slug)
    assert [*identities.parameters(Costs(model.counts), model.raw)] == []
    model.verify()


@pytest.mark.parametrize("slug", slugs())
def test_every_symbol_has_a_value_and_every_figure_is_whole(slug):
    found = presets.model(slug).counts
    assert found.total_poly.symbols <= set(found.trace.symbols)
    assert found.flops.symbols <= {*found.trace.symbols, "T", "S"}
    for context in (1, 2, 4096, 131072):
        for figure in (found.decode_flops(context), found.prefill_flops(context), found.cache_bytes(context)):
            assert type(figure) is int and figure >= 0
    assert found.decode_flops(1) == found.prefill_flops(1) and found.cache_bytes(0) <= found.cache_bytes(
        1
    ) <= found.cache_bytes(9)


def test_the_catalogue_has_the_first_architectures():
    assert {"gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"} <= set(slugs("gpt2"))
    assert len([s for s in slugs(*FIRST) if checkpoint(s)]) >= 30


# --- closed forms, from the papers' blocks and not from the code -----------------------------------------------------


class GPT2:
    """A decoder of L blocks, each two norms, four D × D matrices in attention and two D × F, all with biases."""

    def __init__(self, c: dict):
        self.V, self.P, self.D, self.L, self.N = (
            c["vocab_size"],
            c["n_positions"],
            c["n_embd"],
            c["n_layer"],
            c["n_head"],
        )
        self.F = c.get("n_inner") or 4 * self.D

    @property
    def matrices(self):
        return self.L * (4 * self.D**2 + 2 * self.D * self.F)

    @property
    def total(self):
        return (
            (self.V + self.P) * self.D
            + self.matrices
            + self.L * (4 * self.D + 4 * self.D + self.F + self.D)
            + 2 * self.D
        )

    def flops(self, new, context):
        return 2 * new * self.matrices + 2 * self.V * self.D + self.L * 2 * (2 * new * context * self.D)

    def cache(self, context):
        return self.L * 2 * context * self.D * 2


class Llama:
    """L blocks: two norms, queries and output N·H wide, keys and values K·H, three D × F; biases and a head or not."""

    def __init__(self, c: dict):
        self.V, self.D, self.L, self.F = (
            c["vocab_size"],
            c["hidden_size"],
            c["num_hidden_layers"],
            c["intermediate_size"],
        )
        self.N = c["num_attention_heads"]
        self.K = c.get("num_key_value_heads") or self.N
        self.H = c.get("head_dim") or self.D // self.N
        self.tied, self.window = c.get("tie_word_embeddings", False), c.get("sliding_window")
        self.biases = c.get("attention_bias", False) * (self.N * self.H + 2 * self.K * self.H + self.D) + c.get(
            "mlp_bias", False
        ) * (2 * self.F + self.D)

    @property
    def matrices(self):
        return self.L * (2 * self.D * self.N * self.H + 2 * self.D * self.K * self.H + 3 * self.D * self.F)

    @property
    def total(self):
        return (1 if self.tied else 2) * self.V * self.D + self.matrices + self.L * (2 * self.D + self.biases) + self.D

    def flops(self, new, context):
        before = context - new
        seen = new + (min(before, self.window - 1) if self.window else before)
        return 2 * new * self.matrices + 2 * self.V * self.D + self.L * 2 * (2 * self.N * new * seen * self.H)

    def cache(self, context):
        return self.L * 2 * (min(context, self.window) if self.window else context) * self.K * self.H * 2


def closed_form(raw: dict):
    return (GPT2 if raw["model_type"] == "gpt2" else Llama)(raw)


@pytest.mark.parametrize("slug", slugs(*FIRST))
def test_closed_forms(slug):
    model = presets.model(slug)
    agree(closed_form(model.preset.config), model.counts)


def agree(form, found):
    assert found.total == form.total
    for context in (1, 2, 7, 100, 4095, 4096, 4097, 131072):
        assert found.decode_flops(context) == form.flops(1, context)
        assert found.prefill_flops(context) == form.flops(context, context)
        assert found.cache_bytes(context) == form.cache(context)
    assert found.flops_at(5, 12) == form.flops(5, 12)
    assert found.cache_bytes_per_token() == form.cache(10**7) - form.cache(10**7 - 1)
    assert found.cache_bytes_per_token_uncapped() == form.cache(1)
    assert found.cache_bytes(100, item_bytes=1) * 2 == found.cache_bytes(100)


@given(configs())
def test_closed_forms_of_random_configs(raw):
    found = counts(raw)
    agree(closed_form(raw), found)
    assert found.total_poly.at(found.values()) == found.total == sum(math.prod(s) for _, s in found.tensors())
    assert found.active == found.total == found.embedding + found.non_embedding


@examples(50)
@given(configs(), st.integers(1, 50), st.integers(0, 50))
def test_flops_of_any_step(raw, new, before):
    assert counts(raw).flops_at(new, before + new) == closed_form(raw).flops(new, before + new)


GPT3 = {
    "gpt3-small": (12, 768),
    "gpt3-medium": (24, 1024),
    "gpt3-large": (24, 1536),
    "gpt3-xl": (24, 2048),
    "gpt3-2.7b": (32, 2560),
    "gpt3-6.7b": (32, 4096),
    "gpt3-13b": (40, 5140),
    "gpt3-175b": (96, 12288),
}


@pytest.mark.parametrize("slug", GPT3)
def test_gpt3_is_the_table_of_its_paper(slug):
    L, D = GPT3[slug]
    model = presets.model(slug)
    assert model.counts.total == 50257 * D + 2048 * D + L * (12 * D**2 + 13 * D) + 2 * D
    assert abs(model.counts.total / model.preset.published.parameters - 1) < 0.03


def test_well_known_figures():
    llama3 = presets.model("llama3-8b").counts
    assert llama3.total == 8_030_261_248 and llama3.cache_bytes_per_token() == 131_072
    assert presets.model("gpt2").counts.total == 124_439_808
    mistral = presets.model("mistral-7b-v0.1").counts
    assert mistral.cache_bytes_per_token() == 0 and mistral.cache_bytes_per_token_uncapped() == 131_072
    assert mistral.cache_bytes(4096) == mistral.cache_bytes(131_072) == 4096 * 131_072


def test_the_order_is_that_of_first_use():
    names = [name for name, _ in presets.model("llama3-8b").counts.tensors()]
    assert names[:3] == [
        "model.embed_tokens.weight",
        "model.layers.0.input_layernorm.weight",
        "model.layers.0.self_attn.q_proj.weight",
    ]
    assert names[-2:] == ["model.norm.weight", "lm_head.weight"]
    assert [n.split(".")[2] for n in names[1:-2:9]] == [str(i) for i in range(32)]


def test_a_tied_head_is_listed_once():
    found = counts(
        {
            "model_type": "llama",
            "vocab_size": 7,
            "hidden_size": 6,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "intermediate_size": 5,
            "tie_word_embeddings": True,
        }
    )
    assert found.is_tied and [n for n, _ in found.tensors()].count("model.embed_tokens.weight") == 1
    assert found.active_excluding_input_embedding == found.active


def test_a_layer_count_is_a_symbol():
    found = counts(
        {
            "model_type": "llama",
            "vocab_size": 7,
            "hidden_size": 6,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "intermediate_size": 5,
        }
    )
    assert degree(found.total_poly, "n_layers") == 1 and degree(found.total_poly, "d_model") == 1
    assert found.total_poly.at(found.values() | {"n_layers": 4}) - found.total == 2 * (4 * 36 + 3 * 30 + 12)
    assert find("llama").name == "llama"


def test_a_convolution_over_the_token_alone_keeps_nothing():
    """Qwen3.8 Flash Next's after its table of n-grams: otherwise 3 times 3 rows of 4 streams, in 16 bits."""
    given = presets.model("qwen3.8-flash-next")
    one = presets.make("one", given.raw | {"ple_conv_kernel_size": 1})
    assert given.counts.cache_bytes(9) - one.counts.cache_bytes(9) == 3 * 3 * 4 * 2560 * 2


def test_a_norm_outside_of_the_layers_is_told_by_its_place():
    """BLOOM has one before its layers and one behind them; it is no part of either."""
    titles = [g.title for g in grouped(presets.load("bloom-560m").counts.parts, lambda node: node.name)]
    first, last = titles.index("First norm"), titles.index("Final norm")
    assert 0 < first < titles.index("attention") < last == len(titles) - 1


def test_the_last_layer_of_a_pattern_in_letters_sees_everything():
    """EXAONE 4's local and global layers, where the pattern does not end with the layers."""
    raw = golden("exaone4").raw | {"sliding_window_pattern": "LLG", "num_hidden_layers": 5}
    config, _ = find("exaone4").config.read(raw)
    local, full = "sliding_attention", "full_attention"
    assert config.layer_types == [local, local, full, local, full]


@pytest.mark.parametrize("width", [0, -8])
def test_a_width_that_cannot_be_gives_no_number_of_heads(width):
    raw = {k: v for k, v in golden("zamba2").raw.items() if k != "n_mamba_heads"} | {"mamba_headdim": width}
    with pytest.raises(Problem, match="n_mamba_heads|mamba_headdim"):
        presets.make("zamba2", raw)


@pytest.mark.parametrize("slug", slugs())
def test_active_counts_leave_out_more_and_more(slug):
    found = presets.model(slug).counts
    assert found.active >= found.active_excluding_input_embedding >= found.active_non_embedding > 0
    of_ngrams = found.total - found.excluding_ngram_tables
    assert found.active_non_embedding + found.embedding + of_ngrams == found.active
    assert (of_ngrams > 0) == bool(found.ngram_tables)


def test_a_table_that_is_also_the_head_is_left_out_once():
    sizes = {
        "model_type": "mixtral",
        "vocab_size": 7,
        "hidden_size": 6,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "num_key_value_heads": 3,
        "intermediate_size": 5,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    }
    tied, untied = (counts({**sizes, "tie_word_embeddings": is_tied}) for is_tied in (True, False))
    assert tied.active - tied.active_non_embedding == 7 * 6
    assert untied.active - untied.active_non_embedding == 2 * 7 * 6
    assert tied.active_non_embedding == untied.active_non_embedding < tied.non_embedding
