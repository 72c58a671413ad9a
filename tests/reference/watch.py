"""What the newest versions of other programs know and this one does not: `python -m tests.reference.watch`, from the
repository.

The wheels of transformers, vLLM, SGLang, mlx-lm, mlx-vlm, gguf and peft come from the registry by pip, without their
dependencies, and are read as archives: their Python is parsed and never run. The program compares model types, keys of
configs and their defaults, the names of layers and configs in JSON with what the engine and the catalog know, and with
an earlier version of the same package if one is named (`--since transformers==5.20.0`). It prints a report in Markdown
that an issue can hold (`--out FILE`), and `--record` writes `macros/catalogue/watch.json`, which the page on coverage
shows. Names of the hub are in `watched.txt`: `--hub` asks for each of them.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from macros.api.model import load
from macros.catalogue.transformers_types import covered_as, mappings, vllm_classes
from macros.catalogue.watch import FILE, watch_reasons
from macros.engine.architectures import architectures, find, is_known
from macros.engine.architectures.config import COMMON_IGNORED, MEDIA_TOKENS, keys_of
from macros.engine.class_names import class_names
from macros.engine.errors import Problem

PACKAGES = ("transformers", "vllm", "sglang", "mlx-lm", "mlx-vlm", "gguf", "peft")
PLATFORMS = ("manylinux_2_34_x86_64", "manylinux_2_31_x86_64", "manylinux_2_28_x86_64", "manylinux2014_x86_64", "any")
NAMES = Path(__file__).parent / "watched.txt"
LARGEST = 4_000_000  # bytes of a file that is read
# Parts of an archive that say nothing about models.
ELSEWHERE = ("/kernels/", "/fused_moe/configs/", "/quantization/utils/configs/")
CLASS = re.compile(r"[A-Z]\w+(?:ForCausalLM|Model|Generation)")
MAPPINGS = {f"MODEL_FOR_{task}_MAPPING_NAMES" for task in ("CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "MASKED_LM")}
REASONED = "With a reason in macros/catalogue/watch_reasons.toml"
REGISTRIES = ("model_executor/models/registry.py",)
# Where types are configs of parts and of models without text, as transformers has them.
OTHER_PARTS = ("_vision", "_audio", "_encoder", "_tokenizer", "_processor", "_qformer", "_model", "_backbone")


@dataclass
class Known:
    """What a wheel knows: types with the keys and defaults of their configs, names of layers by folder, names of
    classes, and its configs in JSON."""

    version: str = ""
    types: dict[str, dict[str, str]] = field(default_factory=dict)
    layers: dict[str, set[str]] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    configs: set[str] = field(default_factory=set)
    mapped: set[str] = field(default_factory=set)  # types of transformers' mappings of language models


# --- wheels -----------------------------------------------------------------------------------------------------------


def download(wanted: str, folder: Path) -> Path:
    """The wheel of a package, or of `package==version`, in the folder; downloaded unless it is there."""
    name, _, version = wanted.partition("==")
    beginning = name.replace("-", "_")
    if version and (there := sorted(folder.glob(f"{beginning}-{version}-*.whl"))):
        return there[0]
    before = set(folder.iterdir())
    options = [word for one in PLATFORMS for word in ("--platform", one)]
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", *options]
    subprocess.run([*command, "--python-version", "3.12", "-d", str(folder), wanted], check=True)
    new = [path for path in folder.iterdir() if path not in before] or sorted(folder.glob(f"{beginning}-*.whl"))
    return max(new, key=lambda path: path.stat().st_mtime)


def files(path: Path, endings: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The names and texts of a wheel's files with these endings."""
    with zipfile.ZipFile(path) as wheel:
        for info in wheel.infolist():
            if info.filename.endswith(endings) and info.file_size <= LARGEST:
                if not any(part in info.filename for part in ELSEWHERE):
                    yield info.filename, wheel.read(info).decode("utf-8", "replace")


def read(path: Path) -> Known:
    """What a wheel knows. A file that does not parse is left out."""
    known = Known(path.name.split("-")[1])
    for name, text in files(path, (".py", ".json")):
        if name.endswith(".json"):
            if re.search(r'"model_type"\s*:', text):
                known.configs.add(name)
            continue
        if not wanted_file(name):
            continue
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        of_file(PurePosixPath(name), tree, known)
    return known


def wanted_file(name: str) -> bool:
    """Whether a file is of a model, a registry of them or a table of names."""
    return bool(
        re.search(r"/models/|/configs/|configuration_|registry\.py$|gguf/constants\.py$|utils/constants\.py$", name)
    )


