"""Words for steps and weights: the field's name of an operation, its equation, and a plain explanation.

The words are data: `steps.toml` by a step's role, `weights.toml` by the last parts of a tensor's checkpoint name,
`calls.toml` for NumPy's calls and `kinds.toml` for kinds of layers. Each is read once, when it is first used. A family
with other names only adds tables there. A step or weight without words falls back to the step's docstring and its name;
a test lists those, so that no preset needs the fallback.

The engine gives the term of a step (`terms`); the term of a weight or a NumPy call is next to its plain words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from ...catalogue.toml_files import Text, checked, read_toml
from ...engine import terms
from ...engine.array import Node
from ...engine.errors import Problem, nearest
from ...engine.files import place
from ...engine.steps import Role
from ...engine.trace import Trace

FOLDER = Path(__file__).parent
STEPS, WEIGHTS = FOLDER / "steps.toml", FOLDER / "weights.toml"
CALLS, KINDS = FOLDER / "calls.toml", FOLDER / "kinds.toml"


class Words(NamedTuple):
    """The field's name (title), its equation as LaTeX, what it does and why, its result, and further terms."""

    title: str
    equation: str = ""
    why: str = ""
    gives: str = ""
    term: str = ""

    @property
    def terms(self) -> tuple[str, ...]:
        """The field's terms, except those in the title."""
        return _terms_beside(self.term, self.title)


@cache
def _terms_beside(said: str, title: str) -> tuple[str, ...]:
    terms = dict.fromkeys(term for term in said.split(", ") if term)
    return tuple(term for term in terms if not re.search(rf"(?<!\w){re.escape(term)}(?!\w)", title, re.I))


# The files


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The words of a table: those of a step inside another one are complete."""

    title: Text
    equation: Text = ""
    why: Text = ""

    @property
    def words(self) -> Words:
        return Words(self.title, self.equation, self.why)


class StepTable(Table, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of `steps.toml`: the field's term is the role's."""

    like: Text = ""
    in_a_sentence: Text = ""
    heading: Text = ""
    factors: tuple[Text, Text] | None = None
    product: Text = ""
    inside: dict[str, Any] = {}


