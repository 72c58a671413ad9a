"""`diff`: the figures that change between two states of the data: revisions, folders, the current code."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..catalogue import presets
from ..catalogue.model_files import GgufFiles
from ..counting.formats import PUBLISHED
from ..data.costs import Asked
from ..data.differences import Differences, Moved, Number, Objects, differences
from ..data.model import as_json
from ..engine.errors import Problem, shorten
from ..engine.files import PACKAGE, read_json
from .printing import EXACT, WORDS, Block, Grid, Title, exact

ROOT = PACKAGE.parent
MOST_ROWS = 4000  # rows of a Markdown table: a pull request holds a megabyte
HERE = "the code as it is"


def compared(before: str, after: str | None) -> Differences:
    """The differences between two states, each a revision or a folder of data, or between two models; without `after`,
    the current code."""
    if _is_model(before) and after and _is_model(after):
        name = os.path.basename(os.path.abspath(after)) if os.path.exists(after) else after
        return differences({name: of_model(before)}, {name: of_model(after)})
    return differences(state(before), state(after) if after else here())


def state(name: str) -> Objects:
    """The models' objects from a folder such as `site/data/v1`, or from a revision. Raises `Problem` for anything
    else."""
    return of_folder(Path(name)) if os.path.isdir(name) else of_revision(name)


def _is_model(name: str) -> bool:
    """Whether a name refers to a model, its file or its folder."""
    if os.path.exists(name):
        return os.path.isfile(name) or os.path.exists(os.path.join(name, "config.json"))
    return presets.meant(name).slug != ""


def of_model(name: str) -> Mapping[str, Any]:
    """The object of a model, with a GGUF file's own bytes and in the format that a name states. Raises `Problem`."""
    model = presets.load(name)
    stated = "" if os.path.exists(name) else presets.meant(name).format
    weights = stated or (PUBLISHED if isinstance(model.files, GgufFiles) else Asked().weights)
    return json.loads(as_json(model, True, Asked(weights=weights)))


def here() -> Objects:
    """The objects as the current code computes them."""
    slugs = [slug for slug in presets.paths() if presets.preset(slug).config is not None]
    return {slug: json.loads(as_json(presets.model(slug), True)) for slug in slugs}


def of_folder(folder: Path) -> Objects:
    """The objects of a folder of data, by slug."""
    objects: dict[str, Mapping[str, Any]] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            content = read_json(path)
        except Problem as problem:
            raise problem.at(str(path)) from None
        if isinstance(slug := content.get("model"), str):
            objects[slug] = content
    if not objects:
        raise Problem("no models' data in it", "name the folder data/v1 of a built site, or a revision", str(folder))
    return objects


def of_revision(revision: str) -> Objects:
    """The objects as the code of a revision computes them, with the currently installed libraries."""
    if revision.startswith("-"):
        raise Problem(
            f"{shorten(revision)} is not a revision", "name a folder of data, or a revision of this repository"
        )
    packed = _run(["git", "-C", str(ROOT), "archive", "--format=tar", f"{revision}^{{tree}}", PACKAGE.name], revision)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        slugs = sorted(path.stem for path in Path(folder).glob(f"{PACKAGE.name}/presets/*/*.toml"))
        command = [sys.executable, "-m", PACKAGE.name, "describe", "--format", "json", "--collapse", *slugs]
        variables = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=folder, env=variables, capture_output=True)
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    if done.returncode not in (0, 2) or not lines:  # 2: a model whose maker has not disclosed its sizes
        last = (done.stderr.decode("utf-8", "replace").splitlines() or ["no output"])[-1]
        raise Problem(f"{shorten(revision)}: its code describes no model: {last[:200]}", "name a later revision")
    return {one["model"]: one for one in map(json.loads, lines)}


