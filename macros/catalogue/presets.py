"""Presets by slug, and models: from a preset, from a `config.json`, from a folder that holds one."""

from __future__ import annotations

import os
import tomllib
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

from ..cache.memory import Dependency, can_release, depends_on, invalidate, memoized, untracked
from ..counting import quantization
from ..counting.parameters import Counts
from ..engine.architectures import Architecture, architectures, find, is_known, modules_by_type, unregistered
from ..engine.architectures.config import Config, fields_of
from ..engine.architectures.drafts import is_draft
from ..engine.architectures.heads import Head, described, find_head, of_whole
from ..engine.architectures.likeness import unknown_type
from ..engine.architectures.rope_config import check_rope_tables, check_sections
from ..engine.class_names import class_names
from ..engine.errors import Problem, nearest, only_forward, shorten
from ..engine.files import place, read_json, read_text
from ..engine.forward import trace
from ..engine.keys import Parts, head_read_otherwise, named_keys, sizes_among
from ..engine.mistakes import WRONG_NAMES, wrong_name, wrong_sizes
from ..engine.rules import ShapeError
from ..engine.trace import Trace
from .components import Component, components_of, uncounted, with_counts, without_text
from .folded import Fold, drawn, fold
from .names import check_slug, family_slug
from .predictions import Prediction, prediction_of, uncounted_modules
from .preset_file import Extra, Preset, Published, place_above_tables, read_preset
from .stored import types_of, with_format

FOLDER = Path(__file__).parent.parent / "presets"
# What configs call the longest context that a model is made for.
LENGTHS = "max_position_embeddings", "max_seq_len", "n_positions", "model_max_length", "context_length"
NAMES = "published", "transformers", "own"  # whose the tensor names of a preset may be
TOML = "*.[tT][oO][mM][lL]"
also: list[Path] = []  # the folder of a site that has models of its own
REFERENCE_LOGITS = Path(__file__).parent / "reference_logits.toml"

# What is said of the keys that no source of the maker's was read for.
DEFAULT = "from the defaults of a class in transformers; the maker's own values were not read"
# Figures that every parameter counts in, and nothing else.
_OF_ALL_PARAMETERS = frozenset({"total", "embedding", "non_embedding", "stored", "tensors", "weight_bytes"})


