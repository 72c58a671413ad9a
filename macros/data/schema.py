"""What stands in the data, key by key, as JSON Schema: in a model's object, the catalogue and the conformance file.

What a figure is comes from the one list of figures.
"""

from __future__ import annotations

from typing import Any

from ..counting.accelerators import accelerators
from ..counting.figures import BYTES, FIGURES, PARAMETERS
from ..counting.formats import CACHE_BYTES, FORMATS
from .catalogue import SIZES
from .model import VERSION

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number", "minimum": 0}
TEXT: Schema = {"type": "string"}
YES_OR_NO: Schema = {"type": "boolean"}
EXPRESSION: Schema = {"$ref": "#/$defs/expression"}

# As `counting.expressions` writes them.
_EXPRESSION: Schema = {
    "description": "A whole number, a symbol, or an operation and its arguments; every value is a whole number.",
    "anyOf": [
        {"type": "integer"},
        {"type": "string"},
        {
            "type": "array",
            "minItems": 3,
            "prefixItems": [{"enum": ["+", "*", "^", "min", "//", "%"]}],
            "items": EXPRESSION,
        },
    ],
}


def model() -> Schema:
    """Of a model's object: `<slug>.json`, and what `describe --format json` prints."""
    tensor = _array(_said(TEXT, "name"), _said(_list(COUNT), "shape"))
    pattern = _array(
        _said(TEXT, "name, with {i} for the layer and {e} for the expert"),
        _said(_list(COUNT), "shape of one"),
        _or_null(
            {
                "type": "object",
                "propertyNames": {"enum": ["i", "e"]},
                "additionalProperties": _list(_array(COUNT, COUNT, COUNT)),
                "description": "what {i} and {e} stand for: [first, last, step] each; null for one tensor",
            }
        ),
    )
    tensors = {"anyOf": [_list(pattern), _list(tensor)]}
    return {
        "$schema": DIALECT,
        "$id": "model.schema.json",
        "title": "A model",
        **_object(
            version=_said({"const": VERSION}, "of this form"),
            model=_said(TEXT, "the slug, or the path that was asked for"),
            name=TEXT,
            architecture=_said(TEXT, "the forward pass"),
            model_type=_said(TEXT, "the config’s own name for it"),
            part=_said(
                _or_null(_object(described=_or_null(TEXT), left_out=_list(TEXT))),
                "of a config of several parts, the one that is described",
            ),
            unknown_sizes=_said(
                _list(TEXT), "keys that name a size and are not known: what they are of is not counted"
            ),
            parameters=_object(
                **_figures("parameters"),
                stored=_said(COUNT, "numbers in the published file"),
                stored_is_computed=_said(YES_OR_NO, "whether no total of that file is known"),
            ),
            tied=_said(YES_OR_NO, "whether the head is the input table"),
            tensors=_said(tensors, "the trained tensors, in the order of their first use"),
            buffers=_said(tensors, "what the file stores besides"),
            names_verified=_said(YES_OR_NO, "whether the names were compared with the published file’s"),
            kv_cache=_object(**_figures("kv_cache")),
            flops=_object(**_figures("flops")),
            formulas=_formulas(),
            costs=_costs(),
            sources=_said(
                _or_null(
                    _object(
                        **_about(),
                        aliases=_list(TEXT),
                        config=_said(TEXT, "where the sizes come from"),
                        values=_said(
                            {"type": "object", "additionalProperties": TEXT},
                            "where single values of the config are from, by key, those that are not from `config`",
                        ),
                        verified=_said({"type": "string", "format": "date"}, "when that was last looked up"),
                        published=_or_null(
                            _object(
                                parameters=COUNT,
                                exact=_said(YES_OR_NO, "whether it is not rounded"),
                                source=TEXT,
                                extra=_said(_list(_array(TEXT, {"type": "integer"})), "what it counts besides"),
                            )
                        ),
                    )
                ),
                "null for a config.json of one’s own",
            ),
            class_defaults=_said(
                _object(
                    keys=_said(_list(TEXT), "of the config, in its words"),
                    context=_said(YES_OR_NO, "whether the longest context is one"),
                ),
                "values that a class of transformers has when a file leaves them out, for want of a source of the "
                "maker’s; without the sizes that an exact published total holds",
            ),
            warnings=_said(_list(TEXT), "what the costs leave out of account, and contexts beyond the model’s"),
        ),
        "$defs": {"expression": _EXPRESSION},
    }


