"""Names that transformers still takes: of types, keys and kinds of layers. The other spelling of a key goes first."""

from __future__ import annotations

import pytest
from reference.configs import configs

from macros.catalogue.presets import make, model
from macros.engine.errors import Problem
from macros.engine.names_there import names_there


def total(raw, **changes):
    return make("it", {**raw, **changes}).counts.total


def raw_of(slug):
    return dict(model(slug).raw)


def test_the_tables_of_names_have_every_type_that_transformers_has():
    """Mend: `python -m tests.reference.names`, after a type was added."""
    there = names_there()
    assert {name for name in configs() if name not in there["decoders"]} <= {*there["known"], *there["types"]}


def test_the_other_spelling_of_a_key_goes_before_the_key():
    gpt2 = raw_of("gpt2")
    assert total(gpt2) == 124_439_808
    assert total(gpt2, n_positions=1024, max_position_embeddings=4096) == 126_799_104
    mixtral = configs()["mixtral"]
    same = total(mixtral, num_local_experts=2)
    assert total(mixtral, num_experts=2) == same != total(mixtral)


def test_a_spelling_that_a_class_reads_besides_its_keys_goes_before_the_key():
    """A class's own code sets what it reads, and `attribute_map` what is left; one that is null is not there."""
    glm = configs()["glm_moe_dsa"]
    same = total(glm, n_routed_experts=4)
    assert total(glm, num_experts=4) == same != total(glm)
    assert total(glm, num_experts=8, num_local_experts=4) == same
    assert total(glm, num_experts=None) == total(glm)
    assert total(configs()["falcon"], n_embed=96) == total(configs()["falcon"], hidden_size=96)
    hybrid = {name: value for name, value in configs()["nemotron_h"].items() if name != "mamba_d_conv"}
    assert total(hybrid, conv_kernel=3, mamba_d_conv=5) == total(hybrid, conv_kernel=5) != total(hybrid, conv_kernel=3)


def test_the_published_sizes_of_windows_go_unread_beside_those_of_layers():
    dots = configs()["dots3_note_text"]
    assert "per_layer_config" in dots and total(dots, swa_qk_rope_head_dim=8, swa_q_lora_rank=9) == total(dots)


@pytest.mark.parametrize(
    "model_type", sorted({t for types, _ in names_there()["keys"] for t in types} & set(configs()))
)
def test_a_key_is_read_under_each_of_its_names(model_type):
    base = configs()[model_type]
    said = {k: v for types, names in names_there()["keys"] if model_type in types for k, v in names.items()}
    here = vars(make("it", base).config)
    for other, name in said.items():
        if base.get(name) is None:
            continue
        moved = {**{k: v for k, v in base.items() if k != name}, other: base[name]}
        assert vars(make("it", moved).config) == here, (other, name)
        if isinstance(base[name], int):  # an impossible value under both names, of which one is read
            both = {**base, other: base[name]}
            assert vars(make("it", {**both, name: -1}).config) == here, (other, name)


def test_a_whole_without_its_text_model_s_table_is_said_where_transformers_reads_no_other():
    for text, is_said in (("qwen3_5_moe_text", True), ("step3p5", False), ("qwen2_vl_text", False)):
        made = make("it", configs()[text] | {"model_type": text.removesuffix("_text")})
        assert any("text_config is missing" in line for line in made.warnings) == is_said


def test_mistral_with_kinds_of_layers_is_ministral():
    kinds = ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention"] * 9
    raw = {k: v for k, v in raw_of("ministral-8b").items() if k != "layer_types"} | {"sliding_window": 32768}
    mixed = make("it", raw | {"model_type": "mistral", "layer_types": kinds})
    assert mixed.model_type == "ministral" and not mixed.unknown
    assert mixed.counts.cache_bytes(131_072) == 8_455_716_864


def test_a_type_is_known_under_its_older_name():
    text = raw_of("exaone-4.0-32b")
    whole = {"model_type": "exaone4_5", "vision_config": {"model_type": "exaone4_5_vision"}}
    assert total(whole | {"text_config": text | {"model_type": "exaone4_5_text"}}) == total(text)
    assert total(raw_of("gpt2"), model_type="gpt-sw3") == 124_439_808


def test_a_text_model_without_a_type_is_the_usual_one_of_its_whole():
    llama = {k: v for k, v in configs()["llama"].items() if k != "model_type"}
    assert total({"model_type": "llava", "vision_config": {}, "text_config": llama}) == total(configs()["llama"])


def test_older_words_for_kinds_of_layers_are_read():
    base = configs()["glm5_next_text"]
    older = ["deepseek_sparse_attention" if kind == "indexed_attention" else kind for kind in base["layer_types"]]
    assert older != base["layer_types"]
    assert vars(make("it", base | {"layer_types": older}).config) == vars(make("it", base).config)