class Model:
    """A model with everything that its trace gives. `slug` is a preset's, or the given path."""

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
        self.folder: Path | None = None  # that its files are in, where it is of a folder
        self.folds: Sequence[Fold] = ()  # kinds of layers that are drawn as one
        can_release(self)

    @property
    def name(self) -> str:
        return self.preset.name if self.preset else self.slug

    @property
    def where(self) -> str:
        """Where the config is, for a message: the preset's file, or the given path."""
        return place(file) if self.preset and (file := file_of(self.slug)) else self.slug

    @property
    def depends_on(self) -> Dependency | None:
        """The dependency that invalidates cached results for this model."""
        return ("preset", self.slug) if self.preset else None

    @property
    def warnings(self) -> tuple[str, ...]:
        """The described part of the config and the others; costs that are not counted; keys that transformers reads
        differently; unknown keys of a foreign config.json."""
        parts = (f"a config of several parts, {self.parts}",) if self.parts else ()
        said = self.preset.caveat if self.preset else self.config.said_of_costs
        caveat = (said,) if said else ()
        if self.default_keys:
            caveat += (f"{DEFAULT}: {_some(self.default_keys)}",)
        head = (f"{self.head.name}: {self.head.said}",) if self.head else ()
        formats = (f"{self.unknown_format}: the published format of the weights is not known",)
        caveat += formats if self.unknown_format else ()
        others = [name for name in self.unknown if name not in self.unknown_sizes]
        sizes = (f"unknown keys that name a size, not counted: {_some(self.unknown_sizes)}",)
        unknown = (f"unknown keys, taken as changing no shape: {_some(others)}",)
        known = parts + head + caveat + self.read_otherwise + head_read_otherwise(self.whole, self.config)
        return known + (sizes if self.unknown_sizes else ()) + (unknown if others else ())

    @property
    def read_otherwise(self) -> tuple[str, ...]:
        """A line for each key of the config with which transformers computes something else."""
        return tuple(self.config.read_otherwise(self.raw))

    @property
    def unknown_format(self) -> str:
        """The unknown part of a foreign config's quantization; empty if all of it is known."""
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
        positions = self.config.symbols.get("n_positions")
        if positions is not None:
            return positions, True
        n = self.raw.get(self._length) if self._length else None
        return (n if isinstance(n, int) and not isinstance(n, bool) and n > 0 else None), False

    @property
    def _length(self) -> str | None:
        """The config's key of the longest context."""
        return next((key for key in LENGTHS if self.raw.get(key) is not None), None)

    @cached_property
    def default_keys(self) -> tuple[str, ...]:
        """The keys of the config whose value is a class's default, in order, because no source of the maker's states
        it.

        An exact published total that the forward pass gives confirms its sizes.
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
        return bool(self.default_keys) and (self._length in self.default_keys or "n_positions" in self.default_sizes)

    @cached_property
    def default_sizes(self) -> frozenset[str]:
        """The symbols of counts and costs that depend on a class's default: the sizes that `default_keys` give, and
        sizes derived from them or from a default list of the layers' kinds."""
        if not self.default_keys:
            return frozenset()
        keyed = {k.field: {k.key, *k.also} for k in fields_of(self.architecture.config) if k.key}
        counted = self.counts.flops.symbols.union(
            self.counts.total_poly.symbols, *(k.elements.symbols for k in self.counts.kept)
        ) & frozenset(self.trace.symbols)
        sizes = {name for name in counted if not keyed.get(name, set()).isdisjoint(self.default_keys)}
        are_kinds = any(isinstance(self.raw[key], list) for key in self.default_keys)
        derived = counted - keyed.keys() - self._held if sizes or are_kinds else frozenset[str]()
        return frozenset(sizes) | derived

    def rests_on_default(self, figure: str) -> bool:
        """Whether a figure of `counting.figures` depends on a class's default."""
        if not self.default_sizes:
            return False
        counts = self.counts
        if figure in _OF_ALL_PARAMETERS:
            symbols = counts.total_poly.symbols
        elif figure.startswith("active"):
            symbols = counts.active_poly.symbols
        elif figure.startswith("cache_bytes"):
            symbols = frozenset[str]().union(*(k.elements.symbols for k in counts.kept))
        else:
            symbols = self.default_sizes
        return not self.default_sizes.isdisjoint(symbols)

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
        types = None if self.folder is None else partial(types_of, self.folder)
        return Counts(self.trace, self.raw, self.architecture, types)

    def release(self) -> None:
        """Drop the trace and what was counted from it. A trace that a view still holds a part of stays the model's:
        its parts are compared by identity."""
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
        """Drop the costs, and what of them is cached: it holds them, and nothing is to look for garbage here."""
        if (counts := vars(self).get("counts")) is not None and counts.costs is not None:
            from ..counting.costs import CACHED  # which has been imported, where there are costs

            held = vars(counts.costs)
            for name in CACHED:
                held.pop(name, None)
            counts.release()

    @cached_property
    def drawn(self) -> Model:
        """The model with alike layers as one kind; itself if there are none."""
        return drawn(self)

    @cached_property
    def prediction(self) -> Prediction | None:
        """The modules for multi-token prediction beside the model. Raises `Problem` for an impossible number."""
        return prediction_of(self)

    @cached_property
    def _components(self) -> tuple[tuple[Component, ...], tuple[str, ...]]:
        return components_of(self.whole, self.where, self.preset is not None)

    @property
    def components(self) -> tuple[Component, ...]:
        """The towers beside the text part. Raises `Problem` for a wrong config of one."""
        return self._components[0]

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
        """The published number of values in the file at `hub`; None if none is known."""
        published = self.published
        return published if published and published.exact and published.file else None

    @property
    def stored(self) -> int:
        """The number of values in the file at `hub`, scales included; without a published number, total and buffers."""
        file = self.published_file
        return file.parameters if file else self.held()

    @property
    def is_stored_computed(self) -> bool:
        """Whether `stored` is total and buffers, because no published file is known."""
        return self.published_file is None

    def held(self, extra: Iterable[Extra] = ()) -> int:
        """The parameters, the buffers, and the additional rows of a figure."""
        return self.counts.total + self.counts.buffer_elements + sum(row.count for row in extra)

    @property
    def names_verified(self) -> bool:
        """Whether the tensor names were compared with the published file's."""
        return bool(self.preset and self.preset.sources.names == "published")

    def verify(self) -> None:
        """Raise `Problem` if the forward pass does not give an exact published total, or a part beside it is wrong."""
        _ = self.components, self.prediction
        published = self.published
        if published and published.exact and published.parameters != (held := self.held(published.extra)):
            raise Problem(
                f"published.parameters = {published.parameters:,}, and the forward pass gives {held:,} "
                f"({held - published.parameters:+,})",
                "correct [config] or the figure, or name the difference in [[published.extra]]",
            )
        for figure in published.other if published else ():
            here = self.held(figure.extra)
            if figure.exact and figure.parameters != here:
                raise Problem(
                    f"published.other parameters = {figure.parameters:,}, and the forward pass with its extra rows "
                    f"gives {here:,} ({here - figure.parameters:+,})",
                    "correct the rows",
                )