def catalogue() -> Schema:
    """Of `catalogue.json`."""
    disclosed = "null where the maker has not disclosed the sizes"
    return {
        "$schema": DIALECT,
        "$id": "catalogue.schema.json",
        "title": "The catalogue",
        **_object(
            version=_said({"const": VERSION}, "of this form"),
            models=_list(
                _object(
                    model=_said(TEXT, "the slug"),
                    name=TEXT,
                    **_about(),
                    architecture=_or_null(TEXT),
                    model_type=_or_null(TEXT),
                    sizes=_said(_or_null(_object(**dict.fromkeys(SIZES, _or_null(COUNT)))), disclosed),
                    context=_said(_or_null(COUNT), "tokens that the model was made for"),
                    class_defaults=_said(
                        _or_null(
                            _object(
                                keys=_said(COUNT, "how many values of the config have no source of the maker’s"),
                                context=_said(YES_OR_NO, "whether the longest context is one of them"),
                            )
                        ),
                        disclosed,
                    ),
                    parameters=_said(_or_null(_object(**_figures("parameters"), stored=COUNT)), disclosed),
                    kv_cache=_said(_or_null(_object(**_figures("kv_cache"))), disclosed),
                    flops=_said(_or_null(_object(**_figures("flops"))), disclosed),
                    json=_said(_or_null(TEXT), "the address of the model’s object, from here"),
                    csv=_said(_or_null(TEXT), "the address of its tensors as a table"),
                )
            ),
        ),
    }


def conformance() -> Schema:
    """Of `conformance.json`."""
    return {
        "$schema": DIALECT,
        "$id": "conformance.schema.json",
        "title": "What a calculator must give",
        **_object(
            version=_said({"const": VERSION}, "of this form"),
            contexts=_said(_list(COUNT), "tokens, at which the figures below are given"),
            conventions=_said({"type": "object", "additionalProperties": TEXT}, "what each figure counts, by its key"),
            models=_list(
                _object(
                    model=_said(TEXT, "the slug"),
                    name=TEXT,
                    hub=_said(_or_null(TEXT), "the repository of its weights"),
                    config=_said({"type": "object"}, "the keys of the published config.json that the figures need"),
                    parameters=_object(
                        **_figures("parameters"),
                        stored=_said(COUNT, "numbers in the published file"),
                        stored_is_computed=_said(YES_OR_NO, "whether no total of that file is known"),
                    ),
                    weight_bytes=_said(_object(**dict.fromkeys(FORMATS, COUNT)), "bytes of the weights, by format"),
                    kv_cache=_object(**_figures("kv_cache")),
                    flops=_object(**_figures("flops")),
                )
            ),
        ),
    }


def _about() -> dict[str, Schema]:
    return {
        "family": TEXT,
        "organization": TEXT,
        "released": _said(TEXT, "a date, a month or a year"),
        "hub": _said(_or_null(TEXT), "the repository of its weights"),
        "licence": _said(_or_null(TEXT), "of the weights; null where none is established"),
    }