def of_file(name: PurePosixPath, tree: ast.Module, known: Known) -> None:
    """Add what a file knows."""
    text = str(name)
    if text.endswith(REGISTRIES):
        known.classes |= {word for word in registered(tree) if CLASS.fullmatch(word)}
    if name.name == "constants.py":
        known.classes |= tables_of_names(tree)
        return
    if name.name == "modeling_auto.py":
        known.mapped |= mapped_types(tree)
        return
    is_mlx = text.startswith(("mlx_lm/models/", "mlx_vlm/models/"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            of_class(node, name, is_mlx, known)
        elif isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "EntryClass" for t in node.targets
        ):
            known.classes |= {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}


def mapped_types(tree: ast.Module) -> set[str]:
    """The types of transformers' mappings of language models."""
    return {
        row.elts[0].value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in MAPPINGS
        for row in ast.walk(node.value)
        if isinstance(row, ast.Tuple) and row.elts and isinstance(row.elts[0], ast.Constant)
    }


def of_class(node: ast.ClassDef, name: PurePosixPath, is_mlx: bool, known: Known) -> None:
    """Add a class: a config with its type, keys and defaults, or a module with the names of its layers."""
    fields = dict(defaults(node))
    model_type = fields.pop("model_type", None)
    if is_mlx and node.name in ("ModelArgs", "ModelConfig", "TextConfig"):
        is_folder = name.parent.name != "models"
        model_type = model_type or repr(name.parent.name if is_folder else name.stem)
    if model_type and re.fullmatch(r"'[\w.-]+'", model_type) and ("Config" in node.name or is_mlx):
        known.types.setdefault(model_type.strip("'"), {}).update(fields)
    layers = known.layers.setdefault(str(name.parent if name.stem.startswith("model") else name.with_suffix("")), set())
    layers |= {
        target.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call)
        for target in one.targets
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    }


def defaults(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The keys of a config's class and their defaults, as text: of its fields, and of what makes an object."""
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            yield one.target.id, ast.unparse(one.value) if one.value else ""
        elif isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "model_type":
            yield "model_type", ast.unparse(one.value)
        elif isinstance(one, ast.FunctionDef) and one.name == "__init__":
            names = one.args.args[len(one.args.args) - len(one.args.defaults) :]
            yield from ((arg.arg, ast.unparse(value)) for arg, value in zip(names, one.args.defaults))


def registered(tree: ast.Module) -> Iterator[str]:
    """The keys of a registry's tables, without the table of what the package no longer has."""
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Dict) and "PREVIOUSLY" not in target.id:
            yield from (key.value for key in value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))


