"""A model for programs: its parameters, its formula, its costs, the effect of other sizes, its drawings."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ..catalogue import hub, presets
from ..catalogue.components import LARGEST_SIDE, MOST_RESIDUES
from ..catalogue.headlines import NOT_REPRODUCED, headlines_of
from ..counting.asked import Unsaid, one_of, whole
from ..counting.conditions import Conditions
from ..counting.costs import Costs
from ..counting.costs import of as costs_of
from ..counting.figures import FIGURES
from ..counting.figures import figure as figure_of
from ..counting.formats import CACHE_BYTES, PUBLISHED, cache_meant
from ..data.components import Inputs
from ..data.costs import Asked, plain_number
from ..data.model import as_json
from ..engine.bounds import MOST_TOKENS
from ..engine.errors import Problem, nearest, shorten
from ..engine.files import parse_json
from .conditions import OWN, accelerator, check_split, conditions, warn, warn_beyond
from .parameters import Parameters
from .prediction import Prediction
from .tables import Quantity, Row, Table, Tabular, weights_table

if TYPE_CHECKING:
    from ..catalogue.components import Component, Seen
    from .pictures import Picture

# The method to call for a tower's cost, by its input.
ASKED = {"image": "image(width, height)", "sound": "sound(seconds)", "protein": "protein(residues)"}


def load(
    model: str | os.PathLike[str] | Mapping[str, Any], *, files: bool = False, revision: str | None = None
) -> Model:
    """The model of a preset's slug or any other name, of the path of a `config.json` or of a folder that holds one, or
    of its keys as a dict.

    Other names are those of hubs, their URLs, Ollama's tags and the names of conversions (`Qwen/Qwen3-8B-AWQ`), whose
    format is then the default of `weights`. A path may be a string, unless a preset has that slug.

    For a model that the catalog lacks (`organization/name`), `huggingface_hub` from the extra `hub` asks the hub for
    its config.json, and with `files` for the headers of its files; `revision` is a branch, a tag or a commit.

    Warns (`UserWarning`) about costs that are not counted and about unknown keys in a foreign config. Raises `Problem`
    for a model that cannot be read or counted.
    """
    made = hub.load(str(model), files, revision) if files or revision else read(model)
    said = presets.meant(model) if isinstance(model, str) and model != made.slug else presets.Meant("")
    if said.slug != made.slug:
        return _warned(Model(made))
    if said.format or said.why:
        form = f" in {said.format}" if said.format else ""
        warn([f"{model}: {made.name}{form}{f' ({said.why})' if said.why else ''}"])
    return _warned(Model(made, said.format or PUBLISHED))


def _warned(model: Model) -> Model:
    warn(model.warnings, 4, of=model.name)
    return model


def _again(slug: str, config: dict[str, Any] | None, format: str) -> Model:
    """A model that was pickled."""
    return Model(presets.model(slug) if config is None else presets.make(slug, config), format)


def own_format(model: object, weights: Any) -> Any:
    """The requested format of the weights, or otherwise the one in the model's name, as in that of a conversion."""
    if weights is not None and not isinstance(weights, Unsaid):
        return weights
    if isinstance(model, Model):
        return weights if model.format == PUBLISHED else model.format
    return (
        presets.meant(model).format or weights if isinstance(model, str) and model not in presets.paths() else weights
    )


class Named(dict[str, Any]):
    """A dict whose error for a missing key suggests the nearest one."""

    def __missing__(self, key: object) -> NoReturn:
        known = ", ".join(self)
        raise KeyError(f"{key}; {nearest(str(key), self, f'has {known}')}")


def read(model: str | os.PathLike[str] | Mapping[str, Any] | Model) -> presets.Model:
    """The model of the catalog, or of a config."""
    if isinstance(model, Model):
        return model.inner
    if isinstance(model, Mapping):
        return _of_keys(model)
    if isinstance(model, str):
        return hub.load(model)
    path = os.fspath(model) if isinstance(model, os.PathLike) else None
    if not isinstance(path, str):
        raise Problem(f"{shorten(model)} is not a model", "give a preset's slug, a path, or the keys of a config.json")
    # so that it is not taken for a slug
    return presets.load(path if os.path.isabs(path) else os.path.join(os.curdir, path))


def _of_keys(keys: Mapping[str, Any]) -> presets.Model:
    try:
        return presets.make("config", parse_json(json.dumps(dict(keys))))
    except Problem as problem:
        raise problem.at("config") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise Problem(str(error), "give keys and values as in a config.json", "config") from None


