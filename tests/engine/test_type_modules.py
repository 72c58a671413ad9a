"""A type is one module: the registry lists what the modules register, and nothing else knows a type by its name."""

from __future__ import annotations

import ast
import csv
import json
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from copies import ROOT

from macros.engine import architectures, towers
from macros.engine.registry import MODULES, TOWER_MODULES

PACKAGE = ROOT / "macros"
ENGINE = PACKAGE / "engine"


# --- the registry -----------------------------------------------------------------------------------------------------


def registered_in(path: Path) -> Iterator[str]:
    """The types in a module's calls of `architecture`."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "architecture":
            yield from (one.value for one in node.args if isinstance(one, ast.Constant))


def test_the_registry_lists_what_the_modules_register():
    """Mend: correct macros/engine/registry.py, or the types in the @architecture above a forward pass."""
    paths = sorted((ENGINE / "architectures").glob("[a-z]*.py"))
    assert {name: path.stem for path in paths for name in registered_in(path)} == MODULES
    assert architectures.architectures().keys() == MODULES.keys()


def test_the_registry_lists_the_towers_that_the_modules_register():
    """Mend: correct TOWERS in macros/engine/registry.py, or the tables in the @tower above a forward pass."""
    names = {path.stem for path in (ENGINE / "towers").glob("[a-z]*.py") if "tower(" in path.read_text("utf-8")}
    assert names == towers.modules().keys()
    listed = {name: {f"{whole}.{part}" for whole, part in places} for name, places in towers.modules().items()}
    assert {name: set(towers.of_module(name).tables) for name in names} == listed
    several = {place for place, modules in TOWER_MODULES.items() if len(modules) > 1}
    assert several and all(towers.of_module(name).of_type for place in several for name in TOWER_MODULES[place])


@pytest.mark.parametrize("place, inner, name", [
    (("llava", "vision_config"), None, "clip"),
    (("llava", "vision_config"), "clip_vision_model", "clip"),
    (("llava", "vision_config"), "siglip_vision_model", None),
    (("vision-encoder-decoder", "encoder"), "deit", "deit"),
    (("vision-encoder-decoder", "encoder"), None, None),
    (("qwen2_vl", "vision_config"), "anything", "qwen2_vl"),
    (("fuyu", "audio_config"), None, None),
])  # fmt: skip
def test_a_tower_is_found_by_its_table_and_the_type_in_it(place, inner, name):
    whole, part = place
    found = towers.find({"model_type": whole, part: {} if inner is None else {"model_type": inner}}, part)
    assert (found and found.name) == name


@pytest.mark.parametrize("whole, table", [("fuyu", "vision_config"), ("seamless_m4t", "audio_config"), ("llava", None)])
def test_a_whole_says_whether_its_tower_has_a_table(whole, table):
    assert towers.without_table(whole) == table


@pytest.mark.parametrize("block", [3, 5])
def test_the_registry_is_in_order(block):
    lines = [line for line in (ENGINE / "registry.py").read_text("utf-8").split('"""')[block].splitlines() if line]
    modules = [line.partition(":")[0] for line in lines]
    assert len(modules) > 100 and modules == sorted(modules)


# --- who else names a type --------------------------------------------------------------------------------------------