def strings(tree: ast.AST) -> Iterator[str]:
    return (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def tables_of_names(tree: ast.Module) -> set[str]:
    """gguf's names of architectures, and the types for which peft has targets."""
    found: set[str] = set()
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(node, "value", None)
        if not isinstance(target, ast.Name) or not isinstance(value, ast.Dict):
            continue
        if target.id == "MODEL_ARCH_NAMES":
            found |= set(strings(value))
        elif target.id == "TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING":
            found |= {key.value for key in value.keys if isinstance(key, ast.Constant)}
    return found


# --- compared ---------------------------------------------------------------------------------------------------------


def refused(known: Known, without: Iterable[str] = ()) -> list[str]:
    """The types of text models that the engine refuses, but for those with a reason on the page on coverage."""
    listed, removed = mappings().types, set(without)
    return sorted(
        name
        for name in (known.mapped or known.types)
        if (name in removed or not is_known(name))
        and not name.endswith(OTHER_PARTS)
        and (name in removed or name not in listed or (listed[name].reason is None and covered_as(name) is None))
    )


def unknown_classes(package: str, known: Known) -> list[str]:
    """The names that a package lists and nothing here has: classes, architectures of GGUF files, types of PEFT."""
    if package == "gguf":
        ours = {a.gguf.name for a in architectures().values() if not isinstance(a.gguf, str)}
        return sorted(known.classes - ours)
    if package == "peft":
        return sorted(name for name in known.classes if not is_known(name) and name not in mappings().types)
    ours = set(vllm_classes().classes) | {name for names in class_names().values() for name in names}
    return sorted(known.classes - ours) if package == "vllm" else []


def new_keys(known: Known, before: Known) -> list[str]:
    """The keys of covered types that are new since an earlier version, and that the engine does not read."""
    found: list[str] = []
    for name in sorted(known.types.keys() & before.types.keys()):
        if not is_known(name):
            continue
        ours = keys_of(find(name).config) | find(name).config.ignored | COMMON_IGNORED | MEDIA_TOKENS
        new = known.types[name].keys() - before.types[name].keys() - ours
        found += [f"{name}: {key} = {known.types[name][key]}" for key in sorted(new) if not key.startswith("_")]
    return found


def changed_defaults(known: Known, before: Known) -> list[str]:
    """The defaults of covered types that are others since an earlier version."""
    return [
        f"{name}: {key} = {value}, before {before.types[name][key]}"
        for name in sorted(known.types.keys() & before.types.keys())
        if is_known(name)
        for key, value in sorted(known.types[name].items())
        if before.types[name].get(key, value) != value
    ]


def renamed_layers(known: Known, before: Known) -> list[str]:
    """The folders of models whose layers have lost names and got others since an earlier version."""
    found: list[str] = []
    for folder in sorted(known.layers.keys() & before.layers.keys()):
        lost, got = before.layers[folder] - known.layers[folder], known.layers[folder] - before.layers[folder]
        if lost and got:
            found.append(f"{folder}: {', '.join(sorted(lost)[:8])} → {', '.join(sorted(got)[:8])}")
    return found


def report(package: str, known: Known, before: Known | None, without: Iterable[str] = ()) -> dict[str, list[str]]:
    """What a package has that should be looked at, by headings."""
    reasons = watch_reasons().by_name
    types, names = refused(known, without), unknown_classes(package, known)
    found = {
        "Types that are refused here, without a reason": [name for name in types if name not in reasons],
        "Names without a counterpart here": [name for name in names if name not in reasons],
        REASONED: [f"{name}: {reasons[name].why}, {reasons[name].day}" for name in (*types, *names) if name in reasons],
    }
    if before is not None:
        found |= {
            f"New types since {before.version}": sorted(
                (known.mapped or known.types.keys()) - (before.mapped or before.types.keys())
            ),
            f"New keys of covered types since {before.version}": new_keys(known, before),
            f"Other defaults of covered types since {before.version}": changed_defaults(known, before),
            f"Other names of layers since {before.version}": renamed_layers(known, before),
            f"New configs since {before.version}": sorted(known.configs - before.configs),
        }
    return found


def hub_answers(names: Iterable[str]) -> dict[str, str]:
    """What the engine says of models on the hub: the total, or why not."""
    found: dict[str, str] = {}
    for name in names:
        try:
            found[name] = f"{load(name).parameters.total:,} parameters"
        except Problem as problem:
            found[name] = str(problem)
        except Exception as error:  # of the network
            found[name] = f"not reached: {type(error).__name__}"
    return found


def markdown(day: datetime.date, packages: dict[str, tuple[str, dict[str, list[str]]]], hub: dict[str, str]) -> str:
    lines = [f"# What other programs know, looked at on {day:%B} {day.day}, {day.year}", ""]
    for package, (version, found) in packages.items():
        lines += [f"## {package} {version}", ""]
        for heading, rows in found.items():
            lines += [f"{heading}: {len(rows) or 'none'}", "", *(f"- `{row}`" for row in rows[:100])]
            lines += [f"- and {len(rows) - 100} more"] if len(rows) > 100 else []
            lines += [""] if rows else []
    lines += ["## Models on the hub", "", *(f"- `{name}`: {said}" for name, said in hub.items()), ""] if hub else []
    return "\n".join(lines)


def record(day: datetime.date, packages: dict[str, tuple[str, dict[str, list[str]]]]) -> None:
    versions = {package: version for package, (version, _) in packages.items()}
    rows = {package: sum(map(len, list(found.values())[:2])) for package, (_, found) in packages.items()}
    reasoned = {package: len(found[REASONED]) for package, (_, found) in packages.items()}
    look = {"date": f"{day}", "versions": versions, "found": rows, "reasoned": reasoned}
    FILE.write_text(json.dumps(look, indent=1) + "\n", "utf-8")


def arguments(words: list[str] | None) -> Any:
    parser = argparse.ArgumentParser(prog="python -m tests.reference.watch")
    parser.add_argument("packages", nargs="*", default=list(PACKAGES), help="package, or package==version")
    parser.add_argument("--since", nargs="*", default=[], help="earlier versions to compare with")
    parser.add_argument("--without", nargs="*", default=[], help="types to take for unknown: what would be found")
    parser.add_argument("--wheels", type=Path, help="a folder for the wheels, which stay in it")
    parser.add_argument("--hub", action="store_true", help="ask for the models of watched.txt")
    parser.add_argument("--out", type=Path, help="write the report there")
    parser.add_argument("--record", action="store_true", help="write the day and the versions for the page on coverage")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> None:
    asked, day = arguments(words), datetime.datetime.now(datetime.UTC).date()
    earlier = {one.partition("==")[0]: one for one in asked.since}
    found: dict[str, tuple[str, dict[str, list[str]]]] = {}
    with TemporaryDirectory() as temporary:
        folder = asked.wheels or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for wanted in asked.packages:
            package = wanted.partition("==")[0]
            known = read(download(wanted, folder))
            before = read(download(earlier[package], folder)) if package in earlier else None
            found[package] = known.version, report(package, known, before, asked.without)
    if set(asked.packages) == {*PACKAGES}:
        named = {row.partition(": ")[0] for _, rows in found.values() for row in rows[REASONED]}
        found["reasons"] = "that nothing needs", {"Names": sorted(watch_reasons().by_name.keys() - named)}
    hub = hub_answers(NAMES.read_text("utf-8").split()) if asked.hub else {}
    text = markdown(day, found, hub)
    found.pop("reasons", None)
    if asked.out:
        asked.out.write_text(text, "utf-8")
    else:
        print(text)
    if asked.record:
        record(day, found)


if __name__ == "__main__":
    main()
