"""A model in a program's hands: its parameters, its formula, its costs, what follows from other sizes, its drawings."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from ..catalogue import presets
from ..counting.asked import one_of, whole
from ..counting.conditions import Conditions
from ..counting.costs import Costs
from ..counting.costs import of as costs_of
from ..counting.figures import FIGURES, PARAMETERS
from ..counting.figures import figure as figure_of
from ..counting.formats import CACHE_BYTES, cache_meant
from ..data.costs import Asked, plain_number
from ..data.model import as_json, check_number
from ..engine.bounds import MOST_TOKENS
from ..engine.errors import Problem, nearest, shorten
from ..engine.files import parse_json
from .conditions import accelerator, check_split, conditions, warn, warn_beyond
from .tables import Quantity, Row, Table, Tabular, Value

if TYPE_CHECKING:
    from .pictures import Picture


def load(model: str | os.PathLike[str] | Mapping[str, Any]) -> Model:
    """A preset's slug, the path of a `config.json` or of a folder that holds one, or the keys of one as a dict.

    A path may be text too, where no preset has that slug. Warns (`UserWarning`) of what the costs leave out of account
    and of keys of a foreign config that are not known. Raises `Problem` for what cannot be read or counted.
    """
    made = read(model)
    warn(made.warnings)
    return Model(made)


def read(model: str | os.PathLike[str] | Mapping[str, Any] | Model) -> presets.Model:
    """The model of the catalog, or of a config."""
    if isinstance(model, Model):
        return model.inner
    if isinstance(model, Mapping):
        return _of_keys(model)
    if isinstance(model, str):
        return presets.load(model)
    path = os.fspath(model) if isinstance(model, os.PathLike) else None
    if not isinstance(path, str):
        raise Problem(f"{shorten(model)} is not a model", "give a preset's slug, a path, or the keys of a config.json")
    return presets.load(path if os.path.isabs(path) else os.path.join(os.curdir, path))  # so that it is not a slug


def _of_keys(keys: Mapping[str, Any]) -> presets.Model:
    try:
        return presets.make("config", parse_json(json.dumps(dict(keys))))
    except Problem as problem:
        raise problem.at("config") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise Problem(str(error), "give keys and values as in a config.json", "config") from None


class Model(Tabular):
    """A model with everything that its forward pass, run on shapes, says of it. Made by `load` and `what_if`."""

    def __init__(self, inner: presets.Model):
        self.inner = inner

    @property
    def name(self) -> str:
        """As its maker writes it; of a foreign config the path."""
        return self.inner.name

    @property
    def slug(self) -> str:
        """A preset's slug, or what was asked for."""
        return self.inner.slug

    @property
    def architecture(self) -> str:
        """The forward pass that the model has, by the name of its module."""
        return self.inner.architecture.name

    @property
    def warnings(self) -> tuple[str, ...]:
        """What `load` warned of."""
        return self.inner.warnings

    @cached_property
    def config(self) -> dict[str, bool | int | float | str]:
        """The hyperparameters that are one value each, in forward order, by the names that `what_if` takes."""
        from .changes import hyperparameters

        return hyperparameters(self.inner)

    @cached_property
    def parameters(self) -> Parameters:
        """How many parameters the model has, by every convention, and in which tensors."""
        return Parameters(self.inner)

    @property
    def tensors(self) -> Table:
        """Every trained tensor: `parameters.tensors`."""
        return self.parameters.tensors

    @cached_property
    def formula(self) -> Formula:
        """The number of parameters as a formula of the model's sizes."""
        return Formula(self.inner)

    @property
    def table(self) -> Table:
        return self.parameters.table

    def __repr__(self) -> str:
        return f"<Model {self.slug}: {self.architecture}, {self.inner.counts.total:,} parameters>"

    def kv_cache(self, context: int = 4096, batch: int = 1, dtype: str = "bfloat16") -> Quantity:
        """Bytes of the KV cache of `batch` sequences of `context` tokens, with the share of each kind of layer.

        Includes an indexer's keys, and fixed states at their own size. A window keeps min(context, window) rows. Warns
        of a context beyond the model's. Raises `Problem` for an impossible condition.
        """
        given = conditions(context, batch, cache=one_of("dtype", cache_meant(dtype), CACHE_BYTES))
        warn_beyond(self.inner, given.tokens)
        rows: list[Row] = [
            {
                "holds": str(entry.holds),
                "layers": len(entry.layers),
                "reach": str(entry.mask) if entry.mask else None,
                "elements": str(entry.elements),
                "bytes": size * given.batch,
            }
            for entry, size in self._costs.cache_by_entry(given.tokens, given.item_bytes)
        ]
        return self._quantity("cache_bytes", given, ("holds", "layers", "reach", "elements", "bytes"), rows)

    def flops(self, context: int = 4096, new_tokens: int = 1) -> Quantity:
        """FLOPs of a step of `new_tokens` tokens, the last of which sees `context` tokens, itself included; by part.

        The default is a step of decoding; `new_tokens=context` is the prefill of a whole text. A multiply-add is 2
        FLOPs, scores are counted in full (`causal` in the rows: only those that the mask lets through), the logits are
        those of the last token. Raises `Problem` where there are more new tokens than context.
        """
        given = conditions(context)
        new = whole("new_tokens", new_tokens, MOST_TOKENS)
        if new > given.tokens:
            raise Problem(f"new_tokens = {new:,}: more than the context of {given.tokens:,}", "give a longer context")
        warn_beyond(self.inner, given.tokens)
        rows: list[Row] = [
            {
                "part": part.name,
                "kind": str(part.kind) if part.layers else None,
                "layers": part.layers,
                "flops": part.total,
                "causal": part.causal,
            }
            for part in self._costs.flops_by_part(new, given.tokens)
        ]
        convention = "2 per multiply-add; scores in full; logits of the last token only"
        table = Table(("part", "kind", "layers", "flops", "causal"), rows)
        return Quantity(self.inner.counts.flops_at(new, given.tokens), "FLOPs", convention, table)

    def memory(
        self, context: int = 4096, batch: int = 1, weights: str = "published", cache: str = "bfloat16", devices: int = 1
    ) -> Quantity:
        """Bytes on the fullest device during decode of `batch` sequences of `context` tokens: weights, cache, and the
        largest operation, which each device holds whole. `fits` compares them with a machine's memory.
        """
        given = conditions(context, batch, weights, cache, devices)
        check_split(self.inner, given)
        warn_beyond(self.inner, given.tokens)
        terms = self._costs.device_bytes(given) or {}
        return self._quantity(
            "device_bytes", given, ("term", "bytes"), [{"term": name, "bytes": n} for name, n in terms.items()]
        )

    def figure(
        self,
        name: str,
        context: int = 4096,
        batch: int = 1,
        weights: str = "published",
        cache: str = "bfloat16",
        devices: int = 1,
        on: str | None = None,
    ) -> int | float | None:
        """Any figure of the one list that pages and command read, by its name: `tokens_per_second`, `training_bytes`.

        Whole numbers are exact, others floats; None for what is never reached. A figure of time needs `on`, an
        accelerator's slug. Raises `Problem` for a name that is not on the list.
        """
        known = figure_of(name)
        if known is None:
            raise Problem(f"no figure {shorten(name)}", nearest(name, FIGURES, f"known ones: {', '.join(FIGURES)}"))
        given = conditions(context, batch, weights, cache, devices)
        if "devices" in known.needs:
            check_split(self.inner, given)
        if "accelerator" in known.needs:
            if on is None:
                raise Problem(f"{name} is a figure of an accelerator", 'say which one, such as on="h100"')
            given = replace(given, accelerator=accelerator(on))
        if "context" in known.needs:
            warn_beyond(self.inner, given.tokens)
        return plain_number(known.compute(self._costs, given))

    def what_if(self, **hyperparameters: Any) -> Model:
        """The model with these hyperparameters, all others as they are: `m.what_if(n_layers=64)`.

        A name is the site's, its letter (`L`) or the key of config.json. Raises `Problem` for one that the architecture
        does not have, for sizes that do not fit together, and for one that follows from others.
        """
        from .changes import changed

        if not hyperparameters:
            raise Problem("what_if without a hyperparameter", "give one, such as n_layers=64")
        try:
            settings = parse_json(json.dumps(hyperparameters, default=_plain))
        except (TypeError, ValueError) as error:
            raise Problem(str(error), "give values as in a config.json", self.slug) from None
        return Model(changed(self.inner, settings))

    @property
    def diagram(self) -> Picture:
        """The data flow from token ids to next-token scores, each kind of layer once: an SVG."""
        from .pictures import diagram

        return diagram(self.inner)

    @property
    def map(self) -> Picture:
        """The parameters to scale, a field for each part: an SVG."""
        from .pictures import parameter_map

        return parameter_map(self.inner)

    def to_dict(
        self,
        collapse: bool = False,
        context: int | Iterable[int] = Asked().contexts,
        weights: str = "bfloat16",
        cache: str = "bfloat16",
    ) -> dict[str, Any]:
        """The object of `every-parameter describe --format json`, and of the site's `data/v1`.

        Every tensor is written out, or with `collapse` every name pattern. Raises `Problem` for more tensors than are
        written out.
        """
        given: object = context
        asked = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else (given,)
        if not asked:
            raise Problem(
                f"context = {shorten(context)}: expected a number of tokens", "give one or several, such as 4096"
            )
        contexts = tuple(
            dict.fromkeys(conditions(n, weights=weights, cache=cache).tokens for n in cast(Iterable[int], asked))
        )
        return json.loads(as_json(self.inner, collapse, Asked(contexts, cache, weights)))

    @property
    def _costs(self) -> Costs:
        return costs_of(self.inner.counts)

    def _quantity(self, name: str, given: Conditions, columns: tuple[str, ...], rows: list[Row]) -> Quantity:
        """A figure of the list with what it is the sum of."""
        figure = FIGURES[name]
        value = figure.compute(self._costs, given)
        return Quantity(int(value or 0), figure.unit, figure.convention, Table(columns, rows))


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{shorten(value)} is not a value of a config.json")


