"""The grammar of questions: every value is read or named as not used, and no model answers for another."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from compiled_questions import Compiled
from copies import ROOT
from sampling import fewer

from macros.catalogue import asked, page_paths, presets
from macros.catalogue.question import Grammar, meant
from macros.catalogue.question_leads import leads, note_of
from macros.catalogue.question_words import is_near, is_size, tokens_of
from macros.catalogue.resolving import Resolver
from macros.catalogue.transformers_types import vllm_recipes

SEARCHED = tomllib.loads((ROOT / "tests/site/questions.toml").read_text("utf-8"))
QUESTIONS = tomllib.loads((Path(__file__).parent / "questions.toml").read_text("utf-8"))


def address(source):
    return source.removesuffix(".md").removesuffix("index") + "/"


@cache
def grammar():
    slugs = asked.oldest_first(presets.readable())
    records = [[address(page_paths.model_page(slug)), presets.preset(slug).name] for slug in slugs]
    return Grammar(asked.names(slugs, lambda page: True, address), records, Resolver)


def all_questions():
    """Those of the search and of the grammar, and one for each model and machine."""
    known = {question for part in SEARCHED.values() for question in part}
    known |= {
        *QUESTIONS["values"],
        *QUESTIONS["unused"],
        *QUESTIONS["alike"],
        *QUESTIONS["corrected"],
        *QUESTIONS["families"],
    }
    known |= {*QUESTIONS["absent"]["names"], *QUESTIONS["words"]["questions"]}
    machines = [one.name for one in grammar().machines.values()]
    made = [
        f"{presets.preset(slug).name} q4 16k on {1 + n % 4} x {machines[n % len(machines)]} {n % 7 + 2} users"
        for n, slug in enumerate(presets.readable())
    ]
    return sorted(known), made


def test_a_browser_reads_each_question_as_python_does():
    asked_for, made = all_questions()
    assert len(asked_for) >= 400
    g = grammar()
    compiled = Compiled(g.names, [list(record) for record in g.catalog.records])
    for question in ("qwen3 8b kv cache at 32k", "two 3090s llama 3.3 70b q4", "mistrall 7b lora rank 16"):
        assert not compiled.read(question)["isResolved"], question  # which a browser fetches 6 kB for
    assert compiled.read("unsloth/Qwen3-8B-GGUF:Q4_K_M")["isResolved"]
    for question in [*fewer(asked_for, 4, "asked"), *fewer(made, 12, "made")]:
        meaning = read(question)
        wanted = [
            {**one._asdict(), "compute": one.compute and one.compute._asdict(), "isComputed": one.compute is not None}
            for one in leads(meaning, g)
        ]
        found = compiled.read(question)
        assert found["leads"] == json.loads(json.dumps(wanted)), question
        assert found["note"] == note_of(meaning), question
        assert [one["record"] for one in found["models"]] == [one.record for one in meaning.models], question
        assert found["isAbsent"] == bool(meaning.absent), question


def read(question):
    return meant(question, grammar())


def test_words_written_together_and_apart_are_the_same():
    for together, apart in (
        ("Qwen3-30B-A3B", "qwen 3 30b a3b"),
        ("2xRTX4090", "2 x rtx 4090"),
        ("q4_K_M", "q4 k m"),
        ("8xH100", "8 x h100"),
        ("50,304", "50304"),
        ("m3max", "m3 max"),
        ("mixtral-8x7b", "mixtral 8x7b"),
    ):
        assert [token.text for token in tokens_of(together)] == apart.split()
    assert is_near("mistrall", "mistral") and is_near("lama", "llama") and not is_near("llama", "gemma")


def test_tokens_are_a_number_and_tokens_a_second_a_speed():
    assert read("llama 3 8b tokens").figure is None
    for speed in ("token/s", "tokens/s", "tokens per second"):
        meaning = read(f"8b {speed} rtx 4090")
        assert (meaning.figure, meaning.tokens) == ("tokens_per_second", None), speed
    assert read("train 8b tokens").tokens == 8 * 10**9


@pytest.mark.parametrize("question", QUESTIONS["values"])
def test_each_value_is_read(question):
    [lead, *_] = leads(read(question), grammar())
    page, _, choices = lead.address.partition("?")
    wanted, _, expected = QUESTIONS["values"][question].partition("?")
    given = dict(parse_qsl(choices))
    assert page == wanted and {**given, **dict(parse_qsl(expected))} == given, lead.address


def test_a_card_that_the_table_lacks_is_no_other_card():
    """An RTX 4060 is no RTX 4060 Ti; nor is a laptop's RTX 4090 the card."""
    said = read("qwen3 8b on two rtx 4060")
    assert said.on is None and "No machine here is called rtx 4060" in note_of(said)
    assert read("qwen3 8b on a laptop with an rtx 4090").on is None
    assert read("rtx 4060 ti").on == "rtx-4060-ti"


