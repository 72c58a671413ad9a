"""Types of remote code that transformers does not have: they compute what the type does that they equal."""

import json

import numpy as np
import pytest
from reference import close, golden
from reference.configs import REMOTE, configs, remote
from safetensors.numpy import save_file

from macros.catalogue.checkpoints import Checkpoint
from macros.catalogue.presets import make
from macros.engine.architectures import baichuan
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.loaded import Arrays

# What the equal type's small config says otherwise, so that both say the same.
SAME = {
    "bailing_moe": {"routed_scaling_factor": 1.0},
    "baichuan": {"num_key_value_heads": 6, "head_dim": 8},
    "chatglm": {"head_dim": 12, "partial_rotary_factor": 0.5},
    "internlm": {},
    "internlm2": {"head_dim": 8},
    "orion": {"partial_rotary_factor": 1.0, "use_qkv_bias": False},
    "deepseek": {"routed_scaling_factor": 1.0},
    "exaone": {},
    "new": {},
    "phi3_v": {},
    "minicpm": {"attention_multiplier": 8**-0.5, "residual_multiplier": 1.4 / 3**0.5, "logits_scaling": 48 / 12},
}


# Those whose files hold several matrices of the equal type in one: the names of these, and of the others; how queries,
# keys and values become one matrix.
PACKED = {
    "bailing_moe": {
        "embed_tokens": "word_embeddings",
        "self_attn.q_proj": "attention.query_key_value",
        "self_attn.o_proj": "attention.dense",
    },
    "baichuan": {"q_proj": "W_pack"},
    "chatglm": {
        "model.embed_tokens": "transformer.embedding.word_embeddings",
        "model.layers": "transformer.encoder.layers",
        "model.norm": "transformer.encoder.final_layernorm",
        "lm_head": "transformer.output_layer",
        "self_attn.q_proj": "self_attention.query_key_value",
        "self_attn.o_proj": "self_attention.dense",
        "gate_up_proj": "dense_h_to_4h",
        "down_proj": "dense_4h_to_h",
    },
    "internlm2": {
        "embed_tokens": "tok_embeddings",
        "self_attn.q_proj": "attention.wqkv",
        "self_attn.o_proj": "attention.wo",
        "input_layernorm": "attention_norm",
        "post_attention_layernorm": "ffn_norm",
        "mlp.gate_proj": "feed_forward.w1",
        "mlp.up_proj": "feed_forward.w3",
        "mlp.down_proj": "feed_forward.w2",
        "lm_head": "output",
    },
}


def by_group(q, k, v, c):
    """InternLM 2's `rearrange(…, "(h gs d) -> h gs d")`: the queries of a key/value head, its key, its value."""
    parts = [a.reshape(int(c.n_kv_heads), -1, int(c.d_head), a.shape[-1]) for a in (q, k, v)]
    return np.concatenate(parts, axis=1).reshape(-1, q.shape[-1])


def packed(model_type, tensors, c):
    """The equal type's tensors in the other's names and matrices."""
    made = {}
    for name, array in tensors.items():
        if ".k_proj." in name or ".v_proj." in name:
            continue
        if ".q_proj." in name:
            k, v = (tensors[name.replace("q_proj", f"{one}_proj")] for one in "kv")
            array = by_group(array, k, v, c) if model_type == "internlm2" else np.concatenate([array, k, v])
        for here, there in PACKED[model_type].items():
            name = name.replace(here, there)
        made[name] = array
    return made


@pytest.mark.parametrize("model_type", PACKED)
def test_it_computes_what_its_equal_does_with_packed_matrices(model_type, monkeypatch):
    like = REMOTE[model_type][0]
    monkeypatch.setattr(baichuan, "TURNING", configs()["llama"]["hidden_size"])
    ours, other = make("it", remote(model_type)), make("it", configs()[like] | SAME[model_type])
    rng = np.random.default_rng(34)
    tensors = {name: rng.normal(size=shape).astype(np.float32) / 7 for name, shape in other.counts.tensors()}
    theirs = packed(model_type, tensors, ours.config)
    assert dict(ours.counts.tensors()) == {name: a.shape for name, a in theirs.items()} and ours.unknown == ()
    assert ours.counts.total == other.counts.total
    ids = rng.integers(0, 90, 9)
    here, there = (logits(m.architecture, m.config, Arrays(a), ids)[0] for m, a in ((ours, theirs), (other, tensors)))
    close(here, there)