def _some(names: Sequence[str]) -> str:
    """The first few keys, and the number of others."""
    return ", ".join(map(shorten, names[:9])) + (f" and {len(names) - 9} more" if len(names) > 9 else "")


def make(slug: str, raw: Mapping[str, Any], preset: Preset | None = None) -> Model:
    """The model of a config's keys. In a preset an unknown key is an error, in a foreign config.json a warning."""
    strange, whole = None, raw
    if preset is None:
        raw, parts, strange = described(raw, modules_by_type(), class_names())
        whole = raw if is_draft(raw) else whole
    else:
        named = preset.sources.left_out
        parts = Parts(preset.sources.part, tuple((key, None) for key in named)) if named else None
        whole = {**(preset.components or {}), "text_config": raw}
        raw = named_keys(raw, modules_by_type())
    if raw.get("model_type") is None:
        raise Problem("model_type is missing", 'add the published one, such as "llama"')
    try:
        if not isinstance(raw["model_type"], str) or not is_known(raw["model_type"]):
            raise unregistered(raw["model_type"]) or without_text(raw) or unknown_type(raw, architectures())
        architecture = find(raw["model_type"])
        if preset is not None:
            check_rope_tables(raw)
        config, unknown = architecture.config.read(raw)
        head = find_head(architecture.name, raw, class_names().get(raw["model_type"], ()))
    except Problem as problem:
        raise (of_whole(strange, raw["model_type"], problem.what) if strange else problem) from None
    if preset is not None and unknown:
        known = [k.key for k in fields_of(architecture.config) if k.key]
        raise Problem(
            f"config.{unknown[0]}: unknown key of {architecture.name}",
            place_above_tables(unknown[0])
            or nearest(unknown[0], known, "remove it, or add it to the architecture's keys"),
        )
    if preset is not None:
        check_sections(raw, config)
        quantization.check(raw)
    if strange and (sizes := sizes_among(unknown, raw)):
        raise of_whole(strange, raw["model_type"], f"unknown keys that name a size: {_some(sizes)}")
    made = Model(slug, raw, architecture, config, preset, tuple(unknown), parts, head, whole)
    if config.looks_both_ways:
        made.trace  # noqa: B018 (raises where a part of it reads from the left to the right)
    return made


@memoized
def paths() -> dict[str, Path]:
    """Every preset's file by slug. Raises `Problem` for a duplicate slug, and for a file that is not in a family's
    folder."""
    depends_on("presets")
    files: dict[str, Path] = {}
    for folder, path in ((one, p) for one in (FOLDER, *also) for p in _files(one)):
        slug = path.stem
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            continue  # an editor's, or a system's
        try:
            check_slug(slug)
            if path.suffix != ".toml":
                raise Problem(f"ends in {path.suffix}", "rename it: a preset's file ends in .toml")
            if folder == FOLDER and path.parent.parent != FOLDER:
                raise Problem("is in no family's folder", f"move it to macros/presets/<family>/{slug}.toml")
            if slug in files:
                raise Problem(f"duplicate slug, also in {place(files[slug])}", "rename one of the two files")
        except Problem as problem:
            raise problem.at(place(path)) from None
        files[slug] = path
    return dict(sorted(files.items()))