def test_families_are_compared_in_like_sizes():
    def compared(question):
        return dict(parse_qsl(leads(read(question), grammar())[0].address.partition("?")[2]))["models"]

    assert compared("difference between mixtral and mistral") == "mixtral-8x22b,mistral-large-123b"
    assert compared("qwen3 vs qwen3.5") == "qwen3-32b,qwen3.5-27b"


@pytest.mark.parametrize("question", QUESTIONS["families"])
def test_a_familys_figure_is_said_of_each_of_its_sizes(question):
    found = leads(read(question), grammar())
    assert [lead.compute.slug for lead in found] == QUESTIONS["families"][question].split()
    assert all(lead.compute.slug in lead.address for lead in found)
    if "gemma" in question:
        assert [lead.compute.slug for lead in leads(read(f"{question} 4b"), grammar())] == ["gemma3-4b"]
        on_machine = leads(read(f"{question} on a 4090"), grammar())
        assert [lead.compute.slug for lead in on_machine] == QUESTIONS["families"][question].split()
        assert all("on=rtx-4090" in lead.address for lead in on_machine)


def test_sizes_of_other_names_are_no_family():
    """Mistral Small and Mistral Large are not sizes of one generation, nor is Qwen3-VL one of Qwen3."""
    assert read("layers of mistral").sizes == [] == read("layers of qwen3 8b").sizes
    assert not [one for one in read("layers of qwen3").sizes if "vl" in one.slug or "2507" in one.slug]


def test_a_name_without_a_generation_is_answered_with_a_word_about_it():
    """By the model that is taken; a reason opens none, and a family with sizes is one."""
    for question in ("how many layers does mistral have", "vocabulary size qwen", "deepseek parameters"):
        said = read(question)
        (lead,) = leads(said, grammar())
        ((typed, title),) = said.vague
        assert typed in question and lead.compute.title == title
        assert lead.note == f"{typed} names several models, and {title} is taken: add a generation."
    assert leads(read("why does deepseek use mla"), grammar()) == []
    assert read("layers of qwen3").vague == [] == read("qwen3 8b").vague
    assert [lead.compute.slug for lead in leads(read("vocabulary size t5"), grammar())][0] == "t5-small"
    assert read("two t4").models == []


def test_a_name_and_a_size_that_several_generations_have_are_answered_with_a_word_about_it():
    """Also where a training run opens; a name of one model alone has none."""
    for question, add in (
        ("llama 70b on 4 l40s", "a generation"),
        ("qwen 32b 24gb", "a generation"),
        ("full finetune mistral 7b", "a generation"),
        ("lora target modules llama", "a size"),
    ):
        ((typed, title),) = read(question).vague
        assert typed in question and leads(read(question), grammar())[0].note == (
            f"{typed} names several models, and {title} is taken: add {add}."
        )
    for question in ("llama 3.1 70b on 4 l40s", "qwen3 8b finetune", "gpt-oss-120b", "deepseek v3 0324 on h200"):
        assert read(question).vague == [], question


