"""The towers beside a text part: their published totals, the tokens of an image, where they stand in the data."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import tomllib
from pathlib import Path

import jsonschema
import msgspec
import numpy as np
import pytest
from sampling import fewer

import macros
from macros.catalogue import components, presets
from macros.catalogue.checks import check, check_file
from macros.catalogue.components import components_of
from macros.catalogue.preset_file import Extra, Published
from macros.cli import totals
from macros.cli.commands import main
from macros.cli.skeleton import skeleton
from macros.data.components import Inputs, data
from macros.data.schema import model as schema
from macros.engine.errors import Problem
from macros.engine.rules import ShapeError

GOLDEN = Path(__file__).parent.parent / "golden" / "towers"
TOKENS = json.loads((GOLDEN / "tokens.json").read_bytes())
pytestmark = pytest.mark.filterwarnings("ignore:a config of several parts")
SCOUT = (presets.FOLDER / "llama/llama4-scout.toml").read_text("utf-8")
WITH_TOWERS = [slug for slug in presets.paths() if presets.preset(slug).components]


def test_each_part_that_a_preset_leaves_out_is_a_counted_tower():
    leaving_out = [slug for slug in presets.paths() if presets.preset(slug).sources.left_out]
    assert len(WITH_TOWERS) >= 28 and leaving_out == WITH_TOWERS
    for slug in WITH_TOWERS:
        model = presets.model(slug)
        assert {component.part for component in model.components} == set(presets.preset(slug).sources.left_out)
        assert model.uncounted_parts == ()


@pytest.mark.parametrize("slug", WITH_TOWERS)
def test_text_and_towers_make_the_published_file(slug):
    """With what the file holds besides: an MTP layer, a second head. No count of a tower is typed."""
    model, published = presets.model(slug), presets.preset(slug).published
    assert not any(component.unknown for component in model.components)
    assert not any(
        "tower" in row.name or row.part == "vision" for row in (published.extra if published else ()) if row.count
    )
    if model.published and published and published.exact:
        rest = sum(row.count for row in published.extra) + model.counts.buffer_elements
        assert model.with_components + rest == published.parameters


@pytest.mark.parametrize("slug", TOKENS)
def test_the_tokens_of_an_image_or_a_sound_are_those_of_the_processor(slug):
    """By transformers' own code, without the smallest and largest number of pixels, which no config.json has."""
    golden = GOLDEN / f"{slug}.npz"
    whole = json.loads(str(np.load(golden)["config_json"])) if golden.exists() else presets.model(slug).whole
    reads = "image" if len(TOKENS[slug][0]) == 3 else "sound"
    [tower] = (component for component in components_of(whole)[0] if component.reads == reads)
    for *given, tokens in TOKENS[slug]:
        seen = tower.image(*given) if reads == "image" else tower.sound(*given)
        assert seen.tokens == tokens, given


@pytest.mark.parametrize("slug", fewer(["gemma-4-e2b", "llama4-scout", "qwen3-vl-2b", "gpt2"], 4))
@pytest.mark.parametrize("collapse", [True, False])
def test_the_default_is_without_and_the_rest_is_equal(slug, collapse):
    model = presets.model(slug)
    plain = macros.load(slug).to_dict(collapse) if sum(int(w.copies) for w in model.counts.weights) < 10_000 else {}
    whole = macros.load(slug).to_dict(collapse, components=True)
    assert "components" not in plain
    jsonschema.validate(whole, schema())
    towers = whole.pop("components")["towers"]
    assert plain in ({}, whole)
    assert [t["part"] for t in towers] == [c.part for c in model.components]


def small(name):
    """The config of a small whole."""
    return json.loads(str(np.load(GOLDEN / f"{name}.npz")["config_json"]))


@pytest.mark.parametrize("resampled", [True, False])
def test_a_text_looks_at_as_many_vectors_as_the_tower_makes(resampled):
    whole = small("idefics") | {"use_resampler": resampled}
    [tower], others = components_of(whole)
    vectors, width = tower.counts.trace.root.outputs[0].shape
    assert presets.make("whole", whole).config.source_shape == (vectors, width) and others == ()


