"""The head that `architectures` names is the one that is counted, and run; none that is not known is."""

import json

import numpy as np
import pytest
from reference import TESTS, close, digest, golden
from reference.configs import configs

from macros.api.running import run
from macros.catalogue import checkpoints, presets
from macros.catalogue.presets import make
from macros.cli.commands import main
from macros.engine.architectures import architectures
from macros.engine.class_names import class_names
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.loaded import Arrays

# {type: {class: [parameters, digest of the list of tensors], or why it is not counted}}, with three labels
HEADS = json.loads((TESTS / "golden" / "heads.json").read_text("utf-8"))
LABELS = {"num_labels": 3}


def with_head(model_type, name, **keys):
    return make("it", configs()[model_type] | {"architectures": [name]} | keys)


def test_the_listing_has_what_it_should():
    kinds = [kind for rows in HEADS.values() for name in rows for kind in [name.rpartition("For")[2] or "Model"]]
    assert HEADS.keys() <= architectures().keys()
    assert len(HEADS) > 120 and len(set(kinds)) > 8
    counted = [(row[0], rows) for rows in HEADS.values() for row in rows.values() if isinstance(row, list)]
    assert sum(len({n for n, _ in counted if _ is rows}) > 1 for rows in HEADS.values()) > 100


@pytest.mark.parametrize("model_type", HEADS)
def test_its_tensors_are_those_of_transformers(model_type):
    for name, row in HEADS[model_type].items():
        if isinstance(row, str):
            with pytest.raises(Problem, match=name):
                with_head(model_type, name, **LABELS)
            continue
        counts = with_head(model_type, name, **LABELS).counts
        assert [counts.total, digest(dict(counts.tensors()))] == row, name


SIZES = {
    "mistral": dict(vocab_size=32000, hidden_size=4096, num_attention_heads=32, num_key_value_heads=8)
    | dict(intermediate_size=14336, num_hidden_layers=32),
    "llama": dict(vocab_size=128256, hidden_size=4096, num_attention_heads=32, num_key_value_heads=8)
    | dict(intermediate_size=14336, num_hidden_layers=32),
    "bert": dict(vocab_size=30522, hidden_size=384, num_attention_heads=12, max_position_embeddings=512)
    | dict(intermediate_size=1536, num_hidden_layers=6),
}


@pytest.mark.parametrize(
    "model_type, name, keys, parameters",
    [
        ("mistral", "MistralModel", {}, 7_110_660_096),  # intfloat/e5-mistral-7b-instruct
        ("llama", "LlamaForSequenceClassification", {"id2label": {"0": "reward"}}, 7_504_928_768),
        ("llama", "LlamaForSequenceClassification", {}, 7_504_928_768 + 4096),  # two labels, as transformers has it
        ("bert", "BertModel", {}, 22_713_216),  # sentence-transformers/all-MiniLM-L6-v2
        ("llama", "LlamaForCausalLM", {}, 8_030_261_248),
    ],
)
def test_published_models(model_type, name, keys, parameters):
    assert make("it", {"model_type": model_type, "architectures": [name]} | SIZES[model_type] | keys).counts.total == (
        parameters
    )


def test_a_decoder_keeps_its_cache_and_its_layers_whatever_stands_on_it():
    own, base = (with_head("llama", f"Llama{end}").counts for end in ("ForCausalLM", "Model"))
    assert base.cache_bytes(4096) == own.cache_bytes(4096) > 0
    head = 2 * configs()["llama"]["hidden_size"] * configs()["llama"]["vocab_size"]
    assert own.decode_flops(64) - base.decode_flops(64) == head


@pytest.mark.parametrize("nothing", [None, []])
def test_without_a_class_it_is_the_trunks_own_head(nothing):
    raw = configs()["llama"]
    assert make("it", raw | {"architectures": nothing}).counts.total == make("it", raw).counts.total


