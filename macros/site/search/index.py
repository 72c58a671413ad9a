"""The index: the words of each record with their weights, split into files of similar size.

search/core.json       what is fetched first: the records' names, and with which word each piece of the index begins
search/words-3.json    a piece of the index: the words between two of those, each with its records
search/names.json      what a question may name besides words of a page, for the grammar of questions
search/others.json     words that mean the same, and other names of sections
search/tensors.json    the tensors' names and where their rows are
search/text-7.json     what some records say, of sections, sizes and terms: fetched for those that are shown
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

from ...cache.memory import go_on
from ...catalogue import asked
from . import records
from .records import Address, Page, Record, Tensor, Term
from .words import counted, words

PIECE = 24_000  # approximate number of characters of a piece of the index
TEXT = 16_000  # and of a piece of the texts
SYMBOLS = "reference/notation.md"

# Words common to questions about any model, which do not distinguish any.
OF_ANY_MODEL = (
    "model parameter size total big large number weight layer width head vocabulary context memory gb byte cache kv "
    "token release date licence license architecture attention embedding active dimension hidden config shape"
).split()


def index_files(
    pages: list[Page],
    glossary: Iterable[Term],
    address: Address,
    is_built: Callable[[str], bool],
    is_preview: bool = False,
) -> dict[str, str]:
    """The files of the search, by their paths in the site; `is_built` says whether a page exists, by its source.

    A preview's index is marked as such, which shows next to the results.
    """
    models = records.model_records(address)
    listed = [*models.values(), *records.family_records(address)]
    n = len(listed)
    listed += records.section_records(pages)
    ours = [(page.source, section.anchor) for page in pages for section in page.sections]
    topics = {n + i: names for i, place in enumerate(ours) if (names := asked.topics(*place))}
    listed += records.symbol_records(address(SYMBOLS))
    index = Index()
    for record in listed:
        index.add(record.fields)

    for term in records.glossary_records(glossary, address):
        listed.append(term)
        index.add(term.fields)
    tensors = records.tensors(models)
    for tensor in tensors:
        index.add([(records.NAME, tensor.name)])
    starts, pieces = index.pieces()
    sections = iter([section.text for page in pages for section in page.sections])
    texts = _texts([next(sections) if record.kind == "section" else record.said for record in listed])
    core = {
        "starts": starts,
        "ofAnyModel": sorted({form for word in OF_ANY_MODEL for form in words(word)}),
        "kinds": list(Counter(record.kind for record in listed).items()),  # in this order
        "records": [_of_record(record) for record in listed],
        "texts": [number for number, _ in texts],  # the first record of each piece
    }
    order = {slug: n for n, slug in enumerate(models)}
    contents = {f"search/words-{n}.json": piece for n, piece in enumerate(pieces)}
    contents["search/names.json"] = _json(asked.names(models, is_built, address))
    contents["search/others.json"] = _json({"same": asked.same(), "topics": topics})
    contents["search/tensors.json"] = _json([_of_tensor(tensor, order) for tensor in tensors])
    contents |= {f"search/text-{n}.json": _json(piece) for n, (_, piece) in enumerate(texts)}
    version = hashlib.blake2b("".join(contents.values()).encode(), digest_size=6).hexdigest()
    if is_preview:
        core["isPreview"] = True
    return {"search/core.json": _json({"version": version, **core}), **contents}


def _of_record(record: Record) -> list[str]:
    """What ranks a record; a section's with the name of its page. A piece of the texts has the rest."""
    return [record.address, record.title, *([record.said] if record.kind == "section" else [])]


def _texts(texts: list[str]) -> list[tuple[int, list[str]]]:
    """The texts of all records in pieces, each with the number of its first text."""
    pieces: list[tuple[int, list[str]]] = []
    length = TEXT
    for number, text in enumerate(texts):
        if length >= TEXT:
            pieces.append((number, []))
            length = 0
        pieces[-1][1].append(text)
        length += len(text)
    return pieces


def _of_tensor(tensor: Tensor, order: Mapping[str, int]) -> list:
    """[name, [model, ...], {model: the URL of its row, if that is not the first layer's}]."""
    first = tensor.name.replace("{i}", "0").replace("{e}", "0")
    others = {order[slug]: anchor for slug, anchor in tensor.rows if anchor != first}
    return [tensor.name, [order[slug] for slug, _ in tensor.rows], *([others] if others else [])]


class Index:
    """The words of each record, and their weights."""

    def __init__(self):
        self.n = 0
        self.records: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)

    def add(self, fields: Iterable[tuple[float, str]]) -> None:
        """The next record."""
        go_on()
        weights: dict[str, float] = {}
        for weight, text in fields:
            for word, times in counted(text).items():
                counts = weight if times == 1 else weight * (1 + math.log(times))
                weights[word] = weights[word] + counts if word in weights else counts
        for word, weight in weights.items():
            self.records[word].append((self.n, weight))
        self.n += 1

    def entries(self, word: str) -> list[int]:
        """The records of a word, each followed by the word's weight for it: a rare word counts more."""
        held = self.records[word]
        rarity = math.log(1 + self.n / len(held))
        return [part for record, weight in held for part in (record, round(4 * weight * rarity) or 1)]

    def pieces(self) -> tuple[list[str], list[str]]:
        """The first word of each piece, and the pieces."""
        starts, pieces, piece, length = [], [], {}, 0
        for word in sorted(self.records):
            entries = self.entries(word)
            if not piece:
                starts.append(word)
            piece[word] = entries
            length += len(word) + 8 * len(entries) // 2
            if length > PIECE:
                go_on()
                pieces.append(_json(piece))
                piece, length = {}, 0
        if piece:
            pieces.append(_json(piece))
        return starts, pieces


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
