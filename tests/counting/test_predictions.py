"""Modules for multi-token prediction: totals of files, tensors and scores of transformers and vLLM, cost of a draft."""

import json

import numpy as np
import pytest
from reference import TESTS, close, digest, drafted, golden
from reference.configs import configs

from macros.api.model import load
from macros.catalogue import presets
from macros.catalogue.presets import make
from macros.engine.errors import Problem
from macros.engine.rules import ShapeError

DISCLOSED = [slug for slug in presets.readable() if presets.preset(slug).config is not None]


def rows(slug):
    """What the first published total with such rows counts for the modules."""
    published = presets.preset(slug).published
    figures = [published, *published.other] if published else []
    found = [[e.count for e in f.extra if e.part == "prediction"] for f in figures]
    return next((sum(counts) for counts in found if counts), None)


PUBLISHED = [slug for slug in DISCLOSED if rows(slug)]


@pytest.mark.parametrize("slug", PUBLISHED)
def test_the_modules_have_the_parameters_of_the_published_file(slug):
    model = presets.model(slug)
    if slug == "nemotron-3-super-120b-a12b":  # the source of its config leaves the key out
        model = make("it", {**model.raw, "num_nextn_predict_layers": 1})
    found = model.prediction
    assert rows(slug) in (found.total, found.total + found.counts.buffer_elements)


def test_there_are_enough_of_them():
    assert len(PUBLISHED) > 20 and len({presets.model(slug).model_type for slug in PUBLISHED}) > 9


# The file of DeepSeek-V4-Flash's base model, whose linear layers are all in FP8: the hub's total of its values.
FP8_BASE = 292_021_347_282
NOT_IN_FP8 = (
    "embed_tokens",
    "lm_head",
    "gate.weight",
    "hc",
    "norm",
    "position_bias",
    "scorer",
    "compressor.kv_proj",
) + ("compressor.gate_proj", "indexer.kv_proj", "indexer.gate_proj")