def test_why_opens_no_tool_for_a_format():
    assert leads(read("why does gpt-oss use mxfp4"), grammar()) == []


@pytest.mark.parametrize("question", QUESTIONS["unused"])
def test_what_is_not_used_is_named(question):
    said = read(question)
    assert leads(said, grammar())
    assert f"Not used: {QUESTIONS['unused'][question]}." in note_of(said)


@pytest.mark.parametrize("question", QUESTIONS["alike"])
def test_another_model_of_the_same_shapes_is_said_to_be_one(question):
    assert note_of(read(question)) == QUESTIONS["alike"][question]


@pytest.mark.parametrize("question", QUESTIONS["corrected"])
def test_a_misspelled_word_is_read_and_named(question):
    said = read(question)
    assert said.models[0].slug == QUESTIONS["corrected"][question] and said.corrected


@pytest.mark.parametrize("question", QUESTIONS["absent"]["names"])
def test_an_absent_model_is_said_to_be_absent(question):
    said = read(question)
    assert said.absent and not said.models
    first, *others = leads(said, grammar())
    assert first.kind == "absent" and "is not in the catalog" in first.title and first.address == "tools/config/"
    assert all(lead.title.startswith("Nearest in the catalog") and lead.compute is None for lead in others)
    assert not any("model=" in lead.address for lead in (first, *others))


def test_an_absent_size_of_a_known_generation_is_of_a_covered_type():
    covered, other = (leads(read(question), grammar())[0].said for question in ("gemma 4 99b", "qwen4 70b"))
    assert covered == "gemma 4 99b is not in the catalog. Its type is covered: fetch or paste its config."
    assert other == "qwen4 70b is not in the catalog. Any config takes its config.json."
    assert [one.slug for one in read("Qwen3-8B-abliterated").absent[0].nearest][:1] == ["qwen3-8b"]


def test_a_hubs_names_are_the_resolvers():
    """As the command line, tools and logs read them."""
    names = (ROOT / "tests/catalogue/names_of_models.tsv").read_text("utf-8").splitlines()
    for name in {line.partition("\t")[0] for line in fewer(names, 4) if "/" in line.partition("\t")[0]}:
        if " " in name or "://" in name:
            continue
        said, meant_by_all = read(name), presets.meant(name).slug
        assert [one.slug for one in said.models] == [meant_by_all] if meant_by_all else not said.models, name


def test_no_recipe_that_the_catalog_lacks_is_answered_by_another_model():
    for name in vllm_recipes().models:
        if not presets.meant(name).slug:
            said = read(f"{name.rpartition('/')[2]} on a 24 GB card")
            assert not [one for one in said.models if one.is_sure], name


def test_each_model_is_known_by_each_of_its_names():
    for slug in fewer(presets.readable(), 4, "names"):
        preset = presets.preset(slug)
        for name in (slug, preset.name, preset.hub, *preset.aliases):
            said = read(f"kv cache of {name}") if name else None
            assert not said or (not said.absent and said.models and said.models[0].is_sure), name
            assert not said or presets.meant(name).slug in ("", said.models[0].slug), (name, said.models[0].slug)


def test_a_model_has_the_shapes_of_another_only_by_a_word_of_an_alias():
    """Its slug, its title and its repository are its own names."""
    nobodys = {*grammar().names["noise"], *grammar().names["plain"], "meta"}
    for slug in fewer(presets.readable(), 4, "shapes"):
        preset = presets.preset(slug)
        own = [slug, preset.name, *([preset.hub.rpartition("/")[2]] if preset.hub else [])]
        known = nobodys | {token.text for name in own for token in tokens_of(name)}
        for name in (*own, *[alias.rpartition("/")[2] for alias in preset.aliases if ":" not in alias]):
            said = read(f"kv cache of {name}")
            others = [token.text for token in tokens_of(name) if token.text not in known and not is_size(token.text)]
            if len(said.models) == 1 and not presets.meant(name).format:
                assert bool(said.alike) == bool(others), (name, others, said.alike)


