"""A model with everything derived from its trace: counts, towers and other parts, published figures."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, cast

from ..cache.memory import Dependency, can_release
from ..counting import quantization, quantized
from ..counting.file_weights import FileWeights
from ..counting.parameters import Counts, context_key, stated_context
from ..engine.architectures import Architecture, modules_by_type
from ..engine.architectures.config import Config, fields_of
from ..engine.architectures.heads import Head
from ..engine.cached_method import clear
from ..engine.errors import Problem, only_forward, shorten
from ..engine.forward import trace
from ..engine.keys import Parts, head_read_otherwise, parts_read_otherwise, sizes_among
from ..engine.mistakes import WRONG_NAMES, wrong_name, wrong_sizes
from ..engine.names_there import names_there
from ..engine.renaming import sizes_left_out
from ..engine.rules import ShapeError
from ..engine.trace import Trace
from . import class_defaults
from .components import Component, components_of, uncounted, with_counts
from .folded import Fold, drawn, fold
from .model_files import Counted, ModelFiles
from .predictions import Prediction, prediction_of, uncounted_modules
from .preset_file import Extra, Preset, Published
from .unread_there import unread_there

# The warning about keys that none of the maker's sources states.
DEFAULT = "from the defaults of a class in transformers; the maker's own values were not read"


class Model:
    """A model with everything that follows from its trace. `slug` is a preset's, or the given path."""

    def __init__(
        self,
        slug: str,
        raw: Mapping[str, Any],
        architecture: Architecture,
        config: Config,
        preset: Preset | None,
        unknown: tuple[str, ...] = (),
        parts: Parts | None = None,
        head: Head | None = None,
        whole: Mapping[str, Any] | None = None,
    ):
        self.whole = raw if whole is None else whole  # the keys of the whole config.json
        self.slug, self.raw, self.architecture, self.config = slug, raw, architecture, config
        self.preset, self.unknown, self.parts, self.head = preset, unknown, parts, head
        self.files: ModelFiles | None = None  # at hand
        self.where = slug  # where the config is, for a message: the preset's file, or the given path
        self.folds: Sequence[Fold] = ()  # kinds of layers that drawings merge
        can_release(self)

    @property
    def name(self) -> str:
        return self.preset.name if self.preset else self.slug

    @property
    def depends_on(self) -> Dependency | None:
        """The dependency that invalidates cached results for this model."""
        return ("preset", self.slug) if self.preset else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the described part of the config and the others, costs that are not counted, keys that
        transformers reads differently, and unknown keys of a foreign config.json."""
        parts = (f"a config of several parts, {self.parts}",) if self.parts else ()
        said = self.preset.caveat if self.preset else self.config.said_of_costs
        caveat = (said,) if said else ()
        if self.default_keys:
            caveat += (f"{DEFAULT}: {some(self.default_keys)}",)
        head = (f"{self.head.name}: {self.head.said}",) if self.head else ()
        if self.preset is None and self.parts is None and (names := self.counts.formats.unmatched):
            caveat += (f"{quantized.KEY}: names that are no module's: {some(names)}",)
        formats = (f"{self.unknown_format}: the published format of the weights is not known",)
        caveat += formats if self.unknown_format else ()
        others = [name for name in self.unknown if name not in self.unknown_sizes]
        sizes = (f"unknown keys that name a size, not counted: {some(self.unknown_sizes)}",)
        unknown = (f"unknown keys, taken as changing no shape: {some(others)}",)
        files = (self.file_difference,) if self.file_difference else ()
        files += tuple(self.files.notes(self._counted)) if self.files else ()
        known = files + parts + head + caveat + self.read_otherwise
        known += head_read_otherwise(self.whole, self.config) + parts_read_otherwise(self.whole, names_there())
        known += sizes_left_out(self.whole, modules_by_type(), names_there())
        return known + (sizes if self.unknown_sizes else ()) + (unknown if others else ())

    @property
    def read_otherwise(self) -> tuple[str, ...]:
        """A line for each key of the config that makes transformers compute something else."""
        foreign = unread_there(self.raw, self.config) if self.preset is None else ()
        return (*self.config.read_otherwise(self.raw), *foreign)

    @property
    def unknown_format(self) -> str:
        """The unknown part of a foreign config's quantization; empty if everything in it is known."""
        try:
            quantization.read(self.raw)
        except Problem as problem:
            return problem.what
        return ""

    @property
    def unknown_sizes(self) -> list[str]:
        """The unknown keys that name a size, which is therefore not counted."""
        return sizes_among(self.unknown, self.raw)

    @cached_property
    def longest_context(self) -> tuple[int | None, bool]:
        """(tokens, whether a learned position table ends there); None if the config does not say."""
        rows = self.config.position_reach
        return (stated_context(self.raw), False) if rows is None else (rows, True)

    @cached_property
    def default_keys(self) -> tuple[str, ...]:
        """The keys of the config whose value is a class's default, in order, because none of the maker's sources states
        it.

        If the forward pass yields an exact published total, that confirms its sizes.
        """
        if self.preset is None:
            return ()
        unread = [key for key in self.raw if key != "model_type" and self.preset.sources.is_default(key)]
        held = self._held if unread else ()
        spelt = {name: k.field for k in fields_of(self.architecture.config) if k.key for name in (k.key, *k.also)}
        return tuple(key for key in unread if spelt.get(key) not in held)

    @property
    def _held(self) -> frozenset[str]:
        """The sizes that an exact published total confirms."""
        return self.counts.total_poly.symbols if self.published and self.published.exact else frozenset()

    @property
    def has_default_context(self) -> bool:
        """Whether the longest context is a class's default."""
        key = context_key(self.raw)
        return bool(self.default_keys) and (key in self.default_keys or "n_positions" in self.default_sizes)

    @cached_property
    def default_sizes(self) -> frozenset[str]:
        """The symbols of counts and costs that depend on a class's default: the sizes that `default_keys` determine,
        and sizes derived from those or from a default list of the layers' kinds."""
        if not self.default_keys:
            return frozenset()
        config = self.architecture.config
        return class_defaults.sizes_of(self.default_keys, self.raw, config, self.counts, self._held)

    def rests_on_default(self, figure: str) -> bool:
        """Whether a figure of `counting.figures` depends on a class's default."""
        return bool(self.default_sizes) and class_defaults.rests_on(figure, self.default_sizes, self.counts)

    def is_beyond(self, context: int) -> bool:
        """Whether a context is longer than the model was made for."""
        end, _ = self.longest_context
        return end is not None and context > end

    @property
    def model_type(self) -> str:
        """The config's own name for the architecture."""
        return self.raw["model_type"]

    @cached_property
    def trace(self) -> Trace:
        """The run on shapes, once per model until it is released. Raises `Problem` if the sizes do not fit together."""
        before = vars(self).get("before")
        if before is not None and (held := before()) is not None:
            return held
        try:
            run = partial(trace, self.architecture, self.config, self.head)
            return fold(run, self.folds) if self.folds else run()
        except Problem as problem:
            raise problem.at(self.where) from None
        except ShapeError as error:
            if self.config.looks_both_ways:
                raise only_forward(f"a part of {self.architecture.name}").at(self.where) from None
            raise wrong_sizes(error).at(self.where) from None
        except WRONG_NAMES as error:
            raise wrong_name(error) from error

    @cached_property
    def counts(self) -> Counts:
        return Counts(self.trace, self.raw, self.architecture, self.files and (lambda: self.file))

    @property
    def file(self) -> FileWeights | None:
        """The tensors of the files, if they are at hand."""
        return None if self.files is None else self.files.weights(self._counted)

    @property
    def file_difference(self) -> str:
        """How the files differ from the config, in one line; empty if they agree, or there are none."""
        return "" if self.files is None else self.files.difference(self._counted)

    @property
    def _counted(self) -> Counted:
        return Counted(self.raw, self.architecture, self.config, self.head, self.trace)

    def release(self) -> None:
        """Drop the trace and everything counted from it. The model keeps a trace that a view still uses part of, since
        parts are compared by identity."""
        mine = vars(self)
        self.release_costs()
        mine.pop("counts", None)
        if (trace := mine.pop("trace", None)) is not None:
            mine["before"] = weakref.ref(trace)
        if mine.get("drawn", self) is not self:
            self.drawn.release()
        for component in mine.get("_components", [()])[0]:
            component.release()
        if (prediction := mine.get("prediction")) is not None:
            vars(prediction).pop("counts", None)

    def release_costs(self) -> None:
        """Drop the costs and their cached results immediately: a build runs without the garbage collector."""
        if (counts := vars(self).get("counts")) is not None and counts.costs is not None:
            clear(counts.costs, *vars(counts.costs).values())
            counts.release()

    @cached_property
    def drawn(self) -> Model:
        """The model with similar layers folded into one kind; itself if there are none."""
        return drawn(self)

    @cached_property
    def prediction(self) -> Prediction | None:
        """The modules for multi-token prediction. Raises `Problem` for an impossible number."""
        return prediction_of(self)

    @cached_property
    def _components(self) -> tuple[tuple[Component, ...], tuple[str, ...]]:
        return components_of(self.whole, self.where, self.preset is not None)

    @property
    def components(self) -> tuple[Component, ...]:
        """The towers of a multimodal model. Raises `Problem` for a wrong config of one."""
        return self._components[0]

    @property
    def image_tower(self) -> list[int] | None:
        """Layers and width of the image tower as SGLang reads them in `vision_config`: empty without one, None if it
        does not state them. SGLang does not read `depth`; it falls back to 24 layers."""
        table = self.whole.get("vision_config")
        if not isinstance(table, Mapping):
            has_tower = self.parts is not None and any(name == "vision_config" for name, _ in self.parts.left_out)
            return None if has_tower else []
        sizes = cast("Mapping[str, Any]", table)
        layers, width = sizes.get("num_hidden_layers", 24 if "depth" in sizes else None), sizes.get("hidden_size")
        return [layers, width] if isinstance(layers, int) and isinstance(width, int) else None

    @property
    def with_components(self) -> int:
        """The parameters of the text part and the towers."""
        return self.counts.total + sum(component.total for component in self.components)

    @property
    def with_prediction(self) -> int:
        """The parameters of the text part and the modules for multi-token prediction."""
        return self.counts.total + (self.prediction.total if self.prediction else 0)

    @property
    def uncounted_parts(self) -> tuple[str, ...]:
        """The keys of the other parts of the config, which are not counted."""
        named = (*(self.preset.sources.left_out if self.preset else ()), *uncounted_modules(self))
        return uncounted(*self._components, named)

    @cached_property
    def published(self) -> Published | None:
        """The published number of parameters; None if the preset has none, and for a foreign config."""
        published = self.preset.published if self.preset else None
        return published and with_counts(published, lambda: self.components, self.where)

    @property
    def published_file(self) -> Published | None:
        """The published number of values in the file at `hub`; None if it is not known."""
        published = self.published
        return published if published and published.exact and published.file else None

    @property
    def stored(self) -> int:
        """The number of values in the file at `hub`, scales included; without a published number, total and buffers."""
        if self.files and (at_hand := self.file) and self.files.decides:
            return at_hand.elements
        file = self.published_file
        return file.parameters if file else self.held()

    @property
    def is_stored_computed(self) -> bool:
        """Whether `stored` is total and buffers, because no published file is known."""
        return self.published_file is None and not (self.files and self.file and self.files.decides)

    def held(self, extra: Iterable[Extra] = ()) -> int:
        """The parameters, the buffers, and the additional rows of a figure."""
        return self.counts.total + self.counts.buffer_elements + sum(row.count for row in extra)

    @property
    def names_verified(self) -> bool:
        """Whether the tensor names were compared with the published file's."""
        return bool(self.preset and self.preset.sources.names == "published")

    def verify(self) -> None:
        """Raise `Problem` if the forward pass does not yield an exact published total, or if a tower or module is
        wrong."""
        _ = self.components, self.prediction
        published = self.published
        if published and published.exact and published.parameters != (held := self.held(published.extra)):
            raise Problem(
                f"published.parameters = {published.parameters:,}, and the forward pass gives {held:,} "
                f"({held - published.parameters:+,})",
                "correct [config] or the figure, or name the difference in [[published.extra]]",
            )
        for n, figure in enumerate(published.other if published else ()):
            here = self.held(figure.extra)
            if figure.exact and figure.parameters != here:
                raise Problem(
                    f"published.other[{n}].parameters = {figure.parameters:,}, and the forward pass with its extra "
                    f"rows gives {here:,} ({here - figure.parameters:+,})",
                    "correct the figure or its rows",
                )


def some(names: Sequence[str]) -> str:
    """The first few keys, and the number of others."""
    return ", ".join(map(shorten, names[:9])) + (f" and {len(names) - 9} more" if len(names) > 9 else "")
