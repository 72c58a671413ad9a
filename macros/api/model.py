"""A model for programs: its parameters, its formula, its costs, the effect of other sizes, its drawings."""

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
from ..catalogue.components import LARGEST_SIDE, MOST_RESIDUES
from ..counting.asked import one_of, whole
from ..counting.conditions import Conditions
from ..counting.costs import Costs
from ..counting.costs import of as costs_of
from ..counting.figures import FIGURES, PARAMETERS
from ..counting.figures import figure as figure_of
from ..counting.formats import CACHE_BYTES, cache_meant
from ..data.components import Inputs
from ..data.costs import Asked, plain_number
from ..data.model import as_json, check_number
from ..engine.bounds import MOST_TOKENS
from ..engine.errors import Problem, nearest, shorten
from ..engine.files import parse_json
from .conditions import accelerator, check_split, conditions, warn, warn_beyond
from .prediction import Prediction
from .tables import Quantity, Row, Table, Tabular, Value, weights_table

if TYPE_CHECKING:
    from ..catalogue.components import Component, Seen
    from .pictures import Picture

# What a tower is asked for, by what it reads.
ASKED = {"image": "image(width, height)", "sound": "sound(seconds)", "protein": "protein(residues)"}


def load(model: str | os.PathLike[str] | Mapping[str, Any]) -> Model:
    """The model of a preset's slug, of a `config.json` or a folder that holds one, by its path, or of its keys as a
    dict.

    A path may be text, unless a preset has that slug. Warns (`UserWarning`) of costs that are not counted and of
    unknown keys in a foreign config. Raises `Problem` for a model that cannot be read or counted.
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
    """A model with everything that its forward pass, run on shapes, determines. Made by `load` and `what_if`."""

    def __init__(self, inner: presets.Model):
        self.inner = inner

    @property
    def name(self) -> str:
        """The name that its maker uses; for a foreign config its path."""
        return self.inner.name

    @property
    def slug(self) -> str:
        """The preset's slug, or the argument of `load`."""
        return self.inner.slug

    @property
    def architecture(self) -> str:
        """The module of the model's forward pass, by its name."""
        return self.inner.architecture.name

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of `load`."""
        return self.inner.warnings

    @cached_property
    def config(self) -> dict[str, bool | int | float | str]:
        """The hyperparameters that have a single value, in forward order, under the names that `what_if` accepts."""
        from .changes import hyperparameters

        return hyperparameters(self.inner)

    @cached_property
    def parameters(self) -> Parameters:
        """The number of parameters by every convention, and the tensors that hold them."""
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
        if the context exceeds the model's. Raises `Problem` for an impossible condition.
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
        """FLOPs, by part, of a step of `new_tokens` tokens, the last of which sees `context` tokens, itself included.

        The default is a decode step; `new_tokens=context` is the prefill of a whole prompt. A multiply-add is 2 FLOPs,
        scores count in full (`causal` in the rows: only those that the mask lets through), and logits are computed for
        the last token only. Raises `Problem` if there are more new tokens than context.
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
        largest operation, which each device holds whole. `fits` compares them with a machine's memory."""
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
        """Any figure of the list that pages and commands share, by its name: `tokens_per_second`, `training_bytes`.

        Whole numbers are exact, others are floats; None if a value is never reached. A figure of time needs `on`, an
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
        """The model with these hyperparameters, and all others unchanged: `m.what_if(n_layers=64)`.

        A name is this site's, its letter (`L`) or the key of config.json. Raises `Problem` for a name that the
        architecture does not have, for sizes that do not fit together, and for a size that follows from others.
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
    def components(self) -> tuple[Tower, ...]:
        """The vision and audio towers beside a multimodal model's text part, which no other figure counts."""
        return tuple(map(Tower, self.inner.components))

    @property
    def prediction(self) -> Prediction | None:
        """The modules for multi-token prediction beside the model, which no other figure counts; None without any."""
        return Prediction(self.inner.prediction) if self.inner.prediction else None

    @property
    def diagram(self) -> Picture:
        """The data flow from token ids to next-token scores, with each kind of layer once, as an SVG."""
        from .pictures import diagram

        return diagram(self.inner)

    @property
    def map(self) -> Picture:
        """The parameters to scale, with an area for each part, as an SVG."""
        from .pictures import parameter_map

        return parameter_map(self.inner)

    def to_dict(
        self,
        collapse: bool = False,
        context: int | Iterable[int] = Asked().contexts,
        weights: str = "bfloat16",
        cache: str = "bfloat16",
        components: bool = False,
    ) -> dict[str, Any]:
        """The object that `every-parameter describe --format json` prints and that the site's `data/v1` holds.

        It lists every tensor, or with `collapse` every name pattern; with `components` also the towers. Raises
        `Problem` for more tensors than it can list.
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
        beside = Inputs() if components else None
        return json.loads(as_json(self.inner, collapse, Asked(contexts, cache, weights, beside)))

    @property
    def _costs(self) -> Costs:
        return costs_of(self.inner.counts)

    def _quantity(self, name: str, given: Conditions, columns: tuple[str, ...], rows: list[Row]) -> Quantity:
        """A figure of the list with the terms of its sum."""
        figure = FIGURES[name]
        value = figure.compute(self._costs, given)
        return Quantity(int(value or 0), figure.unit, figure.convention, Table(columns, rows))


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{shorten(value)} is not a value of a config.json")


class Parameters(Tabular):
    """The number of parameters of a model. Exact whole numbers; each property states its convention."""

    def __init__(self, inner: presets.Model):
        self._model = inner

    @property
    def total(self) -> Quantity:
        """Unique and trainable; a tied table counts once. Its rows are the parts of the model."""
        return self._by_part("total", lambda w: int(w.count))

    @property
    def active(self) -> Quantity:
        """The total without the routed experts that a token does not choose; embeddings and head count in full."""
        return self._by_part("active", lambda w: int(w.active))

    @property
    def active_excluding_input_embedding(self) -> int:
        """`active` without the tables of n-grams and the input table, unless that is also the head."""
        return self._model.counts.active_excluding_input_embedding

    @property
    def embedding(self) -> int:
        """Token and position tables and the head; a tied table counts once."""
        return self._model.counts.embedding

    @property
    def non_embedding(self) -> int:
        """The total without the tables and an untied head."""
        return self._model.counts.non_embedding

    @property
    def stored(self) -> int:
        """The values in the published file, scales included; without a known file, parameters and buffers."""
        return self._model.stored

    @property
    def stored_is_computed(self) -> bool:
        """Whether `stored` is parameters and buffers, because no published file is known."""
        return self._model.is_stored_computed

    @property
    def tensors(self) -> Table:
        """Every trained tensor under its name in the file, with every layer and expert listed: shape, parameters.

        The rows are generated during iteration. Raises `Problem` if there are too many to list; use `patterns` then.
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
        """The trained tensors by name pattern, with `{i}` for a layer and `{e}` for an expert: shape, copies, their
        parameters in total, also as a formula."""
        return weights_table(self._model.counts)

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


