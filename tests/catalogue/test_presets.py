"""The catalogue: every preset is readable, countable, and what was published; every reference list has its preset."""

from __future__ import annotations

import datetime
import re

import msgspec
import pytest
from reference import checkpoint

from macros.catalogue import checks, models, preset_file, presets
from macros.catalogue.checks import REFERENCES, check
from macros.catalogue.independent import comparison
from macros.cli.scaffold import REASON
from macros.engine.errors import Problem

SLUGS = list(presets.paths())
UNDISCLOSED = [slug for slug in SLUGS if presets.preset(slug).config is None]


@pytest.mark.parametrize("slug", SLUGS)
def test_a_preset(slug):
    preset = presets.preset(slug)
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", slug)
    assert preset.sources.names in presets.NAMES, f"{slug}: sources.names is one of {presets.NAMES}"
    is_own = preset.config is not None and comparison().absent.get(preset.config["model_type"]) == REASON
    assert (preset.sources.names == "own") == is_own, (
        f'{slug}: names = "own" is for a type that no library has, and only'
    )
    assert preset.sources.verified <= datetime.date.today() + datetime.timedelta(days=1)
    assert (preset.config is None) == (preset.sources.config == "not disclosed by the maker")
    assert "memory" not in preset.sources.config.lower()
    if preset.published:
        assert "memory" not in preset.published.source.lower()
    assert "memory" not in (preset.released_source or "").lower()


@pytest.mark.parametrize("slug", [s for s in SLUGS if s not in UNDISCLOSED])
def test_it_is_as_published(slug):
    result = check(slug)
    assert result.state in ("ok", "counted"), result.text


def test_the_total_of_the_file_at_hub_is_what_is_stored():
    """The hub's total of a model's own file is marked as the file's; no two figures have one source."""
    for slug in SLUGS:
        preset = presets.preset(slug)
        published = preset.published
        own = f"{preset.hub} on the Hugging Face Hub, safetensors total"
        if published and published.exact and published.source == own:
            assert published.file, slug
        for other in published.other if published else ():
            assert other.source != published.source, slug


def test_a_preset_of_a_part_says_what_is_left_out():
    """A config of `text_config` names it; one with the language model's keys beside a tower leaves out the tower."""
    for slug in SLUGS:
        preset = presets.preset(slug)
        named, published = preset.sources, preset.published
        assert (named.part is not None) == ("text_config" in named.config), slug
        assert named.left_out or not named.part, slug
        if published and published.of_part("vision"):
            assert "vision_config" in named.left_out, slug
    assert presets.preset("llama4-scout").sources.left_out == ("vision_config",)


def test_a_licence_is_there_or_what_was_read_for_it():
    """Of published weights; "not established" alone tells a reader nothing."""
    for slug in SLUGS:
        preset = presets.preset(slug)
        assert bool(preset.hub) == bool(preset.licence or preset.licence_looked_at), slug
        assert "memory" not in (preset.licence_source or preset.licence_looked_at or "").lower()


def test_names_are_not_used_twice():
    of: dict[str, str] = {}
    for slug in SLUGS:
        one = presets.preset(slug)
        for name in filter(None, dict.fromkeys((one.name, one.hub, *one.aliases))):
            assert of.setdefault(name, slug) == slug, f"{name!r} is said of {of[name]} and of {slug}"


def test_every_reference_list_has_a_preset():
    assert {path.stem for path in REFERENCES.glob("*.json")} <= set(SLUGS)


def test_the_lists_names_are_what_the_presets_say():
    for slug in SLUGS:
        if listed := checkpoint(slug):
            assert presets.preset(slug).sources.names == listed["names"], slug


def test_some_models_are_undisclosed():
    assert {"claude-3-opus", "gpt-4"} <= set(UNDISCLOSED)


@pytest.mark.parametrize("slug", UNDISCLOSED)
def test_an_undisclosed_model_is_not_guessed(slug):
    assert presets.preset(slug).published is None
    with pytest.raises(Problem, match="not disclosed"):
        presets.model(slug)
    assert check(slug).state == "undisclosed"