def _files(place: Path) -> list[Path]:
    """The presets of a folder, at any depth; or the one file."""
    return [place] if place.suffix == ".toml" and not os.path.isdir(place) else sorted(place.rglob(TOML))


def read_also(folder: Path | None) -> None:
    """Add the presets of this folder, at any depth, or this one file; None for ours alone. Drops cached results of
    those added before."""
    folders = {*also, *([folder] if folder else [])}
    also[:] = [folder] if folder else []
    if folders:
        slugs = {path.stem for one in folders for path in _files(one)}
        invalidate({("presets", None), *(("preset", slug) for slug in slugs)})


def file_of(slug: str) -> Path | None:
    """A preset's file. The caller depends on this preset, not on which others exist."""
    depends_on("preset", slug)
    with untracked():
        return paths().get(slug)


def with_file(wrong: Problem, slug: str) -> Problem:
    """A preset's problem, with its file if nothing more specific is named."""
    path = file_of(slug)
    return wrong if wrong.where or not path else wrong.at(place(path))


@memoized
def preset(slug: str) -> Preset:
    """The preset with this slug. Raises `Problem` with the nearest known slug."""
    path = file_of(slug)
    if path is None:
        raise unknown(slug)
    try:
        described = read_preset(path)
        if path.is_relative_to(FOLDER) and (folder := family_slug(described.family)) != path.parent.name:
            raise Problem(
                f"family = {shorten(described.family)}, and the folder is {shorten(path.parent.name)}",
                f"move the file to macros/presets/{folder}, or correct the family",
            )
        return described
    except Problem as problem:
        raise problem.at(place(path)) from None


@memoized
def readable() -> list[str]:
    """The slugs whose preset can be read; the errors of others are reported where they are used."""
    return [slug for slug in paths() if family_of(slug) is not None]


def family_of(slug: str) -> str | None:
    """A preset's family; None if it cannot be read."""
    try:
        return preset(slug).family
    except Problem:
        return None


def unknown(slug: str) -> Problem:
    """The hint for a slug without a preset: the preset published under that name, or the nearest slug."""
    for known in readable():
        other = preset(known)
        if slug in (other.name, other.hub, *other.aliases):
            return Problem(f"unknown model {shorten(slug)}", f'did you mean "{known}"?')
    otherwise = "neither a preset's slug nor a config.json; the catalog lists the slugs"
    return Problem(f"unknown model {shorten(slug)}", nearest(slug, paths(), otherwise))


@memoized
def model(slug: str) -> Model:
    """The model of a preset's slug, made once per process. Raises `Problem`, also for an undisclosed model."""
    described = preset(slug)
    try:
        if described.config is None:
            raise Problem("its maker has not disclosed its sizes", "only a model with a [config] can be counted")
        return make(slug, described.config, described)
    except Problem as problem:
        raise with_file(problem, slug) from None


def load(name: str) -> Model:
    """The model of a preset's slug, of a path to a `config.json`, or of a folder that holds one. Raises `Problem`."""
    if name in paths():
        return model(name)
    path = Path(name)
    folder = path if os.path.isdir(path) else None
    path = path / "config.json" if folder else path
    if path.suffix != ".json" and not os.path.exists(path):  # nor can be: a name too long for a path
        return model(name)
    try:
        made = make(name, with_format(read_json(path), path.parent))
        made.folder = folder
        return made
    except Problem as problem:
        raise problem.at(str(path)) from None


@cache
def goldens() -> frozenset[str]:
    """The model types whose logits the tests compare with a reference checkpoint."""
    return frozenset(tomllib.loads(read_text(REFERENCE_LOGITS))["model_types"])
