"""Validates the arguments of a macro call against its signature: text, numbers, lists of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from jinja2 import Undefined

from ..engine.errors import Problem, cut, nearest, seen
from ..views.kit import disclosure


class Kind(NamedTuple):
    """A kind of argument: its name and a test."""

    words: str
    fits: Callable[[object], bool]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_switch(value: object) -> bool:
    return isinstance(value, bool)


def _list_of(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, tuple) and all(map(fits, value))


def _dictionary_of(fits: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, Mapping) and all(_is_text(k) and fits(v) for k, v in value.items())


def _several_texts(n: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, tuple) and len(value) == n and all(map(_is_text, value))


_numbers = _list_of(lambda value: isinstance(value, int | float) and not isinstance(value, bool))
_TEXTS = Kind('text, or a list such as ["…", "…"]', lambda value: _is_text(value) or _list_of(_is_text)(value))
_ANY = Kind(
    "text, a whole number or a list of them",
    lambda value: _is_text(value) or _is_whole(value) or _list_of(lambda v: _is_text(v) or _is_whole(v))(value),
)

# By the parameter's annotation; functions check values further.
KINDS = {
    "str": Kind("text in quotes", _is_text),
    "Model": Kind('a preset\'s slug in quotes, such as "llama3-8b"', _is_text),
    "int": Kind("a whole number", _is_whole),
    "float": Kind("a number", lambda value: isinstance(value, (int, float)) and not isinstance(value, bool)),
    "bool": Kind("true or false", _is_switch),
    "bool | int": Kind("true, false or a whole number", lambda value: isinstance(value, int)),
    "object": _ANY,
    "Iterable[str]": _TEXTS,
    "Sequence[str]": _TEXTS,
    "Iterable[str | tuple[str, str]]": Kind(
        'a list of texts, or of pairs such as ["…", "…"]',
        lambda value: _is_text(value) or _list_of(lambda one: _is_text(one) or _several_texts(2)(one))(value),
    ),
    "tuple": Kind("a list of whole numbers such as [1, 8, 64]", _list_of(_is_whole)),
    "Iterable[int]": Kind("a list of whole numbers", _list_of(_is_whole)),
    "tuple[str, str, str]": Kind("a list of three texts", _several_texts(3)),
    "Numbers": Kind("a list of numbers", _numbers),
    "Iterable[Numbers]": Kind("a list of lists of numbers", _list_of(_numbers)),
    "Texts": Kind('a dictionary of texts such as {"…": "…"}', _dictionary_of(_is_text)),
    "BarRows": Kind(
        'a dictionary of formulas such as {"Weights": "2 * m.total"}',
        _dictionary_of(lambda value: _is_text(value) or _dictionary_of(_is_text)(value)),
    ),
    "Stops": Kind(
        'a dictionary of whole numbers such as {"context": [1024, 2048]}', _dictionary_of(_list_of(_is_whole))
    ),
    "Iterable[tuple[str, str]]": Kind('a list of pairs such as [["…", "…"]]', _list_of(_several_texts(2))),
}


def usage(name: str, signature: inspect.Signature) -> str:
    """The signature of a macro, for messages."""
    return f"{name}({', '.join(map(_parameter, signature.parameters.values()))})"


def _parameter(p: inspect.Parameter) -> str:
    if p.kind is p.VAR_KEYWORD:
        return f"**{p.name}"
    return p.name if p.default is p.empty else f"{p.name}={p.default!r}"


def hashable(value: object) -> object:
    """A list as a tuple, recursively, so that a call can be cached."""
    if isinstance(value, Mapping):
        return {name: hashable(one) for name, one in value.items()}
    return tuple(map(hashable, value)) if isinstance(value, list | tuple) else value


def check(name: str, signature: inspect.Signature, args: tuple, kwargs: dict[str, object]) -> inspect.BoundArguments:
    """The arguments by their parameters. Raises `Problem` for a call that does not match the signature, or an argument
    of the wrong kind."""
    try:
        given = signature.bind(*args, **kwargs)
    except TypeError as error:
        unknown = re.search("unexpected keyword argument '(\\w+)'", str(error))
        meant = f"{_meant(unknown[1], signature)} " if unknown else ""
        raise Problem(str(error), f"{meant}write {usage(name, signature)}") from None
    for parameter, value in given.arguments.items():
        p = signature.parameters[parameter]
        for said, one in value.items() if p.kind is p.VAR_KEYWORD else [(parameter, value)]:
            _check_one(said, p, one)
        if parameter == "models" and (twice := _twice(value)):
            raise Problem(f"{twice!r} is in the list twice", "delete one").about(parameter, value)
    return given


def _twice(value: object) -> object:
    """The first text that appears twice in a list."""
    texts = [one for one in value if isinstance(one, str)] if isinstance(value, tuple) else []
    return next((one for n, one in enumerate(texts) if one in texts[:n]), None)


def _meant(word: str, signature: inspect.Signature) -> str:
    """The parameter that a misspelled or shortened name (`ctx`) probably means."""
    names = [name for name, p in signature.parameters.items() if p.kind is not p.VAR_KEYWORD]
    letters = re.compile(".*".join(map(re.escape, word[:20])))
    short = [name for name in names if letters.match(name)]
    return nearest(word, names) or (f'did you mean "{short[0]}"?' if short else "")


def _check_one(said: str, p: inspect.Parameter, value: object) -> None:
    if isinstance(value, Undefined):
        str(value)  # raises Jinja's error for an undefined name
    annotation = str(p.annotation).removesuffix(" | None")
    if value is None and (p.default is None or annotation != str(p.annotation)):
        return
    kind = KINDS[annotation]
    if not kind.fits(value):
        raise Problem(f"expected {kind.words}", "correct the argument").about(said, value)


# Former names of steps, with their current names in the field's terms, for macros that take the name of a step.
STEP_PARAMETERS = frozenset({"part", "what", "step", "station_name"})
DEPRECATED_ROLES = {
    "ask_latents": "latent_queries",
    "average_by_fit": "attention_residuals",
    "carry": "state_update",
    "compress": "compressor",
    "correct": "altup_correct",
    "difference": "differential_lambda",
    "gather_for_head": "reduce_streams",
    "join_streams": "altup_join",
    "keep_groups": "expert_groups",
    "keep_largest": "gaussian_top_k",
    "listen": "conv_stem",
    "look_up_ngrams": "ngram_embedding",
    "mix": "weighted_sum",
    "mix_latents": "latent_weighted_sum",
    "ngram_places": "ngram_hash",
    "or_nothing": "zero_experts",
    "pick_rows": "gather_rows",
    "pick_tokens": "indexer",
    "predict": "altup_predict",
    "profile_bias": "relative_logits",
    "read_values": "latent_values",
    "spread": "expand_streams",
}
GONE_WITH = "0.4.0"  # the version that drops the old names


def with_todays_roles(given: inspect.BoundArguments) -> tuple[inspect.BoundArguments, list[str]]:
    """The arguments, with each step under its current name; and a line for each old name."""
    notes = []
    for name in STEP_PARAMETERS & given.arguments.keys():
        old = given.arguments[name]
        if isinstance(old, str) and old in DEPRECATED_ROLES:
            given.arguments[name] = new = DEPRECATED_ROLES[old]
            notes.append(f'{name} = "{old}" is now called "{new}"; the old name goes with version {GONE_WITH}')
    return given, notes


def beyond_context(given: inspect.BoundArguments) -> str:
    """The error for a context that a model in the call does not support; empty if there is none. A figure in a sentence
    has no mark next to it, as it would have in a table."""
    context = given.arguments.get("context")
    if not isinstance(context, int):
        return ""
    others = next((v for k, v in given.arguments.items() if isinstance(v, dict)), {})
    for slug in (given.arguments.get("model"), *others.values()):
        model = disclosure.model(slug) if isinstance(slug, str) else None
        if model is not None and model.is_beyond(context):
            return f"context = {context}: {model.name} supports {model.longest_context[0]:,} tokens"
    return ""


def arguments_text(args: tuple, kwargs: dict[str, object]) -> str:
    """The arguments of a call, for messages."""
    return cut(seen(", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())])), 80)