def test_gpt3s_rows_that_contradict_themselves_are_explained():
    for slug in ("gpt3-13b", "gpt3-xl"):
        assert "128" in presets.preset(slug).note


def test_one_wrong_number_is_off(monkeypatch):
    import msgspec

    right = presets.preset("llama3-8b")
    wrong = msgspec.structs.replace(right, published=msgspec.structs.replace(right.published, parameters=8_030_261_249))
    model = presets.make("llama3-8b", right.config, wrong)
    with pytest.raises(
        Problem, match=r"published\.parameters = 8,030,261,249, and the forward pass gives 8,030,261,248 \(-1\)"
    ):
        model.verify()
    rounded = msgspec.structs.replace(
        right, published=msgspec.structs.replace(right.published, parameters=9_000_000_000, exact=False)
    )
    monkeypatch.setattr("macros.catalogue.checks.model", lambda slug: presets.make(slug, right.config, rounded))
    assert check("llama3-8b").state == "off"


@pytest.mark.parametrize(
    "change, found",
    [
        (lambda rows: rows[1:], "asks for model.embed_tokens.weight"),
        (
            lambda rows: [*rows, ["model.extra.weight", None, [3]]],
            r"has model.extra.weight \[3\], and the forward pass does not",
        ),
        (
            lambda rows: [[rows[0][0], None, [128256, 4095]], *rows[1:]],
            r"is \[128256, 4095\] in the reference list and \[128256, 4096\]",
        ),
        (lambda rows: [[n, {"i": [[0, 30, 1]]} if r else r, s] for n, r, s in rows], r"asks for model.layers.31\."),
    ],
)
def test_a_reference_list_that_differs_is_off(monkeypatch, change, found):
    listed = checkpoint("llama3-8b")
    monkeypatch.setattr(
        "macros.catalogue.checks.reference", lambda slug: {**listed, "tensors": change(listed["tensors"])}
    )
    result = check("llama3-8b")
    assert result.state == "off" and re.search(found, result.text), result.text


@pytest.mark.parametrize("name, value", [("total", 1), ("active", 1), ("kv_cache_bytes_per_token", 1)])
def test_a_reference_figure_that_differs_is_off(monkeypatch, name, value):
    listed = checkpoint("llama3-8b")
    monkeypatch.setattr("macros.catalogue.checks.reference", lambda slug: {**listed, name: value})
    assert check("llama3-8b").text.startswith(f"macros/presets/llama/llama3-8b.toml: {name}: 1 in the reference list")


def test_a_misspelled_slug_is_told_the_nearest():
    with pytest.raises(Problem, match='did you mean "llama3-8b"'):
        presets.load("lama3-8b")


# --- where the values of a config are from ---


def test_a_source_of_values_says_what_was_read():
    """A config of a class's defaults says so in the words that are looked for; no prose hides one."""
    for slug in SLUGS:
        sources = presets.preset(slug).sources
        assert ("default" in sources.config) == sources.config.startswith(preset_file.DEFAULTS), slug
        assert all(source.startswith(preset_file.KINDS) for source in sources.values.values()), slug


def test_a_size_that_is_a_class_default_is_known_as_one():
    """Of InternLM3 8B the vocabulary alone: the cache does not rest on it, the totals and FLOPs do."""
    model = presets.model("internlm3-8b")
    assert model.default_sizes == {"vocab_size"} and not model.has_default_context
    rests = {
        name
        for name in ("total", "active", "weight_bytes", "cache_bytes", "decode_flops")
        if model.rests_on_default(name)
    }
    assert rests == {"total", "active", "weight_bytes", "decode_flops"}
    assert any(said.startswith(models.DEFAULT) and "vocab_size" in said for said in model.warnings)