@pytest.mark.filterwarnings("ignore:Some layers look")
def test_a_protein_is_read_one_amino_acid_a_token():
    [tower] = macros.load(small("evolla")).components
    assert tower.name == "protein" and tower.protein(100)[1:3] == (102, 5)
    assert tower.protein(200).flops > 2 * tower.protein(100).flops - tower.protein(1).flops  # attention is quadratic
    with pytest.raises(Problem, match="reads proteins"):
        tower.image(640, 480)
    with pytest.raises(Problem, match="residues"):
        tower.protein(0)


def test_the_api_says_what_an_image_costs():
    [tower] = macros.load("qwen3-vl-2b").components
    assert tower.name == "vision" and tower.total == sum(row["parameters"] for row in tower.rows())
    small, large = tower.image(640, 480), tower.image(1280, 960)
    assert large.tokens == 4 * small.tokens and large.flops > 4 * small.flops  # attention is quadratic
    with pytest.raises(Problem, match="reads images"):
        tower.sound(30)
    with pytest.raises(Problem, match="width = 0"):
        tower.image(0, 480)


def test_a_config_of_ones_own_has_its_towers():
    preset = presets.preset("gemma3-4b")
    whole = {**preset.components, "text_config": preset.config}
    made = presets.make("config", whole)
    assert made.with_components == presets.preset("gemma3-4b").published.parameters
    assert made.uncounted_parts == ()
    made = presets.make("config", whole | {"speech_config": {"hidden_size": 5}})
    assert made.uncounted_parts == ("speech_config",) and len(made.components) == 1


