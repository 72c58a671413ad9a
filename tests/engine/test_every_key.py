"""Keys that make another model in transformers make the same one here: `python -m tests.reference.every_key` wrote
what it has."""

from __future__ import annotations

import json
import re
from functools import cached_property

import numpy as np
import pytest
from reference import TESTS, digest, drawn
from reference.configs import PROMPT, configs
from reference.conventions import CACHE, CACHE_OF_OTHERS, differences, kept

from macros.catalogue import unread_there
from macros.catalogue.presets import make
from macros.engine.architectures import find
from macros.engine.architectures.config import fields_of
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.loaded import Arrays, Cache

ROWS = json.loads((TESTS / "golden" / "every_key.json").read_bytes())


def changed(raw, change):
    return {name: value for name, value in {**raw, **change}.items() if value != "left out"}


class Ours:
    """What a config makes here. Half of the changes write one that another wrote too, and most leave the tensors."""

    def __init__(self, model, numbers):
        self.model, self.numbers = model, numbers
        self.tensors = dict(model.counts.tensors())
        self.listed = sum(map(np.prod, self.tensors.values())), digest(self.tensors)

    @cached_property
    def kept(self):
        more = differences(CACHE | CACHE_OF_OTHERS, self.model, 1, PROMPT + 1)
        return kept(self.model, PROMPT + 1) + sum(more.values())

    @cached_property
    def scores(self):
        shapes = self.tensors | dict(self.model.counts.tensors(self.model.counts.buffers))
        for name, shape in shapes.items():
            if (name, shape) not in self.numbers:
                self.numbers[name, shape] = drawn({name: shape})[name]
        arrays = Arrays({name: self.numbers[name, shape] for name, shape in shapes.items()})
        return logits(self.model.architecture, self.model.config, arrays, np.arange(PROMPT) % 7, Cache())[0]


@pytest.mark.share(3)
@pytest.mark.parametrize("model_type", ROWS)
def test_each_key_that_changes_transformers_model_changes_this_one_alike(model_type):
    """Mend: read the key as transformers does, or refuse it in one line."""
    as_it_is, known = Ours(make("it", configs()[model_type]), numbers := {}), {}
    for change, parameters, listed, says_others, held in ROWS[model_type]:
        model = make("it", changed(configs()[model_type], change))
        here = known.get(model.config) or known.setdefault(model.config, Ours(model, numbers))
        assert here.listed == (parameters, listed), change
        if held is not None and not model.config.looks_both_ways:
            assert here.kept == held, change
        if here.tensors == as_it_is.tensors and says_others is not None:
            is_same = here.scores.shape == as_it_is.scores.shape  # a smaller vocabulary has fewer
            is_same = is_same and np.allclose(here.scores, as_it_is.scores, rtol=0, atol=1e-6)
            assert is_same != says_others, change


DEFAULTS = json.loads((TESTS / "golden" / "key_defaults.json").read_bytes())


@pytest.mark.every_case
@pytest.mark.parametrize("model_type", DEFAULTS)
def test_a_key_that_is_left_out_has_transformers_value(model_type):
    base = configs()[model_type]
    for k in fields_of(find(model_type).config):
        if k.key in DEFAULTS[model_type]:
            raw = {name: value for name, value in base.items() if name not in (k.key, *k.also)}
            assert getattr(make("it", raw).config, k.field) == DEFAULTS[model_type][k.key], k.key


UNLIKE = [
    ("git", {"num_image_with_embedding": 2}, "num_image_with_embedding = 2"),
    ("mpt", {"attn_config": {"alibi_bias_max": 16}}, "takes 8 for alibi_bias_max"),
    ("dbrx", {"attn_config": {"rope_theta": 20_000.0}, "rope_theta": None}, "takes 10,000 for rope_theta"),
    ("olmo3", {"rope_scaling": {"factor": 2.0, "type": "linear"}}, "rope_scaling"),
    ("gemma3n_text", {"rope_scaling": {"factor": 2.0, "type": "linear"}}, "rope_scaling"),
    ("gemma3n_text", {"rope_parameters": {"rope_theta": 500.0, "rope_type": "default"}}, "rope_parameters"),
    ("t5", {"is_encoder_decoder": False}, "is_encoder_decoder"),
    ("xlstm", {"num_blocks": 2}, "num_blocks = 2"),
    ("nllb-moe", {"moe_eval_capacity_token_fraction": 0.5}, "that share of the tokens at most"),
    ("pix2struct_text_model", {"is_decoder": False}, "is_decoder"),
    ("pix2struct_text_model", {"is_encoder_decoder": False}, "is_encoder_decoder"),
    ("pix2struct_text_model", {"is_encoder_decoder": None}, "is_encoder_decoder is left out"),
    ("xglm", {"pad_token_id": 2}, "pad_token_id = 2"),
    ("longcat_flash", {"head_dim": 1}, "head_dim = 1"),
    ("mistral", {"sliding_window": 1}, "drops no rows"),
    ("qwen3_omni_moe_text", {"sliding_window": 2}, "keeps no more rows"),
    ("step3p5", {"n_routed_experts": None, "num_local_experts": 6}, "reads n_routed_experts"),
    ("zamba", {"tie_word_embeddings": False}, "also unties the layers"),
    ("exaone_moe", {"is_moe_layer": [True] * 5, "first_k_dense_replace": 1, "mlp_layer_types": None}, "goes by first"),
]