# Strings like a type's name that mean something else, or have to name a type: in a module or a folder, and why.
EXCEPTIONS: tuple[tuple[str, str, str], ...] = (
    ("", "mamba mamba2", "kinds of layers, the modules' names in files, and roles of steps"),
    ("", "new git", "a word, and a program"),
    ("counting/", "eagle eagle3 medusa dflash", "methods of drafting, as engines' options have them"),
    ("counting/", "llama falcon gemma4", "llama.cpp's names of architectures, whose quantizer and server ask for them"),
    ("catalogue/", "qwen", "an organization, and a word of models’ names"),
    ("catalogue/gguf_tokenizer.py", "exaone exaone4 falcon glm4 hy_v4 mellum mpt", "llama.cpp's names of tokenizers"),
    ("catalogue/gguf_tokenizer.py", "dbrx gpt2 hunyuan lfm2 llama olmo qwen2", "the same"),
    ("engine/architectures/molmo2.py", "olmo qwen3", "values of one of its keys"),
    ("engine/architectures/llada.py", "llama", "a value of one of its keys"),
    (
        "engine/architectures/drafts.py",
        "eagle eagle3 medusa dflash domino dspark",
        "methods of drafting, which only a class says",
    ),
    ("engine/architectures/drafts.py", "gemma4_assistant gemma4_unified_assistant qwen3", "values of a head's keys"),
    ("engine/architectures/", "bert bert-generation roberta deberta", "beginnings of tensors' names, values of keys"),
    ("engine/architectures/encoder_decoder.py", "camembert xlm-roberta", "values of two of its keys"),
    (
        "engine/keys.py",
        "bert bert-generation camembert gpt2 mbart roberta trocr xlm-roberta",
        "values of a whole's key",
    ),
    (
        "engine/keys.py",
        "bert_decoder bert_generation_decoder gpt2_decoder mbart_decoder roberta_decoder",
        "their types",
    ),
    ("engine/keys.py", "bailing_hybrid gemma3_text", "two types in one, which the class tells apart"),
    ("engine/keys.py", "bailing_moe_v2_5 deepseek_v4 rnj1 step3p5", "the second of the two"),
    ("engine/keys.py", "blt idefics qwen3_vl_moe t5gemma2", "wholes, of which no module is loaded yet in a browser"),
    ("engine/variations.py", "llama mistral mixtral deepseek_v3", "changes that make another type's config"),
    ("views/guide/", "gpt2 llama", "the models that these pages are about"),
)
# Files that tests or programs of tests/reference record, and the models.
RECORDED = (
    "presets/",
    "catalogue/engine_buffers.json",
    "catalogue/gguf_compared.toml",
    "catalogue/independent.toml",
    "catalogue/reference_logits.toml",
    "catalogue/small_configs.json",
    "catalogue/transformers_types.json",
    "catalogue/unread_there.json",
    "catalogue/vllm_classes.json",
    "catalogue/references/",
    "engine/names_there.json",
    "capitals/",
)


def strings_in(path: Path) -> Iterator[str]:
    """The strings of a module or a data file, keys included."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        yield from of_code(ast.parse(text))
    elif path.suffix == ".csv":
        yield from (cell for row in csv.reader(text.splitlines()) for cell in row)
    else:
        yield from inner(json.loads(text) if path.suffix == ".json" else tomllib.loads(text))


def of_code(tree: ast.Module) -> Iterator[str]:
    """The strings of a module, the words of those that it splits; llama.cpp's names of architectures are others."""
    not_ours = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Gguf":
            not_ours.add(node.args[0])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
            if isinstance(node.func.value, ast.Constant) and isinstance(node.func.value.value, str):
                yield from node.func.value.value.split()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in not_ours:
            yield node.value


def inner(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from inner(one)
    elif isinstance(value, list):
        for one in value:
            yield from inner(one)


def is_own(path: Path, name: str) -> bool:
    """Whether a module registers this type."""
    if path.parent == ENGINE / "towers":
        return any(whole == name and path.stem in modules for (whole, _), modules in TOWER_MODULES.items())
    return path.parent == ENGINE / "architectures" and MODULES[name] == path.stem


@cache
def found(suffixes: tuple[str, ...]) -> Counter[tuple[str, str]]:
    """How often a file holds a registered type's name, outside of the module that registers it."""
    files = [path for path in PACKAGE.rglob("*") if path.suffix in suffixes and path != ENGINE / "registry.py"]
    named = Counter[tuple[str, str]]()
    for path in files:
        place = path.relative_to(PACKAGE).as_posix()
        if not place.startswith(RECORDED):
            named.update((place, s) for s in strings_in(path) if s in MODULES and not is_own(path, s))
    return named


def test_no_other_module_names_a_type():
    """Mend: say it beside the type's forward pass, as data that the module here reads from its architecture."""
    left = {
        (place, name): n
        for (place, name), n in found((".py",)).items()
        if not any(place.startswith(where) and name in names.split() for where, names, _ in EXCEPTIONS)
    }
    assert left == {}


def test_each_exception_is_needed():
    """Mend: delete the name, nothing there holds it any more."""
    assert len(EXCEPTIONS) <= 20
    named = [(where, name) for where, names, _ in EXCEPTIONS for name in names.split()]
    stale = [
        (where, name)
        for where, name in named
        if not any(place.startswith(where) and name == held for place, held in found((".py",)))
    ]
    assert stale == []


def test_no_data_file_names_a_type_but_what_tests_record():
    """Mend: say it beside the type's forward pass."""
    files = [
        "catalogue/asked.toml",  # questions
        "catalogue/second_sources.json",  # repositories of models
        "catalogue/served_runs.toml",  # models
        "catalogue/training_runs.toml",  # families of models
        "catalogue/vocabularies.toml",  # slugs of models
        "views/reference/claims.toml",  # slugs of models
        "views/reference/style.toml",  # words
        "views/words/kinds.toml",
        "views/words/steps.toml",
    ]
    assert sorted({place for place, _ in found((".toml", ".json", ".csv"))}) == files
