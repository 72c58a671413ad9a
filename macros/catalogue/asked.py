"""The table of kinds and words that `question.py` parses questions with: models, machines, formats, sizes, figures,
engines and values, by all of their common names. The words are data, `asked.toml` with the reason for each."""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from ..counting.accelerators import Accelerator, accelerators
from ..counting.answering import KEPT, OF_FILES, USUAL_OF_FILES
from ..counting.formats import CACHE_BYTES, OTHER_WEIGHTS, PUBLISHED, WEIGHTS
from ..engine import bounds
from ..engine.architectures import architectures
from ..engine.architectures.config import fields_of
from . import presets
from .question_words import number_of
from .transformers_types import vllm_recipes

HERE = Path(__file__).parent
WHAT_IF, FITS, COMPARE, PLAN = "tools/what-if.md", "tools/fits.md", "tools/compare.md", "tools/plan.md"
TRAINING, CONFIG, MACHINES = "costs/training-memory.md", "tools/config.md", "costs/machines.md"
# Kinds of words that a question is asked for, as they stand in `asked.toml`.
FLAGS = tuple(
    (
        "terms full license targets rates drafting parts shares recomputing of_each which_machine of_machines billing "
        "offloading money unknown_machines denying"
    ).split()
)
TOOLS = {
    "whatIf": WHAT_IF,
    "fits": FITS,
    "compare": COMPARE,
    "plan": PLAN,
    "training": TRAINING,
    "config": CONFIG,
    "machines": MACHINES,
}
_OF_ANOTHER = frozenset("ti super xt xtx".split())  # at the end of a name: without it, another card is meant
_IN_BRACKETS = re.compile(r"\(.*?\)")
_WORD = re.compile(r"[a-z0-9.]+")


@cache
def asked() -> dict:
    """The contents of `asked.toml`."""
    return tomllib.loads((HERE / "asked.toml").read_text("utf-8"))


def topics(page: str, anchor: str) -> list[str]:
    """The other names of a section, by its page's source; most sections have none."""
    return all_topics().get((page, anchor), [])


@cache
def all_topics() -> dict[tuple[str, str], list[str]]:
    """The other names of pages and sections, by the page's source and the anchor."""
    found: dict[tuple[str, str], list[str]] = {}
    for t in asked()["topic"]:
        found.setdefault((t["page"], t.get("anchor", "")), []).extend(t["names"].split(", "))
    return found


def all_pages() -> dict[tuple[str, str], list[str]]:
    """The names of pages and sections, by which the command line finds them, since it has no search index."""
    found = {place: [*names] for place, names in all_topics().items()}
    for page in asked()["page"]:
        found.setdefault((page["page"], ""), []).extend(page["names"].split(", "))
    return found