class Model(Tabular):
    """A model with everything that its forward pass, run on shapes, determines. Created by `load` and `what_if`."""

    def __init__(self, inner: presets.Model, format: str = PUBLISHED):
        self.inner = inner
        self.format = format  # of the weights, unless another is requested

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

        return Named(hyperparameters(self.inner))

    @cached_property
    def parameters(self) -> Parameters:
        """The number of parameters by every convention, and the tensors that hold them."""
        return Parameters(self.inner)

    @property
    def headlines(self) -> Table:
        """The published sizes of the model and the counts that yield them, one row each; if a size has several counts,
        any may be meant.

        A row without a count means that none yields the size. A config.json of your own has none.
        """
        counts = self.parameters.by_count
        rows = [
            {
                "size": row.said,
                "count": None if name == NOT_REPRODUCED else name,
                "parameters": counts.get(name),
                "source": row.source,
                "address": row.elsewhere.address if row.elsewhere else None,
            }
            for row in (headlines_of(self.inner.preset) if self.inner.preset else ())
            for name in row.counts
        ]
        return Table(("size", "count", "parameters", "source", "address"), rows, caption=self.inner.name)

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

    def __eq__(self, other: object) -> bool:
        """Models with the same name, config and format of the weights are equal."""
        if not isinstance(other, Model):
            return NotImplemented
        mine, theirs = self.inner, other.inner
        return (self.slug, self.format, mine.raw, mine.files) == (other.slug, other.format, theirs.raw, theirs.files)

    def __hash__(self) -> int:
        return hash((self.slug, self.format))

    def __reduce__(self) -> Any:
        """Pickle the preset or the config, not the trace: a worker builds the model again."""
        if self.inner.files is not None:
            return super().__reduce__()
        return _again, (self.slug, None if self.inner.preset else dict(self.inner.whole), self.format)

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
            for entry, size in self._costs.cache.cache_by_entry(given.tokens, given.item_bytes)
        ]
        return self._quantity("cache_bytes", given, ("holds", "layers", "reach", "elements", "bytes"), rows)

    def flops(self, context: int = 4096, new_tokens: int = 1) -> Quantity:
        """FLOPs, by part, of a step of `new_tokens` tokens, the last of which sees `context` tokens, including itself.

        The default is a decode step; `new_tokens=context` is the prefill of a whole prompt. A multiply-add is 2 FLOPs,
        scores count in full (`causal` in the rows: only those that the mask lets through), and logits are computed for
        the last token only. Raises `Problem` if there are more new tokens than context.
        """
        given = conditions(context)
        new = whole("new_tokens", new_tokens, MOST_TOKENS)
        if new > given.tokens:
            what = f"more than the context of {given.tokens:,}"
            raise Problem(what, "give a longer context").about("new_tokens", new)
        warn_beyond(self.inner, given.tokens)
        rows: list[Row] = [
            {
                "part": part.name,
                "kind": str(part.kind) if part.layers else None,
                "layers": part.layers,
                "flops": part.total,
                "causal": part.causal,
            }
            for part in self._costs.compute.flops_by_part(new, given.tokens)
        ]
        convention = "2 per multiply-add; scores in full; logits of the last token only"
        table = Table(("part", "kind", "layers", "flops", "causal"), rows)
        return Quantity(self.inner.counts.flops_at(new, given.tokens), "FLOPs", convention, table)

    def memory(
        self, context: int = 4096, batch: int = 1, weights: str = OWN, cache: str = "bfloat16", devices: int = 1
    ) -> Quantity:
        """Bytes on the fullest device during decode of `batch` sequences of `context` tokens: weights, cache, and the
        largest operation, which each device holds whole. `fits` compares them with a machine's memory."""
        given = conditions(context, batch, own_format(self, weights), cache, devices)
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
        weights: str = OWN,
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
        given = conditions(context, batch, own_format(self, weights), cache, devices)
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
        return Model(changed(self.inner, settings), self.format)

    @property
    def components(self) -> tuple[Tower, ...]:
        """The vision and audio towers of a multimodal model, which no other figure counts."""
        return tuple(map(Tower, self.inner.components))

    @property
    def prediction(self) -> Prediction | None:
        """The modules for multi-token prediction, which no other figure counts; None if the model has none."""
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
        weights: str = Unsaid("bfloat16"),
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
        weights = own_format(self, weights)
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
    """NumPy's numbers converted to Python's."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{shorten(value)} is not a value of a config.json")


class Tower(Tabular):
    """A tower of a multimodal model: its tensors, and the cost of an image or a sound."""

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
        """The patches, tokens and FLOPs of an image of this many pixels. Raises `Problem` for another kind of tower."""
        self._must_read("image")
        return self._inner.image(whole("width", width, LARGEST_SIDE), whole("height", height, LARGEST_SIDE))

    def sound(self, seconds: float) -> Seen:
        """The time steps, tokens and FLOPs of a sound. Raises `Problem` for another kind of tower."""
        self._must_read("sound")
        return self._inner.sound(seconds)

    def protein(self, residues: int) -> Seen:
        """The tokens and FLOPs of a protein of this many amino acids. Raises `Problem` for another kind of tower."""
        self._must_read("protein")
        return self._inner.protein(whole("residues", residues, MOST_RESIDUES))

    def _must_read(self, what: str) -> None:
        """Raise `Problem` for a tower that reads something else."""
        if (reads := self._inner.reads) != what:
            raise Problem(f"{self.part} reads {reads}s", f"ask for {ASKED[reads]}")

    def __repr__(self) -> str:
        return f"<Tower {self.part}: {self._inner.tower.name}, {self.total:,} parameters>"


class Formula:
    """The number of parameters as a polynomial of the model's sizes: `str` uses names, `tex` letters.

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