@pytest.mark.parametrize(
    "layers, d_ff, sharing, parameters",
    [(35, 16384, 15, 7_818_517_072), (30, 8192, 10, 5_418_464_192)],  # of Gemma3nForConditionalGeneration
)
def test_gemma_3n_with_its_conformer_and_its_convolutional_net(layers, d_ff, sharing, parameters):
    """E4B and E2B by transformers' defaults, of which sizes of the text model differ; its own count."""
    text = {"model_type": "gemma3n_text", "hidden_size": 2048, "num_hidden_layers": layers, "intermediate_size": d_ff}
    text |= {"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "num_kv_shared_layers": sharing}
    text |= {"vocab_size": 262400, "vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 256}
    made = presets.make(
        "config", {"model_type": "gemma3n", "text_config": text, "vision_config": {}, "audio_config": {}}
    )
    assert (made.with_components, made.uncounted_parts) == (parameters, ())


def test_a_new_preset_comes_with_its_towers(tmp_path):
    preset = presets.preset("gemma3-4b")
    whole = {**preset.components, "text_config": preset.config}
    (tmp_path / "config.json").write_text(json.dumps(whole), "utf-8")
    made = tomllib.loads(skeleton(str(tmp_path), hub="google/gemma-3-4b-it").text)
    assert made["components"] == preset.components
    assert made["sources"]["components"] == "google/gemma-3-4b-it, config.json, vision_config"


@pytest.mark.parametrize(
    "change, says",
    [
        ({"hidden_size": None}, "vision_config: hidden_size is missing"),
        ({"hidden_size": 1150}, "vision_config: num_attention_heads = 16 does not divide hidden_size = 1150"),
        ({"image_size": 7}, "vision_config: patch_size = 14 exceeds image_size = 7"),
        ({"vision_use_head": True}, "vision_config: vision_use_head = True"),
    ],
)
def test_a_wrong_tower_is_named(change, says):
    preset = presets.preset("gemma3-4b")
    tower = {**preset.components["vision_config"], **change}
    with pytest.raises(Problem, match=says):
        components_of({**preset.components, "vision_config": tower, "text_config": preset.config})
    presets.make(
        "config", {**preset.components, "vision_config": tower, "text_config": preset.config}
    )  # is not refused


@pytest.mark.parametrize(
    "slug, old, new, says",
    [
        ("gemma3-4b", "patch_size = 14", 'patch_size = "x"', "vision_config: patch_size = 'x': expected"),
        ("gemma3-4b", "patch_size", "patch_siz", "vision_config: patch_size is missing; the file has"),
        ("inkling-975b", "temporal_patch_size", "temporal_patch_siz", "vision_config: temporal_patch_siz: unknown"),
        ("deepseek-v3", "predict_layers = 1", "predict_layers = -1", "num_nextn_predict_layers = -1: expected"),
    ],
)
def test_a_wrong_part_of_a_preset_is_named_with_its_file(tmp_path, slug, old, new, says):
    """And an unknown key is refused, as in the rest of a preset."""
    text = presets.paths()[slug].read_text("utf-8")
    assert old in text
    path = tmp_path / "of-ours.toml"
    path.write_text(text.replace(old, new, 1).replace('name = "', 'name = "Our ', 1), "utf-8")
    try:
        presets.read_also(tmp_path)
        found = check("of-ours")
    finally:
        presets.read_also(None)
    assert found.state == "off"
    assert found.text.startswith(f"{path}: {says}")


def test_the_part_that_writes_has_the_towers_of_a_whole_that_also_speaks():
    thinker = json.loads(str(np.load(GOLDEN / "qwen2_5_omni.npz")["config_json"]))
    made = presets.make("config", {"model_type": "qwen2_5_omni", "thinker_config": thinker, "talker_config": {}})
    assert [(tower.part, tower.name) for tower in made.components] == [
        ("thinker_config.vision_config", "vision"),
        ("thinker_config.audio_config", "audio"),
    ]
    assert made.uncounted_parts == ("talker_config",)


def test_the_command_prints_towers_on_request(capsys):
    assert main(["describe", "llama4-scout", "--collapse", "--image", "640x480", "--format", "json"]) == 0
    [tower] = json.loads(capsys.readouterr().out)["components"]["towers"]
    [seen] = tower["inputs"]
    assert (seen["width"], seen["height"], seen["pieces"], seen["tokens"]) == (640, 480, 5, 720)
    assert main(["describe", "gemma-4-e2b", "--components", "--sound", "12"]) == 0
    out = capsys.readouterr().out
    assert "audio (audio_config): gemma4_audio" in out and "tokens of a sound of 12 seconds" in out
    assert f"{presets.model('gemma-4-e2b').with_components:,}" in out
    assert main(["describe", "gemma3-4b", "--components", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert sum(int(row["parameters"]) for row in rows) == presets.model("gemma3-4b").with_components
    with pytest.raises(SystemExit):
        main(["describe", "gemma3-4b", "--image", "640"])
    assert "'640' is not the size of an image" in capsys.readouterr().err
    assert main(["describe", "gemma3-4b", "--image", "640x999999"]) == 2
    assert "an image of 640 × 999,999" in capsys.readouterr().err


@pytest.mark.parametrize("slug", WITH_TOWERS)
def test_totals_writes_rows_that_count_each_tensor_of_the_towers_once(slug):
    model = presets.model(slug)
    found = totals.towers(model)
    written = tomllib.loads(totals.rows(found))["extra"]
    assert [row["tensors"] for row in written] == [row.tensors for row in found]
    figure = Published(parameters=1, exact=True, source="theirs", extra=tuple(msgspec.convert(written, list[Extra])))
    counted = components.with_counts(figure, lambda: model.components, "")
    assert [row.count for row in counted.extra] == [*found.values()]
    assert sum(found.values()) == sum(component.total for component in model.components)


def test_totals_writes_the_towers_of_a_file_into_its_preset(tmp_path, capsys):
    """A file cut off after its header."""
    text = SCOUT.replace("Llama 4 Scout", "Ours").replace('hub = "meta-llama', 'hub = "ours')
    (tmp_path / "ours.toml").write_text(text.partition("[published]")[0], "utf-8")
    tensors, end = {}, 0
    model = presets.model("llama4-scout")
    for counts in (model.counts, model.components[0].counts):
        for name, shape in counts.tensors():
            begin, end = end, end + 2 * math.prod(map(int, shape))
            tensors[name] = {"dtype": "BF16", "shape": [*map(int, shape)], "data_offsets": [begin, end]}
    header = json.dumps(tensors).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    try:
        assert main(["totals", str(tmp_path), "--preset", str(tmp_path / "ours.toml")]) == 0
    finally:
        presets.read_also(None)
    assert "the file has the towers, too, now rows of extra: " in capsys.readouterr().err
    assert check_file(tmp_path / "ours.toml").text.startswith("107,769,861,120; exact, 871,932,416 more")


@pytest.mark.parametrize("more", [{"hidden_size": 64, "vocab_size": 100}, {"vision_config": {"hidden_size": 64}}])
def test_a_known_whole_without_its_text_part_is_not_called_another_architecture(more):
    with pytest.raises(Problem) as wrong:
        presets.make("config.json", {"model_type": "llava", **more})
    assert str(wrong.value) == (
        "model_type = 'llava' is a model of several parts, and the config has no table for its text part; "
        "give the whole config.json, with those keys in a table such as text_config"
    )


@pytest.mark.parametrize(
    "change, said",
    [
        (
            ('[components]\nmodel_type = "llama4"', '[components]\nmodel_type = "lama4"'),
            "components.model_type = 'lama4': no tower of this type is known; did you mean \"llama4\"?",
        ),
        (
            ('[components]\nmodel_type = "llama4"\n', "[components]\n"),
            "components.model_type is missing; write the model_type of the whole config.json, such as llama4",
        ),
        (
            ("[components.vision_config]", "[components.visual_config]"),
            'components.visual_config: llama4 has no such tower; did you mean "vision_config"?',
        ),
        (
            ('tensors = "vision_model."', 'tensors = "vison_model."'),
            "published.extra[0].tensors = 'vison_model.': no tensor of a tower begins with it; "
            'did you mean "vision_model."?',
        ),
        (
            ('tensors = "vision_model."', 'tensors = "x"'),
            "published.extra[0].tensors = 'x': no tensor of a tower begins with it; "
            "known: vision_model., multi_modal_projector.",
        ),
        (
            ('part = "vision"', 'part = "visual"'),
            "published.extra[0].part: expected 'vision' or 'prediction'; "
            "`every-parameter schema` says what each key holds",
        ),
    ],
)
def test_a_wrong_tower_of_a_preset_names_file_key_and_mend(change, said, tmp_path):
    path = tmp_path / "ours.toml"
    text = SCOUT.replace("Llama 4 Scout", "Ours").replace('hub = "meta-llama', 'hub = "ours')
    assert change[0] in text
    path.write_text(text.replace(*change, 1), "utf-8")
    assert check_file(path).text == f"{path}: {said}"


def test_a_tower_whose_sizes_clash_names_the_file(monkeypatch):
    """In a preset that is traced as its total is computed, and in a model whose tower alone is."""

    def clash(*of):
        raise ShapeError("linear: [T 3] against [2 3]")

    model = presets.make("llama4-scout", presets.preset("llama4-scout").config, presets.preset("llama4-scout"))
    monkeypatch.setattr(components, "trace", clash)
    file = "macros/presets/llama/llama4-scout.toml: "
    for call in (lambda: model.published, lambda: model.components[0].total):
        with pytest.raises(Problem) as wrong:
            call()
        said = "vision_config: the sizes do not fit together: linear: [T 3] against [2 3]"
        assert str(wrong.value) == f"{file}{said}; correct the sizes in vision_config"


def test_keys_of_the_prediction_module_are_no_sizes_of_the_text_model():
    model = presets.model("exaone-4.5-33b")
    assert (model.counts.total, model.with_components) == (32_527_504_384, 33_813_987_328)
    assert model.prediction and model.prediction.number == 1 and model.with_prediction > model.counts.total


def test_the_module_for_prediction_and_the_towers_are_added_up_apart():
    """DeepSeek-V3 has a module for prediction and no towers, Gemma 3 4B towers and no module."""
    there = {slug: data(presets.model(slug), Inputs(), False) for slug in ("deepseek-v3", "gemma3-4b")}
    predicts, sees = there["deepseek-v3"], there["gemma3-4b"]
    total = presets.model("deepseek-v3").counts.total
    assert predicts["parameters"] == total and predicts["towers"] == []
    assert predicts["parameters_with_prediction"] == total + predicts["prediction"]["parameters"] > total
    towers = sum(tower["parameters"] for tower in sees["towers"])
    assert sees["parameters"] == presets.model("gemma3-4b").counts.total + towers
    assert sees["prediction"] is None and sees["parameters_with_prediction"] == sees["parameters"] - towers


def test_a_preset_whose_file_has_other_numbers_says_both(tmp_path, capsys):
    """The numbers of the file first, then those of the forward pass."""
    (tmp_path / "ours.toml").write_text(SCOUT.replace("Llama 4 Scout", "Ours").partition("[published]")[0], "utf-8")
    header = json.dumps({"a.weight": {"dtype": "BF16", "shape": [3, 5], "data_offsets": [0, 30]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    try:
        assert main(["totals", str(tmp_path), "--preset", str(tmp_path / "ours.toml")]) == 1
    finally:
        presets.read_also(None)
    (said,) = re.findall(r"([\d,]+) in all, and the forward pass gives ([\d,]+)", capsys.readouterr().err)
    assert said == ("15", f"{presets.model('llama4-scout').held():,}")