@pytest.mark.parametrize(
    "keys, said",
    [
        ({"architectures": ["Eagle3DeepseekV3ForCausalLM"]}, r"draft head \(EAGLE-3 over other layers\)"),
        ({"architectures": ["EagleMistralForCausalLM"]}, r"draft head \(EAGLE over other layers\)"),
        ({"architectures": ["MedusaModel"], "model_type": "medusa"}, "medusa_num_heads is missing"),
        ({"architectures": ["DFlash2DraftModel"]}, r"draft head \(DFlash over other layers\)"),
        ({"architectures": ["DeepSeekMTPModel"]}, "multi-token prediction"),
        ({"architectures": ["LlamaForCausalLMNextN"]}, "multi-token prediction"),
        ({"architectures": ["EagleSpeculator"], "model_type": None}, "draft head"),
        ({"architectures": ["Qwen3XPressModel"]}, r"draft head \(XPress\)"),
        ({"architectures": ["K3DSparkModel"]}, r"draft head \(DSpark\)"),
        ({"architectures": ["MuseGlimmerAssistantModel"]}, r"draft head \(an assistant"),
        ({"architectures": ["MLPSpeculatorPreTrainedModel"], "model_type": "mlp_speculator"}, r"\(MLP speculator\)"),
        ({"architectures": ["LlamaForCausalLM"], "draft_vocab_size": 32000}, "draft_vocab_size = 32000 exceeds"),
        ({"architectures": ["LlamaForFoo"], "draft_vocab_size": 32}, "draft_vocab_size: a draft head"),
        ({"architectures": ["LlamaForFoo"]}, "'LlamaForFoo': no known class"),
        ({"architectures": ["MistralForCausalLM"]}, "'MistralForCausalLM': no known class"),
        ({"architectures": ["LlamaForConditionalGeneration"]}, "no known class"),
        ({"architectures": ["Qwen2ForRewardModel"]}, "no known class"),
        ({"architectures": "LlamaForCausalLM"}, "expected a list of class names"),
        ({"architectures": [3]}, "expected a list of class names"),
        ({"architectures": ["LlamaForTokenClassification"], "num_labels": 0}, "num_labels = 0"),
    ],
)
def test_what_is_not_counted_says_so_and_ends_with_2(tmp_path, capsys, keys, said):
    raw = {**configs()["llama"], **keys}
    with pytest.raises(Problem, match=said):
        make("it", {key: value for key, value in raw.items() if value is not None})
    (tmp_path / "config.json").write_text(json.dumps(raw))
    assert main(["describe", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1


@pytest.mark.parametrize("model_type, name", [(t, name) for t, names in class_names().items() for name in names])
def test_each_name_of_a_maker_is_one_that_the_rule_does_not_know(model_type, name, monkeypatch):
    raw = configs().get({"kimi_k2": "deepseek_v3"}.get(model_type, model_type))
    text = configs().get({"inkling_mm_model": "inkling_text"}.get(model_type, f"{model_type}_text"), configs()["llama"])
    raw = raw | {"model_type": model_type} if raw else {"model_type": model_type, "text_config": text}
    assert make("it", raw | {"architectures": [name]}).head is None
    monkeypatch.setattr(presets, "CLASS_NAMES", {})
    try:
        assert make("it", raw | {"architectures": [name]}).head is not None  # by the rule, the trunk alone
    except Problem as problem:
        assert "no known class" in str(problem)


def test_a_whole_has_the_class_of_its_own_name():
    text = configs()["gemma3_text"]
    whole = {"model_type": "gemma3", "text_config": text, "vision_config": {"hidden_size": 3}}
    own = make("it", whole | {"architectures": ["Gemma3ForConditionalGeneration"]})
    assert own.head is None and own.counts.total == make("it", text).counts.total
    scored = make("it", whole | {"architectures": ["Gemma3ForSequenceClassification"]} | {"id2label": {"0": "a"}})
    alone = with_head("gemma3_text", "Gemma3TextForSequenceClassification", num_labels=1)
    assert scored.counts.total == alone.counts.total
    with pytest.raises(Problem, match="LlavaForConditionalGeneration"):
        make("it", whole | {"architectures": ["LlavaForConditionalGeneration"]})
    strange = {"model_type": "ultravox", "text_config": configs()["llama"]}
    own = make("it", strange | {"architectures": ["UltravoxForConditionalGeneration"]})
    assert own.head is None and own.counts.total == make("it", configs()["llama"]).counts.total
    with pytest.raises(Problem, match="LlavaModel"):  # which may well have a head
        make("it", strange | {"model_type": "llava", "architectures": ["LlavaModel"]})


@pytest.mark.parametrize(
    ("whole", "name", "text"),
    [
        ("blip", "BlipForConditionalGeneration", "blip_text_model"),
        ("pix2struct", "Pix2StructForConditionalGeneration", "pix2struct_text_model"),
        ("florence2", "Florence2ForConditionalGeneration", "bart"),
    ],
)
def test_a_whole_has_its_own_head_also_where_its_text_model_is_no_causal_one(whole, name, text):
    alone = configs()[text] | {"tie_word_embeddings": True}
    raw = {"model_type": whole, "text_config": alone, "tie_word_embeddings": True}
    read = make("it", raw | {"architectures": [name]})
    assert read.head is None and read.counts.total == make("it", raw).counts.total


# --- on real arrays ---------------------------------------------------------------------------------------------------


def arrays(g, **more):
    return Arrays({**g.weights().tensors, **more})


def test_the_last_hidden_states_are_what_the_own_head_reads():
    g = golden("llama")
    model = make("it", g.raw | {"architectures": ["LlamaModel"]})
    hidden, cache = logits(model.architecture, model.config, arrays(g), g.ids, head=model.head)
    table = g.weights().tensors["lm_head.weight"].astype(np.float32)
    assert hidden.shape == (len(g.ids), int(model.config.d_model)) and cache.length == len(g.ids)
    close(hidden @ table.T, g.logits)


def test_a_score_is_of_the_last_token_and_one_of_tokens_is_of_each():
    g, rng = golden("llama"), np.random.default_rng(3)
    width = g.raw["hidden_size"]
    table, shift = rng.standard_normal((3, width), np.float32), rng.standard_normal(3).astype(np.float32)
    names = {"score.weight": table, "score.bias": shift, "qa_outputs.weight": table[:2], "qa_outputs.bias": shift[:2]}
    w = arrays(g, **names)

    def given(end):
        model = make("it", g.raw | LABELS | {"architectures": [f"Llama{end}"]})
        return logits(model.architecture, model.config, w, g.ids, head=model.head)[0]

    hidden = given("Model")
    close(given("ForSequenceClassification"), hidden[-1:] @ table.T)
    close(given("ForTokenClassification"), hidden @ table.T + shift)
    close(given("ForQuestionAnswering"), hidden @ table[:2].T + shift[:2])


def test_the_head_of_modernbert_reads_the_first_token_or_the_mean():
    raw = configs()["modernbert"] | LABELS | {"architectures": ["ModernBertForSequenceClassification"]}
    first, mean = make("it", raw), make("it", raw | {"classifier_pooling": "mean"})
    rng = np.random.default_rng(5)
    w = Arrays({name: rng.standard_normal(shape, np.float32) for name, shape in first.counts.tensors()})
    said = [logits(m.architecture, m.config, w, [3, 5, 8], head=m.head)[0] for m in (first, mean)]
    alone = [logits(m.architecture, m.config, w, [3], head=m.head)[0] for m in (first, mean)]
    assert said[0].shape == (1, 3) and not np.allclose(said[0], said[1])
    close(alone[0], alone[1])


def save(folder, raw, tensors):
    from safetensors.numpy import save_file

    (folder / "config.json").write_text(json.dumps(raw))
    save_file({name: np.ascontiguousarray(array) for name, array in tensors.items()}, folder / "model.safetensors")


@pytest.mark.parametrize("stored", ["", "model."])
def test_a_checkpoint_of_the_trunk_alone_is_read_by_its_own_names(tmp_path, capsys, stored):
    g = golden("llama")
    tensors = g.weights().tensors
    below = {stored + name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}
    save(tmp_path, g.raw | {"architectures": ["LlamaModel"]}, below)
    asked = checkpoints.checkpoint(str(tmp_path))
    model = asked.model
    hidden, _ = logits(model.architecture, model.config, asked.weights(), g.ids, head=model.head)
    close(hidden @ tensors["lm_head.weight"].astype(np.float32).T, g.logits)
    assert main(["run", str(tmp_path), "--tokens", "1,2"]) == 2
    assert "LlamaModel (the last hidden states, no head) scores no next token" in capsys.readouterr().err
    with pytest.raises(Problem, match="scores no next token"):
        run(tmp_path, tokens=[1, 2])


def test_no_preset_is_made_of_another_head(tmp_path, capsys):
    (tmp_path / "config.json").write_text(json.dumps(configs()["llama"] | {"architectures": ["LlamaModel"]}))
    assert main(["add", str(tmp_path)]) == 2
    assert "LlamaModel" in capsys.readouterr().err


# --- keys that name a size, and types that are not known --------------------------------------------------------------


def test_an_unknown_key_that_names_a_size_stands_in_the_answer(tmp_path, capsys):
    more = {"engram_table_size": 5, "num_sinks": 2, "n_tails": 3, "latent_dim": 4, "mtp_layers": 1, "zero_experts": 2}
    others = {"num_nothing": None, "colour": "blue", "sized": 3}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(configs()["llama"] | more | others))
    model = presets.load(str(path))
    assert model.unknown_sizes == list(more)
    assert any(line.startswith("unknown keys that name a size") for line in model.warnings)
    assert any("'colour', 'sized'" in line and "'n_tails'" not in line for line in model.warnings)
    assert main(["describe", "--format", "json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["unknown_sizes"] == list(more)
    assert main(["describe", str(path)]) == 0
    printed = capsys.readouterr().out
    assert printed.index("engram_table_size") < printed.index("embed_tokens")


def test_the_type_of_the_whole_is_said_before_what_is_wrong_in_its_part():
    text = configs()["kimi_linear"] | {"hidden_act": "sitx"}
    with pytest.raises(Problem) as wrong:
        make("it", {"model_type": "kimi_k9", "text_config": text})
    assert str(wrong.value).startswith("model_type = 'kimi_k9' is not known") and "sitx" in str(wrong.value)
    assert "did you mean" not in str(wrong.value)
    sized = configs()["kimi_linear"] | {"num_new_things": 3}
    with pytest.raises(Problem, match=r"^model_type = 'kimi_k9' is not known.*num_new_things"):
        make("it", {"model_type": "kimi_k9", "text_config": sized})
    whole = make("it", {"model_type": "llava", "text_config": configs()["llama"], "vision_config": {"a": 1}})
    assert whole.counts.total == make("it", configs()["llama"]).counts.total


@pytest.mark.parametrize(
    "model_type, like, nearest",
    [("samba", "jamba", "jamba"), ("nystromformer", "bert", "bert"), ("qwen9_text", "qwen2", "qwen2")],
)
def test_a_type_that_is_not_known_is_told_by_its_keys_and_not_by_its_name(model_type, like, nearest):
    raw = configs()[like] | {"model_type": model_type, "n_new_parts": 2}
    missing = next(k for k in ("num_hidden_layers", "hidden_size") if k in raw)
    del raw[missing]
    with pytest.raises(Problem) as wrong:
        make("it", raw)
    said = str(wrong.value)
    assert f"model_type = '{model_type}' is not known; it is another architecture" in said
    assert "did you mean" not in said and "n_new_parts" in said and missing in said and f" is {nearest}" in said