def names(
    models: Iterable[str], is_built: Callable[[str], bool], address: Callable[[str], str], has_keys: bool = True
) -> dict:
    """All names with which `question.py` parses questions; `models` in the order of their records, `oldest_first`.

    Each model lists its names other than the title: the hub name, minus whatever repeats the title, then its aliases;
    its size as the maker rounds it; its longest context, or 0. `unlisted` are those that no tool can start from.
    Looking up the config.json keys of sizes, and contexts, takes a second; without them, every size maps to its own
    name.
    """
    said, models = asked(), list(models)
    keys, others = _keys() if has_keys else ({s["name"]: s["name"] for s in said["size"] if s["name"] != "context"}, {})
    lists = "plain", "noise", "qualifiers", "size_words", "makers", "ordinary", "training", "fitting", "against"
    return {
        "models": [
            [
                _other_names(slug),
                presets.preset(slug).headline or "",
                _longest_context(slug) if has_keys else 0,
                *_architecture(slug, others),
            ]
            for slug in models
        ],
        "of_files": dict.fromkeys(OF_FILES, USUAL_OF_FILES),
        "kept": [n for n, slug in enumerate(models) if _is_kept(slug)],
        "unlisted": [n for n, slug in enumerate(models) if not _is_listed(slug)],
        "lacking": lacking(),
        "keys": keys,
        "machines": machine_rows(accelerators()),
        "uncounted": [u["words"] for u in said["uncounted"]],
        "formats": format_names(),
        "caches": list(CACHE_BYTES),
        "figures": [[f["name"], f["words"], f["section"]] for f in said["figure"]],
        "sizes": [[s["name"], s["words"]] for s in said["size"]],
        "values": [[v["name"], v["words"]] for v in said["value"]],
        "engines": {e["name"]: e["words"] for e in said["engine"]},
        "engine_pages": {e["name"]: [e["name"], address(e["page"]) + f"#{e['anchor']}"] for e in said["engine"]},
        **{key: said[key].split() for key in lists},
        **{flag: said[flag] for flag in FLAGS},
        **{kind: {one["name"]: one["words"] for one in said[kind]} for kind in ("zero", "optimizer")},
        "ordinary": sorted({*said["ordinary"].split(), *_words_of_topics()}),
        "tools": {name: address(source) for name, source in TOOLS.items() if is_built(source)},
        "most": {"context": bounds.MOST_TOKENS, "batch": bounds.MOST_TEXTS, "devices": bounds.MOST_DEVICES},
    }


def same() -> list[list[str]]:
    """Words that find the same results as each other."""
    return [s["words"] for s in asked()["same"]]


def _words_of_topics() -> set[str]:
    """The words of the names of pages and sections: none of them counts as a misspelled model."""
    said = [t["names"] for t in asked()["topic"]] + [" ".join(s["words"]) for s in asked()["same"]]
    return {word for names in said for word in _WORD.findall(names.lower()) if word.isalpha() and len(word) > 2}


def lacking() -> list[str]:
    """The hub names of models that other lists have and the catalog lacks."""
    return [name for name in vllm_recipes().models if not presets.meant(name).slug]


def machine_rows(known: Mapping[str, Accelerator]) -> list[list]:
    """Each machine with its name, its gigabytes, its names without spaces and, if its GPU may use only part of the
    installed memory or if it is a CPU, that part."""
    forms: dict[str, list[str]] = {slug: [] for slug in known}
    for form, slug in machine_names(known).items():
        if form != _plain(slug):
            forms[slug].append(form)
    for m in asked()["machine"]:
        forms[m["slug"]] += m["words"]
    return [[slug, a.name, _gigabytes(a), forms[slug], *_part(a)] for slug, a in known.items()]


def _gigabytes(a: Accelerator) -> int:
    """The memory as people refer to it: the maker's GB, or GiB if that is the whole number."""
    size = a.installed_bytes or a.memory_bytes
    return size // 10**9 if size % 10**9 == 0 else round(size / 2**30)


def _part(a: Accelerator) -> list[str]:
    if a.kind == "CPU":
        return [""]
    return [f"{a.memory_bytes / 1e9:.4g}GB"] if a.installed_bytes else []


def _is_listed(slug: str) -> bool:
    """Whether a tool can start from a model."""
    return presets.preset(slug).config is not None


def oldest_first(models: Iterable[str]) -> list[str]:
    """Models by their dates and, within a day, by the makers' own sizes, smallest first."""
    return sorted(models, key=_newest_first)[::-1]


def _newest_first(slug: str) -> tuple[str, int]:
    """A sort key: newest first and, within a day, largest first by the maker's own size."""
    p = presets.preset(slug)
    day = p.released.isoformat() if isinstance(p.released, datetime.date) else str(p.released)
    number = number_of((p.headline or "").lower().partition("-")[0])
    size = number.times({"m": 10**6, "b": 10**9, "t": 10**12}.get(number.suffix, 1)) if number else 0
    return "".join(chr(0x10FFFF - ord(c)) for c in day.ljust(10, "0")), -size