class CallTable(Table, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of `calls.toml`, which has the field's term."""

    term: Text

    @property
    def words(self) -> Words:
        return super().words._replace(term=self.term)


class WeightTable(Table, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of `weights.toml`: for a norm, the field's term is that of its step."""

    names: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    gives: Text = ""
    term: Text = ""
    like: Text = ""
    step: Text = ""

    @property
    def words(self) -> Words:
        return super().words._replace(gives=self.gives, term=self.term)


Around = tuple[Role | None, Role | None]  # the role of the step around a step, and its own


@cache
def _step_tables() -> dict[Role | Around | None, StepTable]:
    """The tables of `steps.toml`. Raises `Problem`."""
    tables: dict[Role | Around | None, StepTable] = {}
    above: dict[str, Mapping[str, Any]] = {}
    for name, found in read_toml(STEPS).items():
        role = _role(name, STEPS)
        above[name] = _completed(found, name, above, STEPS)
        tables[role] = table = checked(above[name], StepTable, name, STEPS)
        if (table.factors is None) != (table.product == ""):
            raise Problem(f"{name}: factors without a product, or the reverse", "give both or none", place(STEPS))
        for around, inner in table.inside.items():
            key = f"{name}.inside.{around}"
            tables[_role(around, STEPS, key), role] = checked(inner, StepTable, key, STEPS)
    return tables


@cache
def steps() -> dict[Role | Around | None, Words]:
    """The words of steps, by their role or by the role of the step around them and their own. Raises `Problem`."""
    return {key: table.words for key, table in _step_tables().items()}


@cache
def weights() -> dict[str, Words]:
    """Descriptions of weights, keyed by the suffix of the tensor's name. Raises `Problem`."""
    words: dict[str, Words] = {}
    above: dict[str, Mapping[str, Any]] = {}
    for n, found in enumerate(_weight_tables(), 1):
        key = f"weight {n}"
        if isinstance(found, Mapping) and isinstance(names := found.get("names"), list) and names:
            key = f"weight {names[0]}"
        completed = _completed(found, key, above, WEIGHTS)
        table = checked(completed, WeightTable, key, WEIGHTS)
        said = table.words
        for name in table.names:
            if name in words:
                raise Problem(f"{key}.names: {name} has words already", "leave it in one table", place(WEIGHTS))
            words[name], above[name] = said, completed
    return words


def _weight_tables() -> list[Any]:
    found = read_toml(WEIGHTS)
    for name in found.keys() - {"weight"}:
        raise Problem(f"{name}: unknown table", "begin it with [[weight]]", place(WEIGHTS))
    return checked(found.get("weight", []), list, "weight", WEIGHTS)


def _completed(found: Any, key: str, above: Mapping[str, Mapping[str, Any]], path: Path) -> Any:
    """A table with its missing words filled in, if it names another one or a step that has them."""
    if not isinstance(found, Mapping):
        return found
    given: dict[str, Any] = {}
    if isinstance(like := found.get("like"), str):
        if like not in above:
            mend = nearest(like, above, "name one that stands further up")
            raise Problem(f"{key}.like = {like!r}: no table above has that name", mend, place(path))
        given = {name: value for name, value in above[like].items() if name not in ("names", "inside")}
    elif path == WEIGHTS and isinstance(step := found.get("step"), str):
        role = _role(step, path, f"{key}.step")
        if role not in steps():
            raise Problem(f"{key}.step = {step!r}: the step has no words", "write them here", place(path))
        said = steps()[role]
        given = {"title": said.title, "equation": said.equation, "why": said.why, "term": role.term}
    return {**{name: value for name, value in given.items() if value}, **found}


def _role(name: str, path: Path, key: str = "") -> Role:
    """The role whose name this is, in lower case."""
    roles = {role.name.lower(): role for role in Role}
    if name not in roles:
        raise Problem(
            f"{key or name}: no step has the role {name!r}",
            nearest(name, roles, "macros/engine/steps.py has the roles"),
            place(path),
        )
    return roles[name]


@cache
def calls() -> dict[str, Words]:
    """The words of NumPy's calls between the steps. Raises `Problem`."""
    return {name: checked(found, CallTable, name, CALLS).words for name, found in read_toml(CALLS).items()}


@cache
def kinds() -> dict[str, str]:
    """The words of kinds of layers, as the architectures name them. Raises `Problem`."""
    return {name: checked(found, str, name, KINDS) for name, found in read_toml(KINDS).items()}


# Lookups

# Generic steps, whose purpose is in their weight's name.
NAMED_BY_WEIGHT = frozenset(
    {Role.LINEAR, Role.CONV1D, Role.EXPERT_LINEAR, Role.LAYER_NORM, Role.RMS_NORM, Role.HEAD_NORMS, Role.GATED_RMS_NORM}
)


def lacking(trace: Trace) -> list[str]:
    """A line for each weight and step of a model without words, with the file and the entry to add."""
    weights = dict.fromkeys(w.name for w in trace.weights.values() if of_weight(w.name) is None)
    roles = {n.step.role for n in trace.root.walk() if n.step} - NAMED_BY_WEIGHT - {Role.INDEXER} - set(steps())
    return [
        *(
            f"{place(WEIGHTS)}: {name} has no words: add the end of its name to the `names` of a table"
            for name in weights
        ),
        *(f"{place(STEPS)}: {role.name.lower()} has no words: add a table" for role in sorted(roles)),
    ]


def of_kind(kind: object) -> str:
    """The kind of a layer in words: `sliding, moe` is sliding window, mixture of experts."""
    return _of_kind(str(kind))


@cache
def _of_kind(kind: str) -> str:
    name, _, number = kind.rpartition(" ")  # identical names get a number
    if not number.isdigit():
        name, number = kind, ""
    return ", ".join(kinds().get(part, part) for part in name.split(", ")) + (f" {number}" if number else "")


@cache
def of_weight(name: str) -> Words | None:
    """The words of a tensor, by the longest tail of its name that has some, ignoring its number if necessary."""
    known = weights()
    parts = [p for p in name.split(".") if not p.startswith("{")]
    whole = ".".join(parts)
    for suffix in (".weight", ".bias"):
        if whole.endswith(suffix) and whole not in known:
            parts = whole.removesuffix(suffix).split(".")
    parts = ["", *parts[parts[0].isdigit() :]]  # a whole name starts with a dot
    tails, counted = [parts], parts[-1].rstrip("0123456789")
    if counted != parts[-1]:
        tails.append([*parts[:-1], f"{counted}{{n}}"] if counted else parts[:-1])
    for tail in tails:
        for start in range(max(0, len(tail) - 5), len(tail)):
            words = known.get(".".join(tail[start:]))
            if words:
                return words
    return None


def of_step(node: Node) -> Words:
    """The words of a step: of its role inside that of the step around it, of its role, or otherwise its docstring's."""
    return _with_term(node.role, node.parent.role if node.parent else None, node.doc, terms.of(node))


@cache
def _with_term(role: Role | None, inside: Role | None, doc: str, term: str) -> Words:
    return of_call(role, inside, doc)._replace(term=term)


def of_call(role: Role | None, inside: Role | None, doc: str) -> Words:
    """The words of a call: by its role within that of the surrounding step, or from its docstring."""
    return steps().get((inside, role)) or steps().get(role) or of_docstring(doc)


def of_docstring(doc: str) -> Words:
    """Fallback words for a step: the first sentence of its docstring."""
    return Words(doc.partition(": [")[0].partition(": same shape")[0].rstrip("."))


def of_tensor(name: str) -> Words:
    """The words of a tensor, or its name if it has none."""
    return of_weight(name) or Words(name.removesuffix(".weight").rpartition(".")[2].replace("_", " ").capitalize())


def of_numpy(call: str) -> Words:
    """The words of a NumPy call between the steps. Raises `Problem`."""
    if call not in calls():
        raise Problem(f"[{call}] is missing", "add the table", place(CALLS))
    return calls()[call]


def group(node: Node) -> str:
    """The heading of a step that is a part."""
    table = _step_tables().get(node.role)
    return (table and table.heading) or of_step(node).title


def in_a_sentence(node: Node) -> str:
    """The name of a part within a sentence: `attention`, `the feed-forward network`."""
    table = _step_tables().get(node.role)
    return (table and table.in_a_sentence) or of_step(node).title.lower()


def factors(role: Role | None) -> tuple[str, str, str]:
    """The factors and the product of two arrays, neither of which is a weight, by the role of the step."""
    table = _step_tables().get(role)
    return (*table.factors, table.product) if table and table.factors else ("A", "B", "C")