class Parameters(Tabular):
    """How many parameters a model has. Whole numbers, exact; each property says its convention."""

    def __init__(self, inner: presets.Model):
        self._model = inner

    @property
    def total(self) -> Quantity:
        """Unique and trainable; a tied table counts once. Its rows are the parts of the model."""
        return self._by_part("total", lambda w: int(w.count))

    @property
    def active(self) -> Quantity:
        """The total without the routed experts that a token does not choose, embeddings and head in full."""
        return self._by_part("active", lambda w: int(w.active))

    @property
    def active_excluding_input_embedding(self) -> int:
        """`active` without the input table, where it is not the head too."""
        return self._model.counts.active_excluding_input_embedding

    @property
    def embedding(self) -> int:
        """Token and position tables and the head; a tied table once."""
        return self._model.counts.embedding

    @property
    def non_embedding(self) -> int:
        """The total without the tables and an untied head."""
        return self._model.counts.non_embedding

    @property
    def stored(self) -> int:
        """The values in the published file, scales included; where none is known, parameters and buffers."""
        return self._model.stored

    @property
    def stored_is_computed(self) -> bool:
        """Whether `stored` is parameters and buffers, for want of a published file."""
        return self._model.is_stored_computed

    @property
    def tensors(self) -> Table:
        """Every trained tensor under its name in the file, every layer and expert written out: shape, parameters.

        Made while somebody goes through it. Raises `Problem` for more than are written out: then there are `patterns`.
        """
        check_number(self._model)
        counts = self._model.counts
        return Table(
            ("tensor", "shape", "parameters"),
            lambda: (
                {"tensor": name, "shape": list(shape), "parameters": math.prod(shape)}
                for name, shape in counts.tensors()
            ),
            length=sum(int(w.copies) for w in counts.weights),
        )

    @property
    def patterns(self) -> Table:
        """The trained tensors by name pattern, `{i}` a layer and `{e}` an expert: shape, copies, all their parameters
        and these as a formula.
        """
        rows: list[Row] = [
            {
                "tensor": w.name,
                "shape": [int(d) for d in w.shape],
                "copies": int(w.copies),
                "parameters": int(w.count),
                "formula": str(w.count.expr),
            }
            for w in self._model.counts.weights
        ]
        return Table(("tensor", "shape", "copies", "parameters", "formula"), rows)

    @property
    def table(self) -> Table:
        names = "total", "active", "active_excluding_input_embedding", "embedding", "non_embedding"
        rows: list[Row] = [
            {"figure": name, "parameters": int(getattr(self, name)), "convention": FIGURES[name].convention}
            for name in names
        ]
        where = "computed: parameters and buffers" if self.stored_is_computed else "values in the published file"
        rows.append({"figure": "stored", "parameters": self.stored, "convention": where})
        return Table(("figure", "parameters", "convention"), rows, caption=self._model.name)

    def __repr__(self) -> str:
        return repr(self.table.select("figure", "parameters"))

    def _by_part(self, name: str, count) -> Quantity:
        sums: dict[tuple[Value, Value, Value], int] = {}
        for part in self._model.counts.parts:
            layers = len(part.layers) if part.layers else None
            key = part.name, str(part.kind) if layers else None, layers
            sums[key] = sums.get(key, 0) + sum(count(w) for w in part.weights)
        columns = "part", "kind", "layers", "parameters"
        rows: list[Row] = [dict(zip(columns, (*key, n))) for key, n in sums.items()]
        value = getattr(self._model.counts, name)
        return Quantity(value, PARAMETERS, FIGURES[name].convention, Table(columns, rows))


class Formula:
    """The number of parameters as a polynomial of the model's sizes: `str` in names, `tex` in letters.

    A notebook shows MathML where V8 is installed (mini-racer), and TeX where it is not.
    """

    def __init__(self, inner: presets.Model):
        self._model = inner

    @property
    def symbols(self) -> dict[str, int]:
        """The value of every symbol in it."""
        poly, values = self._model.counts.total_poly, self._model.counts.trace.symbols
        return {name: int(n) for name, n in values.items() if name in poly.symbols}

    @cached_property
    def tex(self) -> str:
        """As TeX, without dollars; a size that has no letter by its name."""
        from ..views.kit.equations import symbol_letter, total_latex

        return total_latex(self._model.counts.total_poly, symbol_letter)

    def __str__(self) -> str:
        return str(self._model.counts.total_poly)

    __repr__ = __str__

    def _repr_latex_(self) -> str:
        return f"$${self.tex}$$"

    def _repr_html_(self) -> str:
        if find_spec("py_mini_racer") is None:
            return escape(self._repr_latex_())
        from ..views.kit.mathml import mathml

        return mathml(self.tex, True)