def test_the_module_of_deepseek_v4_has_what_its_file_holds_besides():
    model = presets.model("deepseek-v4-flash")
    both, counted = (model.counts, model.prediction.counts), 0
    for counts in both:
        counted += counts.total + counts.buffer_elements
        for name, shape in counts.tensors():
            if len(shape) == 2 and not any(part in name for part in NOT_IN_FP8):
                counted += -(-shape[0] // 128) * -(-shape[1] // 128)  # a scale for each block of 128 × 128
    copies = 2 * model.counts.trace.symbols["vocab_size"] * model.counts.trace.symbols["d_model"]
    assert counted + copies == FP8_BASE


def test_inklings_modules_have_the_size_of_their_file():
    values = (10_520_911_944 - 8 - 20_528) // 2  # of mtp.safetensors without its header, in bfloat16
    assert presets.model("inkling-975b").prediction.total == values


def test_glm_5_3_flashs_module_has_as_many_tensors_as_its_index():
    raw = golden("glm5_next_text").raw | {"n_routed_experts": 288, "num_nextn_predict_layers": 1}
    counts = make("it", raw).prediction.counts
    tables = 2  # the embedding and the LM head, which stand in the index too
    assert len(list(counts.tensors())) + len(list(counts.tensors(counts.buffers))) + tables == 891


OF_TRANSFORMERS = json.loads((TESTS / "golden" / "predictions.json").read_bytes())
OF_VLLM = json.loads((TESTS / "golden" / "predictions_of_vllm.json").read_bytes())


@pytest.mark.parametrize("model_type", OF_TRANSFORMERS)
def test_the_tensors_are_those_that_transformers_makes(model_type):
    row = OF_TRANSFORMERS[model_type]
    counts = make("it", configs()[model_type] | row["says"]).prediction.counts
    own_head = "transformer.shared_head.output.weight"  # which transformers does not make
    assert digest({name: shape for name, shape in counts.tensors() if not name.endswith(own_head)}) == row["tensors"]


@pytest.mark.parametrize("model_type", OF_VLLM)
def test_the_scores_are_those_of_vllms_code(model_type):
    row = OF_VLLM[model_type]
    _, scores, _ = drafted(make("it", row["config"]), np.array(row["ids"]))
    close(scores[0], np.array(row["scores"]))


LONGCAT = """
    model.mtp.layers.0.eh_proj.weight model.mtp.layers.0.enorm.m.weight model.mtp.layers.0.hnorm.m.weight
    model.mtp.layers.0.input_layernorm.weight model.mtp.layers.0.post_attention_layernorm.weight
    model.mtp.layers.0.self_attn.kv_a_layernorm.weight model.mtp.layers.0.self_attn.kv_a_proj_with_mqa.weight
    model.mtp.layers.0.self_attn.kv_b_proj.weight model.mtp.layers.0.self_attn.o_proj.weight
    model.mtp.layers.0.self_attn.q_a_layernorm.weight model.mtp.layers.0.self_attn.q_a_proj.weight
    model.mtp.layers.0.self_attn.q_b_proj.weight model.mtp.layers.0.transformer_layer.mlp.down_proj.weight
    model.mtp.layers.0.transformer_layer.mlp.gate_proj.weight model.mtp.layers.0.transformer_layer.mlp.up_proj.weight
    model.mtp.norm.weight
    """.split()
# What else vLLM's loaders rename or leave out, by type.
OWN = {
    "ernie4_5_moe": {"mtp_emb_norm.0", "mtp_hidden_norm.0", "mtp_linear_proj.0"},
    "hy_v3": {"enorm", "hnorm", "eh_proj", "final_layernorm"},
    "bailing_moe_v2": {"enorm", "hnorm", "eh_proj", "final_layernorm"},
    "mimo_v2_flash": {"enorm", "hnorm", "eh_proj", "final_layernorm", "pre_mlp_layernorm"},
    "exaone_moe": {"pre_fc_norm_embedding", "pre_fc_norm_hidden", "fc", "norm"},
    "minimax_m3_vl_text": {"enorm", "hnorm", "eh_proj", "final_layernorm", "transformer_layer.input_layernorm"},
    "glm5_next_text": {"enorm", "hnorm", "eh_proj", "shared_head.norm"},
    "hy_v4": {"mtp_layers.0.enorm", "mtp_layers.0.hnorm", "mtp_layers.0.eh_proj", "mtp_layers.0.final_layernorm"},
    "dots3_note_text": {"model.mtp.embed_tokens", "enorm", "hnorm", "eh_proj", "shared_head.norm"},
    "qwen4_exp_text": {
        "mtp.fc_embedding",
        "mtp.fc_hidden",
        "mtp.pre_fc_norm_hidden",
        "mtp.hyper_connection_mixer.hc_norm",
    },
}


def of(model_type, **keys):
    raw = configs().get(model_type) or golden(model_type).raw
    return make("it", raw | {"num_nextn_predict_layers": 1} | keys)


def test_the_names_are_those_that_vllm_reads():
    assert sorted(name for name, _ in of("longcat_flash").prediction.counts.tensors()) == sorted(LONGCAT)
    for model_type, own in OWN.items():
        model = of(model_type)
        names = {name.removesuffix(".weight") for name, _ in model.prediction.counts.tensors()}
        ends = {end for end in own for name in names if name.endswith(end)}
        assert ends == own, model_type
        assert all(name.startswith(("model.", "mtp.")) for name in names)


def test_each_module_has_tensors_of_its_own_and_qwens_layers_one_projection():
    one, three = (of("deepseek_v3", num_nextn_predict_layers=n).prediction.counts for n in (1, 3))
    assert three.total == 3 * one.total and three.cache_bytes_per_token() == 3 * one.cache_bytes_per_token()
    layers = [of("qwen3_next", num_nextn_predict_layers=n).prediction.counts for n in (1, 2, 3)]
    assert layers[1].total - layers[0].total == layers[2].total - layers[1].total < layers[0].total
    names = [name for name, _ in layers[2].tensors()]
    assert names.count("mtp.fc.weight") == 1 and "mtp.layers.2.input_layernorm.weight" in names


def test_a_draft_costs_its_matrices_its_pairs_and_the_head():
    model, S = presets.model("mimo-7b"), 4096
    c, counts = model.config, model.prediction.counts
    matrices = sum(a * b for _, (a, *rest) in counts.tensors() for b in rest)
    pairs = 2 * S * c.n_heads * c.d_head
    assert counts.decode_flops(S) == 2 * (matrices + pairs + c.vocab_size * c.d_model)
    assert counts.cache_bytes_per_token() == model.counts.cache_bytes_per_token() // c.n_layers


def test_what_is_not_counted_is_named_and_a_wrong_number_refused():
    minimax = presets.model("minimax-m2.5")
    assert minimax.prediction is None and "num_mtp_modules" in minimax.uncounted_parts
    assert make("it", golden("llama").raw).prediction is None
    assert presets.model("kimi-k2").prediction is None and not presets.model("kimi-k2").uncounted_parts
    for wrong in ("2", -1, True, 65, 1.5):
        with pytest.raises(Problem, match="num_nextn_predict_layers = .*expected a number of modules"):
            _ = of("deepseek_v3", num_nextn_predict_layers=wrong).prediction
    with pytest.raises(Problem, match="no entry for module 1"):
        _ = of("step3p5").prediction.total
    with pytest.raises(Problem, match="module for prediction"):
        _ = of("nemotron_h", mtp_layers_block_type=["attention", "x"]).prediction.total


def test_keys_beside_the_text_part_say_what_its_modules_are():
    inner = golden("inkling_text").raw
    table = {"num_nextn_predict_layers": 2, "local_layer_ids": [1], "chain_hidden_post_norm": True}
    found = make("it", {"model_type": "inkling_mm_model", "text_config": inner, "mtp_config": table}).prediction
    of_table = {"num_mtp_layers": 2, "mtp_local_layer_ids": [1], "chain_hidden_post_norm": True}
    assert found.number == 2 and found.total == make("it", inner | of_table).prediction.total
    assert found.total - make("it", inner | of_table | {"chain_hidden_post_norm": False}).prediction.total == 40
    exaone = make("it", {"model_type": "exaone4_5", "text_config": configs()["exaone4"], "num_nextn_predict_layers": 1})
    assert exaone.prediction.number == 1


def test_step_3_7_has_the_modules_of_its_text_model():
    inner = configs()["step3p5"] | {"num_nextn_predict_layers": 3, "mtp_layer_types": ["sliding_attention"] * 3}
    whole = make("it", {"model_type": "step3p7", "text_config": inner}).prediction
    assert whole.number == 3 and whole.total == make("it", inner).prediction.total


def test_the_data_have_them_beside_the_towers():
    found = load("qwen3.5-0.8b").to_dict(collapse=True, components=True)["components"]
    assert found["prediction"]["parameters"] == rows("qwen3.5-0.8b") and found["prediction"]["modules"] == 1
    drafts = load("mimo-7b").prediction
    assert (drafts.modules, drafts.total, len(drafts.table)) == (1, rows("mimo-7b"), 16)
    assert drafts.draft_flops(9) == presets.model("mimo-7b").prediction.counts.decode_flops(9)
    assert found["parameters"] == load("qwen3.5-0.8b").parameters.total + sum(t["parameters"] for t in found["towers"])


def test_modules_whose_sizes_clash_name_the_file_and_the_key(monkeypatch):
    def clash(*of):
        raise ShapeError("linear: [T 3] against [2 3]")

    model = make("theirs/config.json", presets.model("deepseek-v3").raw)
    monkeypatch.setattr("macros.engine.predictions.trace", clash)
    with pytest.raises(Problem) as wrong:
        model.prediction.total
    assert str(wrong.value) == (
        "theirs/config.json: the sizes of the modules that num_nextn_predict_layers counts do not fit together: "
        "linear: [T 3] against [2 3]; correct those sizes, or leave num_nextn_predict_layers out"
    )