def test_other_words_name_no_model():
    for question in QUESTIONS["words"]["questions"]:
        said = read(question)
        assert not said.models and not said.absent and not said.corrected, question


@pytest.mark.parametrize("question", QUESTIONS["sized"])
def test_a_size_without_a_name_takes_a_model_of_that_size_and_says_so(question):
    said = read(question)
    assert [one.slug for one in said.models] == [QUESTIONS["sized"][question]]
    typed, title = said.of_size
    assert f"{typed} names no model: {title} is taken for its size." in note_of(said) and title == said.models[0].title
    counted = presets.model(said.models[0].slug).counts.total
    assert abs(counted / (float(typed[:-1]) * 10**9) - 1) < 0.15


def test_every_entry_has_its_reason_and_its_place():
    said = asked.asked()
    for kind in ("value", "engine", "machine", "uncounted"):
        assert all(entry["why"] for entry in said[kind]), kind
    assert all(entry["slug"] in grammar().machines for entry in said["machine"])


def test_numbers_are_read_as_they_are_grouped_in_other_languages():
    for typed, tokens in (
        ("32 000 tokens", "32000 tokens"),
        ("8 030 261 248", "8030261248"),
        ("1.000.000 tokens", "1000000 tokens"),
        ("1'000 users", "1000 users"),
        ("16,5 GB", "16.5 gb"),
        ("0,30 eur", "0.30 eur"),
        ("1,5k", "1.5k"),
        ("8,030,261,248", "8030261248"),
        ("4,8,16", "4 8 16"),
        ("gemma 3 128 tokens", "gemma 3 128 tokens"),
        ("qwen3 8b,14b", "qwen 3 8b 14b"),
    ):
        assert [token.text for token in tokens_of(typed)] == tokens.split(), typed
    assert read("32.768 tokens llama 3 8b").context == 32768
    assert (
        read("qwen3 14b 16,5 GB").on == "16.5GB" and read("electricity rtx 3090 0,30 eur per kwh").electricity == "0.30"
    )


def test_memory_that_a_named_machine_does_not_have_is_counted_alone_or_named():
    """A Mac's installed memory, a card with more or less of it, the host's own."""
    for question, on, note in (
        ("llama 3 8b on a mac m1 8gb", "8GB", "The listed M1, 16 GB has 16 GB"),
        ("llama 3 8b m3 max 64gb", "48GB", "Of 64 GB its GPU may use 48 GB."),
        ("qwen3 8b rtx 4080 12gb", "12GB", "The listed GeForce RTX 4080 has 16 GB"),
        ("qwen3 32b rtx 4090 24gb 64gb ram", "rtx-4090", "Not used: 64gb."),
        ("qwen3 32b 4x rtx 3090 96gb", "rtx-3090", ""),
        ("qwen3 8b raspberry pi 5 8gb", "8GB", "Of the raspberry pi 5 its memory alone is counted."),
        ("gemma 2 9b 8192 MB vram", "8.192GB", ""),
        ("gemma 2 9b 24576 MiB", "24GiB", ""),
    ):
        said = read(question)
        assert said.on == on and note in note_of(said), (question, said.on, note_of(said))
    assert read("qwen3 8b raspberry pi 5 8gb").devices is None and read("8-16gb vram").devices is None


def test_machines_against_each_other_and_denied_names():
    first, second = leads(read("llama 3.1 8b on a100 vs h100"), grammar())
    assert "on=a100-80gb" in first.address and "on=h100" in second.address
    (lead,) = leads(read("a100 vs h100 tflops"), grammar())
    assert lead.title == "A100 80GB SXM and H100 SXM: what their makers state"
    said = read("not llama 3 8b but qwen3 8b without q4_k_m on 24gb")
    assert [one.slug for one in said.models] == ["qwen3-8b"] and said.format is None
    assert said.unused == ["without q4_k_m", "not llama 3 8b"]
    assert [one.slug for one in read("qwen3 8b, 14b and 32b on 24gb").models] == ["qwen3-8b", "qwen3-14b", "qwen3-32b"]