def _run(command: list[str], revision: str) -> bytes:
    try:
        done = subprocess.run(command, capture_output=True)
    except OSError as error:
        raise Problem(f"git cannot be run: {error.strerror}", "install git, or name two folders of data") from None
    if done.returncode:
        said = (done.stderr.decode("utf-8", "replace").splitlines() or [""])[0].removeprefix("fatal: ")
        raise Problem(
            f"{shorten(revision)} is neither a folder nor a revision here: {said[:200]}",
            "name a folder of data (data/v1 of a built site), a revision of this repository, or two models",
        )
    return done.stdout


def summary(found: Differences) -> str:
    """The answer as a sentence."""
    if not found:
        return "No figure differs."
    models = {one.model for one in found.moved}
    moved = f"{_count(len(found.moved), 'figure')} of {_count(len(models), 'model')} moved" if models else ""
    added = f"{_count(len(found.added), 'model')} added" if found.added else ""
    removed = f"{_count(len(found.removed), 'model')} removed" if found.removed else ""
    keys = f"{_count(len(found.new_keys), 'new key')}" if found.new_keys else ""
    lost = f"{_count(len(found.lost_keys), 'key')} gone" if found.lost_keys else ""
    return ", ".join(filter(None, (moved, added, removed, keys, lost))) + "."


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _lists(found: Differences) -> Iterable[tuple[str, tuple[str, ...]]]:
    named = ("Added", found.added), ("Removed", found.removed), ("New", found.new_keys), ("Gone", found.lost_keys)
    return [(title, names) for title, names in named if names]


def _number(value: Number | None, sign: bool = False) -> str:
    if value is None:
        return "–"
    plus = "+" if sign and value > 0 else ""
    return plus + (exact(value) if isinstance(value, int) else f"{value:,.6g}")


def _row(one: Moved) -> list[str]:
    return [one.model, one.figure, _number(one.before), _number(one.after), _number(one.difference, sign=True)]


HEADINGS = "model", "figure", "before", "after", "difference"


def blocks(found: Differences) -> list[Block]:
    """The answer for readers."""
    printed: list[Block] = [summary(found)]
    for title, names in _lists(found):
        printed += [Title(title), ", ".join(names)]
    if found.moved:
        columns = [WORDS._replace(heading=name) for name in HEADINGS[:2]]
        columns += [EXACT._replace(heading=name, may_go=False) for name in HEADINGS[2:]]
        printed.append(Grid(columns, [_row(one) for one in found.moved]))
    return printed


def as_markdown(found: Differences) -> str:
    """The answer for a pull request: the main figures and how many models they moved for, then every figure,
    collapsed."""
    lines = ["## Figures that this change moves", "", summary(found), ""]
    for title, names in _lists(found):
        lines += [f"{title}: {', '.join(map(_plain, names))}", ""]
    if found.moved:
        models = Counter(one.figure for one in found.moved if not one.figure.startswith("costs."))
        lines += _table(("figure", "models"), [[name, f"{n:,}"] for name, n in models.most_common()])
        shown = found.moved[:MOST_ROWS]
        lines += ["", "<details><summary>Every figure, by model</summary>", ""]
        lines += _table(HEADINGS, map(_row, shown))
        if len(shown) < len(found.moved):
            lines += ["", f"The first {len(shown):,} of {len(found.moved):,}; the command prints all."]
        lines += ["", "</details>"]
    return "\n".join(lines).rstrip() + "\n"


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    headings = tuple(headings)
    rule = ["---" if name in ("model", "figure") else "---:" for name in headings]
    return [f"| {' | '.join(row)} |" for row in (headings, rule, *(map(_plain, row) for row in rows))]


def _plain(text: str) -> str:
    """Text with Markdown's characters escaped."""
    return re.sub(r"[\\`*<>\[\]|&]", lambda mark: f"&#{ord(mark[0])};", text)


def as_data(found: Differences) -> dict[str, object]:
    """The answer for JSON."""
    return {
        "added": list(found.added),
        "removed": list(found.removed),
        "new_keys": list(found.new_keys),
        "lost_keys": list(found.lost_keys),
        "moved": [one._asdict() | {"difference": one.difference} for one in found.moved],
    }