@pytest.mark.parametrize(("model_type", "change", "said"), UNLIKE)
def test_a_key_that_transformers_reads_otherwise_is_said_above_the_figures(model_type, change, said):
    raw = configs()[model_type]
    assert not any(said in line for line in make("it", raw).read_otherwise)
    raw = {name: value for name, value in (raw | change).items() if value is not None}
    assert any(said in line for line in make("it", raw).read_otherwise)


REFUSED = [
    ("hy_v3", {"num_shared_experts": 0}, "num_shared_experts = 0"),
    ("blt", {"patch_size": None}, "patch_size = null"),
    ("blt", {"patching_mode": None}, "patching_mode"),
    ("zamba2", {"mamba_headdim": 7}, "their product is not mamba_expand"),
    ("squeezebert", {"embedding_size": "left out"}, "embedding_size"),
    ("gptj", {"rotary_dim": "left out"}, "rotary_dim = 64"),
    ("gptj", {"n_embd": "left out", "hidden_dim": 64, "ffn_embed_dim": 99}, 'the file has "hidden_dim": rename it'),
    ("dots3_note_text", {"layer_types": ["sliding_attention", "full_attention"] * 2 + ["sliding_attention"]}, "per_l"),
]


@pytest.mark.parametrize(("model_type", "change", "said"), REFUSED)
def test_what_transformers_cannot_run_is_refused_by_its_key(model_type, change, said):
    """Or what it runs, and no forward pass here does."""
    make("it", configs()[model_type])
    with pytest.raises(Problem, match=re.escape(said)):
        make("it", changed(configs()[model_type], change))


def test_a_mistral_without_a_window_has_its_class_s_and_null_is_none():
    raw = changed(configs()["mistral"], {"sliding_window": "left out"})
    assert make("it", raw).config.sliding_window == 4096
    assert make("it", raw | {"sliding_window": None}).config.sliding_window is None


def test_a_pattern_of_layers_may_be_a_list_of_its_letters():
    raw = {name: value for name, value in configs()["nemotron_h"].items() if name != "layers_block_type"}
    raw["num_hidden_layers"] = 4
    text, letters = (make("it", raw | {"hybrid_override_pattern": given}) for given in ("*M-M", list("*M-M")))
    assert (
        text.counts.total == letters.counts.total != make("it", raw | {"hybrid_override_pattern": "MMMM"}).counts.total
    )


def test_a_table_without_a_base_has_the_usual_one_and_no_table_the_class_s():
    raw = {name: value for name, value in configs()["muse_spark_text"].items() if "rope" not in name}
    assert make("it", raw).config.rope.theta == 500_000
    assert make("it", raw | {"rope_scaling": {"type": "linear", "factor": 2.0}}).config.rope.theta == 10_000


def test_yarn_turns_an_even_number_of_a_head():
    raw = {**configs()["qwen3_5_text"], "rope_parameters": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 500.0}}
    with pytest.raises(Problem, match="rope type yarn on"):
        make("it", raw).counts


def test_a_class_s_own_rotary_embedding_goes_before_a_base_beside_it():
    """transformers' Mistral classes take all of theirs where a config has no table, and none of it where it has one."""
    raw = {name: value for name, value in configs()["ministral3"].items() if name != "rope_parameters"}
    assert make("it", raw | {"rope_theta": 500.0}).config.rope.theta == 1_000_000
    table = {"rope_theta": 500.0, "original_max_position_embeddings": 16, "llama_4_scaling_beta": 0.1}
    assert make("it", raw | {"rope_parameters": table}).config.rope.scaling == "default"


UNREAD = json.loads(unread_there.FILE.read_bytes())["types"]


@pytest.mark.parametrize("model_type", UNREAD)
def test_a_key_that_transformers_takes_no_notice_of_is_said(model_type):
    """Whatever value changes the model here; one that changes nothing is not said."""
    base = configs()[model_type]
    fields = {name: k.field for k in fields_of(find(model_type).config) for name in (k.key, *k.also)}
    as_it_is = make("it", base)
    assert not any("ignores it" in line for line in as_it_is.read_otherwise)
    for name in UNREAD[model_type]:
        value = getattr(as_it_is.config, fields[name])
        value = value if isinstance(value, bool) else int(value)
        new = not value if isinstance(value, bool) else value * 2
        (line,) = make("it", {**base, name: new}).read_otherwise
        assert line.startswith(f"{name} = ") and "transformers 5.24.0 ignores it" in line
        assert not make("it", {**base, name: value}).read_otherwise