def test_the_head_of_baichuan_2_is_normalized(monkeypatch):
    """However long a token's vector in the table is, it says the same."""
    monkeypatch.setattr(baichuan, "NORMALIZED", configs()["llama"]["vocab_size"])
    ours, rng = make("it", remote("baichuan")), np.random.default_rng(34)
    tensors = {name: rng.normal(size=shape).astype(np.float32) / 7 for name, shape in ours.counts.tensors()}
    longer = tensors | {"lm_head.weight": tensors["lm_head.weight"] * 3}
    ids = rng.integers(0, 90, 9)
    once, again = (logits(ours.architecture, ours.config, Arrays(a), ids)[0] for a in (tensors, longer))
    close(once, again)


@pytest.mark.parametrize("model_type", [one for one in REMOTE if one not in PACKED])
def test_it_computes_what_its_equal_does(model_type):
    like = REMOTE[model_type][0]
    g, ours, other = golden(like), make("it", remote(model_type)), make("it", configs()[like] | SAME[model_type])
    assert dict(ours.counts.tensors()) == dict(other.counts.tensors()) and ours.unknown == ()
    here, there = (logits(m.architecture, m.config, Arrays(g.tensors), g.ids)[0] for m in (ours, other))
    close(here, there)
    if not SAME[model_type]:
        close(here, g.logits)


def test_exaone_in_its_makers_names():
    """Each of the maker's names is one of ours."""
    from macros.engine.layouts import Layout

    ours = make("it", remote("exaone"))
    theirs = {
        "transformer.wte.weight": None,
        "transformer.h.1.attn.attention.q_proj.weight": None,
        "transformer.h.1.attn.attention.out_proj.weight": None,
        "transformer.h.1.mlp.c_fc_0.weight": None,
        "transformer.h.1.mlp.c_fc_1.weight": None,
        "transformer.h.1.mlp.c_proj.weight": None,
        "transformer.h.1.ln_2.weight": None,
        "transformer.ln_f.weight": None,
    }
    called = set(Layout(ours.architecture, theirs).called)
    assert called & dict(ours.counts.tensors()).keys() == called and len(called) == len(theirs)


@pytest.mark.parametrize(
    "model_type, changes, says",
    [
        ("PanguProMoE", {"param_sink_number": 0}, "param_sink_number = 0"),
        ("PanguProMoE", {"qk_nope_dim": None}, "qk_nope_dim is missing"),
        ("PanguProMoE", {"first_k_dense_replace": None, "mlp_only_layers": [0, 2]}, "mlp_only_layers = "),
        (
            "PanguProMoE",
            {"n_shared_experts": None, "shared_expert_intermediate_size": 14},
            "shared_expert_intermediate",
        ),
        ("PanguProMoE", {"router_enable_expert_bias": False}, "router_enable_expert_bias = "),
        ("alice_ai", {"linear_num_value_heads": 10}, "linear_num_value_heads = 10, and linear_num_key_heads = 5"),
        ("alice_ai", {"kda_allow_negative_eigenvalues": True}, "kda_allow_negative_eigenvalues = "),
        ("alice_ai", {"block_attn_res_block_size": None}, "block_attn_res_block_size is missing"),
        ("dory", {"recurrent_kv_cache_mode": "last_loop"}, "recurrent_kv_cache_mode = "),
        ("dory", {"n_output_layers": 3}, "n_output_layers are 2, 4, 3"),
        ("dory", {"layer_types": ["mlp", "mamba"] * 4}, "layer_types has 'linear_attention'"),
        ("step5", {"sparse_config": None}, "sparse_config is missing"),
        ("step5", {"sparse_config": {"num_provider_groups": 4}}, "sparse_config.num_provider_groups = 4"),
        ("step5", {"sparse_config": {"num_provider_groups": 2, "attention_impl": "x"}}, "sparse_config.attention_impl"),
        (
            "step5",
            {"sparse_config": {"num_provider_groups": 2, "sparse_indexer_rope_dim": 7}},
            "sparse_indexer_rope_dim",
        ),
        ("step5", {"use_rope_layers": [True, False, True]}, "use_rope_layers = "),
        ("step5", {"head_dim_full_attention": 64}, "head_dim_full_attention = 64"),
        ("step5", {"zero_centered": False}, "zero_centered = "),
    ],
)
def test_what_is_not_described_is_refused_by_its_key(model_type, changes, says):
    with pytest.raises(Problem, match=says):
        make("it", golden(model_type).raw | changes)