def _other_names(slug: str) -> list[str]:
    """A model's names other than its title and slug: first its hub name (or an empty string), then its aliases."""
    p = presets.preset(slug)
    own = (_plain(p.name), _plain(slug))
    maker, slash, name = (p.hub or "").partition("/")
    hub = maker + slash + ("" if name == p.name.replace(" ", "-") else name)
    return [hub, *(name for name in dict.fromkeys(p.aliases) if "/" in name or _plain(name) not in own)]


def _plain(name: str) -> str:
    return "".join(_WORD.findall(name.lower()))


Keys = dict[str, str]  # a size's name -> its key in a config.json


def _keys() -> tuple[Keys, dict[str, Keys]]:
    """The key of each size that most architectures have; where keys differ, by the architectures' names."""
    sizes = [s["name"] for s in asked()["size"]]
    of_each = {
        name: {f.field: f.key for f in fields_of(a.config) if f.field in sizes and f.key}
        for name, a in architectures().items()
    }
    usual: Keys = {}
    for size in sizes:
        keys = [keys[size] for keys in of_each.values() if size in keys]
        if keys:
            usual[size] = max(sorted(set(keys)), key=keys.count)
    return usual, {
        name: {size: key for size, key in keys.items() if key != usual[size]} for name, keys in of_each.items()
    }


def _is_kept(slug: str) -> bool:
    """Whether an engine's files keep the published format."""
    quantization = (presets.preset(slug).config or {}).get("quantization_config") or {}
    return quantization.get("quant_method") in KEPT


def _longest_context(slug: str) -> int:
    return (presets.model(slug).longest_context[0] or 0) if _is_listed(slug) else 0


def _architecture(slug: str, others: Mapping[str, Keys]) -> list[Keys]:
    """The keys of a model's sizes that differ from the usual ones."""
    if not _is_listed(slug):
        return []
    keys = others.get(presets.model(slug).model_type, {})
    return [keys] if keys else []


def machine_names(known: Mapping[str, Accelerator]) -> dict[str, str]:
    """Accelerators by their names, without spaces: `rtx4090`, `4090`, `a100`; an ambiguous name means the accelerator
    whose name it shortens the least, then the most common one."""
    found: dict[str, tuple[int, bool, int, str]] = {}
    for place, (slug, a) in enumerate(known.items()):
        for name, left_out in _machine_names(a.name):
            this = (left_out, not a.is_common, place, slug)
            found[name] = min(found.get(name, this), this)
    slugs = {_plain(slug): slug for slug in known}  # its own slug is never ambiguous
    return {name: best[-1] for name, best in found.items()} | slugs


def _machine_names(name: str) -> Iterable[tuple[str, int]]:
    """The shorter forms of a name: words are dropped at either end as long as the rest identifies it; with the dropped
    words. The memory after a comma does not count as a word. `4060` is not a form of `RTX 4060 Ti`."""
    name, _, memory = _IN_BRACKETS.sub("", name).lower().partition(",")
    words, amount = _WORD.findall(name), "".join(_WORD.findall(memory))
    yield "".join(words), 0
    for start in range(len(words)):
        for end in range(len(words), start, -1):
            if end < len(words) and words[end] in _OF_ANOTHER:
                break
            part = "".join(words[start:end])
            if re.fullmatch(r"(?=.*[a-z])(?=.*\d)[a-z].*|\d{4,}[a-z]*", part):
                yield part, len(words) - (end - start)
                if amount and end == len(words):
                    yield part + amount, start


def format_names() -> dict[str, list[str]]:
    """The weight formats, each with its other names."""
    found: dict[str, list[str]] = {name: [] for name in WEIGHTS if name != PUBLISHED}
    for other, name in OTHER_WEIGHTS.items():
        found[name].append(other.lower())
    for entry in asked()["format"]:
        found[entry["name"]] += entry["words"]
    return found
