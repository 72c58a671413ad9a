"""Presets: published ones with hostile text in a string, another value, other bytes, another name or place of the file.

Each is refused in one line that names the file, or shown without any of its text becoming markup.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from macros.cache import memory
from macros.catalogue import presets
from macros.engine.errors import Problem
from macros.site import data_files, model_pages
from macros.views.models import fact_sheet, model_page
from macros.views.models.catalogue import catalogue

from . import Case, is_one_line, refused, within
from .calls import has_no_markup_of_ours
from .texts import text

FEW = 20
SECONDS = 5.0  # for all that a model's page shows

BASES = ("gpt2", "tinyllama-1.1b", "mamba-130m", "olmoe-1b-7b", "claude-3-opus", "falcon-7b")
VALUES = ("3", "-1", "true", "[]", "{}", "nan", "1e400", "2024-04-18", '""', "[[1]]", '{ a = "b" }', "0", "9" * 5000)
PLACES = (
    "x.toml",
    "x.TOML",
    "../x.toml",
    "other/x.toml",
    "llama/x.toml",
    "{}/index.toml",
    "{}/README.toml",
    "{}/.x.toml",
)


def draw(rng: random.Random) -> Case:
    slug = rng.choice(BASES)
    lines = presets.paths()[slug].read_text("utf-8").split("\n")
    changes = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        i = rng.randrange(len(lines))
        key = re.match(r"[\w-]+ = ", lines[i])
        kind = rng.random()
        if key and kind < 0.5:
            changes.append([i, key[0] + json.dumps(text(rng), ensure_ascii=rng.random() < 0.3)])
        elif key and kind < 0.7:
            changes.append([i, key[0] + rng.choice(VALUES)])
        elif kind < 0.8:
            changes.append([i, ""])
        elif kind < 0.9:
            changes.append([i, lines[i] + "\n" + rng.choice(lines)])
        else:
            at = rng.randrange(len(lines[i]) + 1)
            changes.append([i, lines[i][:at] + text(rng) + lines[i][at:]])
    place = None
    if rng.random() < 0.2:
        name = text(rng).replace("/", "").replace("\0", "")[:60] or "x"
        place = rng.choice((*PLACES, f"{{}}/{name}.toml", f"{name}/x.toml"))
    return {"slug": slug, "changes": changes, "place": place, "bytes": rng.random() < 0.03 and "ff00fe"}


def smaller(case: Case) -> Iterator[Case]:
    if case["place"]:
        yield case | {"place": None}
    for n, (i, line) in enumerate(case["changes"]):
        rest = case["changes"][:n] + case["changes"][n + 1 :]
        yield case | {"changes": rest}
        if len(line) > 12:
            yield case | {"changes": [*rest, [i, line[: len(line) // 2] + '"']]}


def trial(case: Case, folder: Path) -> None:
    original = presets.paths()[case["slug"]]
    lines = original.read_text("utf-8").split("\n")
    for i, line in case["changes"]:
        lines[i] = line
    family = original.parent.name
    file = folder / "macros/presets" / (case["place"] or f"{{}}/{original.name}").replace("{}", family)
    file.parent.mkdir(parents=True, exist_ok=True)
    written = "\n".join(lines).encode("utf-8", "surrogatepass") + bytes.fromhex(case["bytes"] or "")
    file.write_bytes(written)
    (folder / "macros/presets" / family).mkdir(exist_ok=True)
    everything = {("presets", None), *(("preset", slug) for slug in (*BASES, file.stem))}
    try:
        with mock.patch.object(presets, "FOLDER", folder / "macros/presets"):
            memory.invalidate(everything, compares=False)
            with within(SECONDS, memory=None):
                _shown()
    except Problem as problem:
        refused(problem)
    finally:
        memory.invalidate(everything, compares=False)  # with the presets in their own place again


def _shown() -> None:
    """All that the site says of the presets that are there."""
    for slug in presets.paths():
        if wrong := model_pages.problem(slug):
            refused(wrong)
            assert wrong.where, wrong
            continue
        preset = presets.preset(slug)
        page = model_pages.model_page(slug)
        metadata, _, rest = page.removeprefix("---\n").partition("\n---\n")
        assert all(line.startswith(("title: ", "description: ", "hide: ")) for line in metadata.split("\n")), metadata
        has_no_markup_of_ours(rest)
        shown = [
            model_page.model_intro(slug),
            model_page.model_sources(slug),
            catalogue(),
            model_page.model_cards([slug], lambda s: s),
        ]
        if preset.config is not None:
            shown += [model_page.model_checked(slug), fact_sheet.model_fact_sheet(slug, [])]
            described, rows = data_files.model_files(slug)
            json.loads(described)
            assert rows.count("\n") > 3
            for warning in presets.model(slug).warnings:
                is_one_line(warning)
        for piece in shown:
            has_no_markup_of_ours(str(piece))