def _formulas() -> Schema:
    return _said(
        _object(
            symbols=_said({"type": "object", "additionalProperties": COUNT}, "the value of each symbol but T and S"),
            parameters=_said(EXPRESSION, "all parameters"),
            active=_said(EXPRESSION, "those that a token uses"),
            flops=_said(EXPRESSION, "FLOPs of a step of T new tokens that ends at a context of S"),
            cache=_said(
                _list(_object(name=TEXT, elements=EXPRESSION, item_bytes=_or_null(COUNT))),
                "what is kept at a context of S; item_bytes where an element has a size of its own",
            ),
            tensors=_said(
                _list(_array(TEXT, _list(EXPRESSION), EXPRESSION)),
                "name pattern, shape, number of copies, in the order of the collapsed tensors",
            ),
        ),
        "the counts as expressions of the sizes",
    )


def _costs() -> Schema:
    """Figures at each context, in the formats that were asked for."""
    moved = _object(weights_read=COUNT, cache_read=COUNT, cache_written=COUNT, flops_per_byte=NUMBER)
    bound = _object(
        devices=COUNT,
        prefill_seconds=NUMBER,
        prefill_limited_by=TEXT,
        decode_seconds=NUMBER,
        decode_limited_by=TEXT,
        tokens_per_second=NUMBER,
        compute_limits_from_batch=_said(_or_null(COUNT), "null where memory is always the limit"),
    )
    part = _object(
        part=TEXT, kind=_or_null(TEXT), layers=_or_null(COUNT), decode=COUNT, prefill=COUNT, prefill_causal=COUNT
    )
    kept = _object(
        name=TEXT,
        layers=_said(_list(_array(COUNT, COUNT, COUNT)), "[first, last, step] each"),
        reach=_said(_or_null(TEXT), "which tokens are kept; null for a state of fixed size"),
        elements=_said(TEXT, "the formula for reading"),
        item_bytes=COUNT,
        bytes_at=_at(COUNT),
    )
    return _said(
        _object(
            dtype=_said({"enum": list(CACHE_BYTES)}, "of the cache’s elements"),
            weights_format={"enum": list(FORMATS)},
            flops=_object(parts_at=_at(_list(part)), **_figures("costs.flops")),
            cache=_said(_list(kept), "what each kind of layer keeps"),
            weight_bytes=_object(**dict.fromkeys(FORMATS, COUNT)),
            inference_bytes_at=_at({"type": "object", "additionalProperties": COUNT}),
            training_bytes_at=_at({"type": "object", "additionalProperties": COUNT}),
            split_bytes=_said(
                {"type": "object", "additionalProperties": _object(weights=COUNT, cache_at=_at(COUNT))},
                "on the fullest of so many devices",
            ),
            decode_moves_at=_at(moved),
            prefill_moves_at=_at(moved),
            bounds_at=_said(_at(_object(**dict.fromkeys(accelerators(), bound))), "the least times, by accelerator"),
            **_figures("costs"),
        ),
        "keys in _at hold a value for each context",
    )


def _figures(place: str) -> dict[str, Schema]:
    """The figures at a place of the object, each with what the list of figures says of it."""
    listed = {}
    for figure in FIGURES.values():
        if figure.key.rpartition(".")[0] == place:
            said = "; ".join(filter(None, (figure.title, figure.convention)))
            kind = COUNT if figure.unit in (PARAMETERS, BYTES) else NUMBER
            value = _said(_at(kind) if "context" in figure.needs else kind, said)
            listed[figure.key.removeprefix(f"{place}.")] = value | ({"x-optional": True} if figure.of_latents else {})
    return listed


def _said(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def _object(**properties: Schema) -> Schema:
    """A table of these keys and no others, all of them there but those of figures that not every model has."""
    required = [name for name, value in properties.items() if not value.get("x-optional")]
    listed = {name: {k: v for k, v in value.items() if k != "x-optional"} for name, value in properties.items()}
    return {"type": "object", "properties": listed, "required": required, "additionalProperties": False}


def _at(schema: Schema) -> Schema:
    """A value for each context, by its tokens."""
    return {"type": "object", "propertyNames": {"pattern": r"^\d+$"}, "additionalProperties": schema}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _array(*items: Schema) -> Schema:
    return {"type": "array", "prefixItems": list(items), "minItems": len(items), "maxItems": len(items)}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}