def test_older_words_of_openpangu_say_the_same():
    raw = golden("PanguProMoE").raw
    older = {k: v for k, v in raw.items() if k not in ("first_k_dense_replace", "n_shared_experts", "n_routed_experts")}
    older |= {"mlp_only_layers": [0], "shared_expert_intermediate_size": 26, "num_experts": 6}
    assert make("it", older).counts.total == make("it", raw).counts.total


def test_a_publishers_own_name_for_a_known_architecture_is_read_by_its_class():
    """sgl-project/DeepSeek-V4-Flash-FP8, config.json, as AIConfigurator 0.12.0 has it."""
    raw = golden("deepseek_v4").raw
    theirs = {**raw, "model_type": "deepseek_ref", "architectures": ["DeepseekV4ForCausalLM"]}
    assert make("theirs", theirs).counts.total == make("ours", raw).counts.total
    with pytest.raises(Problem, match="deepseek_ref"):
        make("theirs", {**theirs, "architectures": ["OtherForCausalLM"]})


def test_the_flat_file_of_step_3_7_is_its_text_model_with_a_note_on_heads():
    """stepfun-ai/Step-3.7-Flash, config.json, as AIConfigurator 0.12.0 has it: its keys, and other sizes."""
    raw = golden("step3p5").raw
    theirs = {
        name: value for name, value in raw.items() if name not in ("num_sliding_attention_heads", "mlp_layer_types")
    }
    theirs |= {"model_type": "step3p7", "architectures": ["Step3p7FlashForCausalLM"], "first_k_dense_replace": 1}
    theirs |= {"n_shared_experts": 1, "scoring_func": "sigmoid", "use_moe_router_bias": True}
    read = make("theirs", theirs)
    kinds = ["dense"] + ["sparse"] * (raw["num_hidden_layers"] - 1)
    ours = raw | {"num_sliding_attention_heads": raw["num_attention_heads"], "mlp_layer_types": kinds}
    assert read.counts.total == make("ours", ours).counts.total and not read.unknown
    assert [line.split(" is missing")[0] for line in read.warnings] == ["num_sliding_attention_heads"]
    assert not make("ours", ours).warnings
    for wrong in ({"scoring_func": "softmax"}, {"n_shared_experts": 2}):
        with pytest.raises(Problem, match=next(iter(wrong))):
            make("theirs", theirs | wrong)


def test_alice_ai_is_read_under_the_names_that_its_maker_gives(tmp_path):
    """As vLLM’s loader reads them: each convolution by itself, and no inner name of the decay."""
    ours = golden("alice_ai")
    theirs = {}
    for name, array in ours.tensors.items():
        name = name.replace("forget_gate.A_log", "a_log_bias").replace("forget_gate.", "")
        parts = dict(zip("qkv", np.split(array, 3))) if "linear_attn.conv1d" in name else {}
        theirs |= {name.replace("conv1d", f"{part}_conv1d"): one for part, one in parts.items()} or {name: array}
    assert len(theirs) == len(ours.tensors) + 2 * ours.raw["layer_types"].count("linear_attention")
    (tmp_path / "config.json").write_text(json.dumps(ours.raw), "utf-8")
    save_file({name: np.ascontiguousarray(array) for name, array in theirs.items()}, tmp_path / "model.safetensors")
    model = make("it", ours.raw)
    scores, _ = logits(model.architecture, model.config, Checkpoint("it", tmp_path).weights(), ours.npz["input_ids"][0])
    close(scores, ours.npz["logits"][0])


def test_dory_has_the_layers_that_its_class_would_make():
    """vLLM 0.33, transformers_utils/configs/dory.py: attention and networks in turns, all of them inside the loop."""
    given = ("layer_types", "n_input_layers", "n_recurrent_layers", "n_output_layers", "n_recurrent_loops")
    raw = {name: value for name, value in golden("dory").raw.items() if name not in given}
    turns = ["sliding_attention", "mlp"] * 3 + ["full_attention", "mlp"]
    whole = {"n_input_layers": 0, "n_recurrent_layers": 8, "n_output_layers": 0, "n_recurrent_loops": 1}
    model, spelt = make("it", raw), make("it", raw | whole | {"layer_types": turns})
    assert model.config.kinds == spelt.config.kinds and model.counts.total == spelt.counts.total
    assert int(make("it", raw | {"n_input_layers": 3, "n_recurrent_loops": 4}).config.n_layers) == 3 + 4 * 5
    with pytest.raises(Problem, match="some layers are in the middle"):
        make("it", raw | {"n_input_layers": 8})