def test_an_exact_total_holds_the_sizes_that_it_is_made_of():
    for slug in ("a.x-k1", "bitnet-2b-4t", "laguna-xs-2.1", "ling-3.0-flash"):
        model = presets.model(slug)
        assert "hidden_size" in model.raw and model.preset.sources.is_default("hidden_size")
        assert "hidden_size" not in model.default_keys and not model.default_sizes
        assert not model.rests_on_default("total") and not model.has_default_context


def test_a_context_that_no_source_gives_is_a_default():
    of = {slug: presets.model(slug) for slug in ("jais-2-8b", "llama3-8b", "hy3-preview", "bart-large", "mamba-130m")}
    assert [slug for slug, model in of.items() if model.has_default_context] == ["jais-2-8b", "bart-large"]
    assert of["hy3-preview"].longest_context == (262_144, False)
    assert not of["llama3-8b"].default_keys and not of["llama3-8b"].default_sizes


@pytest.mark.parametrize(
    "values, said",
    [
        ({"hiden_size": "card: x"}, 'sources.values.hiden_size is not a key of [config]; did you mean "hidden_size"?'),
        ({"hidden_size": "somewhere"}, "sources.values.hidden_size = 'somewhere': expected what was read first"),
        ({"hidden_size": 3}, "sources.values"),
    ],
)
def test_a_wrong_source_of_a_value_is_one_line(tmp_path, values, said):
    text = presets.paths()["tinyllama-1.1b"].read_text()
    table = "".join(f"{key} = {value!r}\n" for key, value in values.items())
    (tmp_path / "a.toml").write_text(text.replace("[published]", f"[sources.values]\n{table}\n[published]"))
    with pytest.raises(Problem) as problem:
        presets.read_preset(tmp_path / "a.toml")
    assert said in str(problem.value) and "\n" not in str(problem.value)


@pytest.mark.parametrize(
    "wrong, said",
    [
        (
            ('part = "text_config"', 'part = "txt_config"'),
            "sources.part = 'txt_config' is not the key of a language model; did you mean \"text_config\"?",
        ),
        (
            ('part = "text_config"', 'part = "vision_config"'),
            "sources.part = 'vision_config' is not the key of a language",
        ),
        (('left_out = ["vision_config"]', "left_out = []"), "sources.part without sources.left_out; list the keys"),
    ],
)
def test_a_wrong_name_of_a_part_is_one_line(tmp_path, wrong, said):
    text = presets.paths()["llama4-scout"].read_text()
    assert wrong[0] in text
    (tmp_path / "a.toml").write_text(text.replace(*wrong))
    with pytest.raises(Problem) as problem:
        presets.read_preset(tmp_path / "a.toml")
    assert said in str(problem.value) and "\n" not in str(problem.value)


@pytest.mark.parametrize("share", [0.94, 1.06])
def test_a_rounded_total_is_refused_on_both_sides(share):
    """The rounding of a published total is at most 5%."""
    known = presets.preset("gpt3-13b")
    assert known.published and checks.published(presets.model("gpt3-13b")).endswith(" of the rounded 13,000,000,000")
    other = msgspec.structs.replace(known.published, parameters=int(known.published.parameters * share))
    changed = msgspec.structs.replace(known, published=other)
    with pytest.raises(Problem, match=r"published\.parameters = .*, and the forward pass gives .* \([+−-]\d"):
        checks.published(presets.make("gpt3-13b", changed.config, changed))


def test_models_of_sizes_have_every_one_of_them():
    sizes = {"hidden_size": 4096, "num_hidden_layers": 32, "vocab_size": 128256}
    alone = {key: {*presets.of_sizes({key: size})} for key, size in sizes.items()}
    assert {*presets.of_sizes(sizes)} == set.intersection(*alone.values())
    assert "llama3-8b" in presets.of_sizes(sizes) and len({*map(len, alone.values())}) > 1
    assert presets.of_sizes({**sizes, "vocab_size": 128257}) == presets.of_sizes({}) == []
    assert "qwen3-vl-8b" in presets.of_sizes({"num_hidden_layers": 36}), "the sizes of a text part"