class Tower(Tabular):
    """A tower beside a text part: its tensors, and what an image or a sound costs."""

    def __init__(self, inner: Component):
        self._inner = inner

    @property
    def name(self) -> str:
        """vision, audio or protein."""
        return self._inner.name

    @property
    def part(self) -> str:
        """The key of its table in config.json."""
        return self._inner.part

    @property
    def total(self) -> int:
        """Its parameters."""
        return self._inner.total

    @property
    def table(self) -> Table:
        """Its trained tensors by name pattern, with `{i}` for a layer: shape, copies, parameters in total."""
        return weights_table(self._inner.counts)

    def image(self, width: int, height: int) -> Seen:
        """The patches, tokens and FLOPs of an image of so many pixels. Raises `Problem` for another tower."""
        self._must_read("image")
        return self._inner.image(whole("width", width, LARGEST_SIDE), whole("height", height, LARGEST_SIDE))

    def sound(self, seconds: float) -> Seen:
        """The moments, tokens and FLOPs of a sound. Raises `Problem` for another tower."""
        self._must_read("sound")
        return self._inner.sound(seconds)

    def protein(self, residues: int) -> Seen:
        """The tokens and FLOPs of a protein of so many amino acids. Raises `Problem` for another tower."""
        self._must_read("protein")
        return self._inner.protein(whole("residues", residues, MOST_RESIDUES))

    def _must_read(self, what: str) -> None:
        """Raise `Problem` for a tower that reads something else."""
        if (reads := self._inner.reads) != what:
            raise Problem(f"{self.part} reads {reads}s", f"ask for {ASKED[reads]}")

    def __repr__(self) -> str:
        return f"<Tower {self.part}: {self._inner.tower.name}, {self.total:,} parameters>"


class Formula:
    """The number of parameters as a polynomial of the model's sizes: `str` has names, `tex` has letters.

    A notebook shows MathML if V8 is installed (mini-racer), and TeX otherwise.
    """

    def __init__(self, inner: presets.Model):
        self._model = inner

    @property
    def symbols(self) -> dict[str, int]:
        """The value of every symbol in the formula."""
        poly, values = self._model.counts.total_poly, self._model.counts.trace.symbols
        return {name: int(n) for name, n in values.items() if name in poly.symbols}

    @cached_property
    def tex(self) -> str:
        """The formula as TeX, without dollar signs; a size without a letter has its name."""
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
