"""What others' lists say of context, release date and license: `python -m tests.reference.second_sources FOLDER`, from
the repository.

FOLDER holds the wheels of Xinference and GPUStack (`pip download --no-deps xinference gpustack`), and clones of
vllm-project/recipes, anomalyco/models.dev, mudler/LocalAI and eugeneyan/open-llms, each named by what follows the
slash. The program writes `macros/catalogue/second_sources.json`: for each repository of weights that a preset names,
the values of each list, as they stand there.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from macros.catalogue.presets import paths, preset
from macros.catalogue.second_sources import FILE, KEYS

ON_HUB = re.compile(r"https://huggingface\.co/([\w.-]+/[\w.-]+)")
SAYS_NOTHING = ("other", "Custom", "Custom ")  # of a license
Row = tuple[str, str, Any]  # a repository, one of KEYS, the value


def xinference(wheel: zipfile.ZipFile) -> Iterator[Row]:
    """The contexts of families; a family's file has each size's repository."""
    for name in wheel.namelist():
        if re.fullmatch(r"xinference/model/(llm|embedding|rerank)/models/.*\.json", name):
            families = json.loads(wheel.read(name))
            for family in families if isinstance(families, list) else [families]:
                for spec in family.get("model_specs", ()):
                    where = spec.get("model_src", {}).get("huggingface", {})
                    if spec.get("model_format") == "pytorch" and "model_id" in where:
                        yield where["model_id"], "context", family.get("context_length") or family.get("max_tokens")


def gpustack(wheel: zipfile.ZipFile) -> Iterator[Row]:
    for row in yaml.safe_load(wheel.read("gpustack/assets/model-catalog.yaml"))["model_sets"]:
        for where in {spec.get("huggingface_repo_id") for spec in row["specs"]} - {None}:
            yield where, "released", str(row.get("release_date") or "")
            for licence in row.get("licenses") or ():
                yield where, "licence", licence


def recipes(clone: Path) -> Iterator[Row]:
    for _, text in files(clone, "models", ".yaml"):
        model = yaml.safe_load(text)["model"]
        yield model["model_id"], "context", model.get("context_length")


def models_dev(clone: Path) -> Iterator[Row]:
    """Makers' models whose weights have an address, and those of the Hugging Face Hub's own providers."""
    for name, text in files(clone, "models providers/huggingface/models", ".toml"):
        model = tomllib.loads(text)
        where = [found[1] for link in model.get("weights", ()) if (found := ON_HUB.match(link["url"]))]
        for one in [name.partition("/models/")[2].removesuffix(".toml")] if name.startswith("providers") else where:
            yield one, "context", model.get("limit", {}).get("context")
            yield one, "released", str(model.get("release_date") or "")


def local_ai(clone: Path) -> Iterator[Row]:
    """Licenses of entries that name one repository of a preset."""
    known = repositories()
    for row in yaml.safe_load(git(clone, "show", "HEAD:gallery/index.yaml")):
        where = {found[1] for link in row.get("urls") or () if (found := ON_HUB.fullmatch(link)) and found[1] in known}
        if len(where) == 1:
            yield where.pop(), "licence", row.get("license") or ""


def open_llms(clone: Path) -> Iterator[Row]:
    """Months and licenses of the table, for the checkpoints that a row links."""
    for line in git(clone, "show", "HEAD:README.md").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        month = re.match(r"(\d{4})/(\d{2})", cells[2]) if len(cells) > 7 else None
        for where in ON_HUB.findall(cells[3]) if month else ():
            yield where, "released", f"{month[1]}-{month[2]}"
            yield where, "licence", re.sub(r"\[([^]]*)\]\([^)]*\)| Free with.*| Free if.*", r"\1", cells[7])


LISTS = {
    "Xinference": ("xinference", xinference),
    "GPUStack": ("gpustack", gpustack),
    "vLLM’s recipes": ("vllm-project/recipes", recipes),
    "models.dev": ("anomalyco/models.dev", models_dev),
    "LocalAI’s gallery": ("mudler/LocalAI", local_ai),
    "open-llms": ("eugeneyan/open-llms", open_llms),
}


def git(clone: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", clone, *words], capture_output=True, text=True, check=True).stdout


def files(clone: Path, folders: str, ending: str) -> Iterator[tuple[str, str]]:
    for name in git(clone, "ls-tree", "-r", "--name-only", "HEAD", *folders.split()).split("\n"):
        if name.endswith(ending):
            yield name, git(clone, "show", f"HEAD:{name}")


def repositories() -> set[str]:
    """The repositories of weights that presets name."""
    described = [preset(slug) for slug in paths()]
    return {name for one in described for name in (one.hub, *one.aliases) if name}


def opened(folder: Path, name: str) -> tuple[Any, dict[str, str]]:
    """A wheel or a clone, and where it is from."""
    if "/" in name:
        clone = folder / name.partition("/")[2]
        version, day = git(clone, "log", "-1", "--format=%h %cs").split()
        return clone, {"address": f"{name} on GitHub", "version": version, "day": day}
    [wheel] = folder.glob(f"{name}-*.whl")
    archive = zipfile.ZipFile(wheel)
    newest = max(one.date_time for one in archive.infolist())
    return archive, {"address": f"{name} (PyPI)", "version": wheel.name.split("-")[1], "day": str(date(*newest[:3]))}


def main(folder: str) -> None:
    known = {name.lower(): name for name in repositories()}
    said: dict[str, dict[str, dict[str, list[Any]]]] = {key: {} for key in KEYS}
    sources = {}
    for title, (name, rows) in LISTS.items():
        where, sources[title] = opened(Path(folder), name)
        for repository, key, value in rows(where):
            if value and value not in SAYS_NOTHING and (ours := known.get(repository.lower())):
                values = said[key].setdefault(ours, {}).setdefault(title, [])
                values += [value] if value not in values else []
    parts = {key: {name: rows[name] for name in sorted(rows, key=str.lower)} for key, rows in said.items()}
    lines = [f'"sources": {json.dumps(sources, ensure_ascii=False, indent=1)}']
    for key, rows in parts.items():
        inner = ",\n".join(f"{json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}" for name, row in rows.items())
        lines.append(f'"{key}": {{\n{inner}\n}}')
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    print({key: len(rows) for key, rows in parts.items()})


if __name__ == "__main__":
    main(sys.argv[1])