@pytest.mark.parametrize(
    "question, given",
    [
        ("qwen 2.5 coder 32b q8 vs q4 vram", [("format", "Q8_0"), ("format", "Q4_K_M")]),
        ("qwen3 8b 4090 awq or gptq", [("format", "awq-4bit-g128"), ("format", "gptq-4bit-g128")]),
        ("kv cache of qwen3 8b fp8 vs bfloat16", [("cache", "fp8"), ("cache", "bfloat16")]),
    ],
)
def test_each_of_several_formats_is_answered(question, given):
    found = [one for one in leads(read(question), grammar()) if one.compute]
    assert [(name, getattr(one.compute, name)) for one, (name, _) in zip(found, given, strict=True)] == given
    assert "Not used" not in note_of(read(question))


def test_several_machines_have_their_own_memory_and_price():
    on = [one.compute.on for one in leads(read("m3 ultra 96gb vs m4 max 128gb for gpt-oss-120b"), grammar())]
    assert sorted(on) == ["72GB", "m4-max"]
    bills = [
        one.address
        for one in leads(read("A100 80GB $1.5/hr vs H100 $2.5/hr llama 3.1 8b cost per 1M tokens"), grammar())
    ]
    assert "on=a100-80gb&price_per_hour=1.5" in bills[0] and "on=h100&price_per_hour=2.5" in bills[1]
    assert "Not used: 3 per hour." in note_of(read("llama 3 8b h100 $2/hr $3/hr per million tokens"))
    fits = [one.address for one in leads(read("a 4060ti 16gb and a 3060 12gb together, what can I run"), grammar())]
    assert ["on=rtx-4060-ti" in fits[0], "on=rtx-3060&" in fits[1]] == [True, True]
    runs = [one.address for one in leads(read("2 x 4090 vs 1 x a100 for fine tuning llama 3 8b"), grammar())]
    assert "on=rtx-4090&devices=2" in runs[0] and "on=a100-80gb&devices=1" in runs[1]


def test_a_kind_of_a_format_and_an_engines_usual_one_are_said():
    assert "UD-Q2_K_XL is taken as Q2_K." in note_of(read("unsloth/DeepSeek-R1-0528-GGUF UD-Q2_K_XL size"))
    assert "Q6_K_L is taken as Q6_K." in note_of(read("llama 3.1 8b Q6_K_L 12gb"))
    assert "Ollama’s usual format, Q4_K_M, is taken." in note_of(read("ollama qwen3 8b on 8gb"))
    assert read("ollama gpt-oss 20b on 16gb").format is None  # whose files keep mxfp4


@pytest.mark.parametrize(
    "question",
    [
        "why 128256 vocab llama 3",
        "how come gemma has 256k vocab",
        "why does qwen3 235b need all experts in vram if only 22b active",
        "why does a 7b model need 28 gb in fp32",
        "why does DeepSeek's KV cache be so small compared to Llama",
        "ridge point h100 fp8",
        "does nvlink matter for inference 2x3090",
    ],
)
def test_a_reason_opens_no_tool(question):
    assert leads(read(question), grammar()) == []


def test_words_of_questions_are_no_models():
    for question in ("does it need all experts", "ring attention", "seamless m4 memory beam search", "what is AI"):
        assert [one.slug for one in read(question).models if one.slug.startswith(("all-", "ring", "beam"))] == [], (
            question
        )


def test_each_guide_page_has_a_name_for_the_command_line():
    """Which has no index of its own."""
    known = {page for page, _ in asked.all_pages()}
    folders = ("what-happens", "costs", "model-size")
    pages = [f"{folder}/{path.name}" for folder in folders for path in (ROOT / "docs" / folder).glob("*.md")]
    assert pages and known.issuperset(pages), sorted({*pages} - known)
    assert all((ROOT / "docs" / page["page"]).exists() for page in asked.asked()["page"])