SARVAM = {"vocab_size": 262_144, "hidden_size": 4096, "num_attention_heads": 64, "n_routed_experts": 128}


def test_sarvam_is_read_as_transformers_saves_it():
    latent = {"intermediate_size": 16_384, "moe_intermediate_size": 2048, "num_hidden_layers": 32, "kv_lora_rank": 512}
    latent |= {"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "num_experts_per_tok": 8}
    latent |= {"head_dim": 64, "n_shared_experts": 1, "num_nextn_predict_layers": 0, "q_lora_rank": None}
    assert total(SARVAM | latent, model_type="sarvam_mla") == 106_031_763_456
    wide = {"intermediate_size": 8192, "moe_intermediate_size": 1024, "num_hidden_layers": 19, "num_key_value_heads": 4}
    wide |= {"head_dim": 64, "num_experts_per_tok": 6, "n_shared_experts": 1, "use_qk_norm": True}
    assert total(SARVAM | wide, model_type="sarvam_moe") == 32_152_648_064


@pytest.mark.parametrize("model_type", ["bert", "roberta", "electra", "camembert", "ernie"])
def test_an_encoder_that_is_to_be_a_decoder_is_refused(model_type):
    with pytest.raises(Problem, match="is_decoder = true"):
        make("it", configs()[model_type] | {"is_decoder": True})
    make("it", configs()[model_type] | {"is_decoder": False})


def test_attention_to_what_an_encoder_read_is_not_left_out_in_silence():
    with pytest.raises(Problem, match="add_cross_attention = true"):
        make("it", configs()["gpt2"] | {"add_cross_attention": True})


def test_a_share_of_a_head_turns_only_where_transformers_reads_it():
    llama, glm = configs()["llama"], configs()["glm"]
    plain = {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5}
    assert make("it", llama | {"rope_parameters": plain}).config.rope.partial == 1
    linear = plain | {"rope_type": "linear", "factor": 2.0}
    assert make("it", llama | {"rope_parameters": linear}).config.rope.partial == 0.5
    assert make("it", glm | {"partial_rotary_factor": None}).config.rope.partial == 1


def test_the_older_table_of_a_rotary_embedding_stands_for_the_newer_one():
    table = {"rope_type": "yarn", "factor": 4.0, "rope_theta": 5e5, "original_max_position_embeddings": 16}
    raw = configs()["llama"] | {"rope_parameters": table, "rope_scaling": {"rope_type": "linear", "factor": 2.0}}
    rope = make("it", raw).config.rope
    assert (rope.scaling, rope.factor) == ("linear", 2.0) and rope.theta != 5e5


@pytest.mark.parametrize("key", ["dtype", "torch_dtype"])
def test_weights_of_64_bits_are_not_counted_as_16_in_silence(key):
    plain = make("it", configs()["llama"])
    wide = make("it", configs()["llama"] | {key: "float64"})
    assert f"{key} = float64" in str(wide.warnings) and "float64" not in str(plain.warnings)


def test_a_scaling_that_transformers_ignores_is_said():
    older, newer = ({name: "linear", "factor": 2.0} for name in ("type", "rope_type"))
    gemma, cohere = (configs()[name] for name in ("gemma3_text", "cohere2_moe"))
    assert "rope_scaling" in str(make("it", gemma | {"rope_scaling": older}).read_otherwise)
    assert not make("it", gemma | {"rope_scaling": newer}).read_otherwise
    assert "rope_scaling" in str(make("it", cohere | {"rope_scaling": newer}).read_otherwise)
    assert not make("it", cohere).read_otherwise


WHOLE_GEMMA = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
        "sliding_window": 1024,
    },
    "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model", "num_hidden_layers": 27},
}


def test_sizes_that_the_table_of_a_text_model_leaves_out_are_its_class_s():
    """As the published file of Gemma 3 4B leaves them out."""
    made = make("it", WHOLE_GEMMA)
    assert made.counts.total == model("gemma3-4b").counts.total
    assert any("leaves out vocab_size = 262208, num_attention_heads = 8:" in line for line in made.warnings)
    table = WHOLE_GEMMA["text_config"]
    assert make("it", WHOLE_GEMMA | {"text_config": table | {"vocab_size": 262144}}).config.vocab_size == 262144
    llava = {"model_type": "llava", "text_config": {"model_type": "llama", "vocab_size": 32064}}
    assert make("it", llava).counts.total == 6_738_939_904  # LLaVA 1.5 7B: Vicuna with 64 tokens more
    mistral = {"model_type": "llava_next", "text_config": {"model_type": "mistral", "vocab_size": 32064}}
    assert make("it", mistral | {"tie_word_embeddings": False}).config.n_kv_heads == 8
    with pytest.raises(Problem, match="vocab_size is missing"):
        make("it", {"model_type": "gemma3_text"})  # a text model's own file says its sizes
