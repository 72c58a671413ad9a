"""The data, key by key, as JSON Schema: a model's object, the catalog and the conformance file.

The definition of each figure comes from the list of figures.
"""

from __future__ import annotations

from typing import Any

from ..catalogue.predictions import AT
from ..counting.accelerators import accelerator, common
from ..counting.engines import names as engines
from ..counting.figures import BYTES, FIGURES, PARAMETERS
from ..counting.formats import CACHE_BYTES, FORMATS, WEIGHTS
from ..counting.gguf_types import FORMATS as GGUF
from ..counting.quantizers import QUANTIZERS
from ..counting.splits import Split
from .catalogue import SIZES
from .costs import CHECKED_ON
from .model import VERSION
from .training import LORA, TERMS

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
    """The schema of a model's object: `<slug>.json`, and the output of `describe --format json`."""
    tensor = _array(_said(TEXT, "name"), _said(_list(COUNT), "shape"))
    pattern = _array(
        _said(TEXT, "name, with {i} for the layer and {e} for the expert"),
        _said(_list(COUNT), "shape of one"),
        _or_null(
            {
                "type": "object",
                "propertyNames": {"enum": ["i", "e"]},
                "additionalProperties": _list(_array(COUNT, COUNT, COUNT)),
                "description": "the values of {i} and {e}, each as [first, last, step]; null for a single tensor",
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
            model=_said(TEXT, "the slug, or the path that was given"),
            name=TEXT,
            architecture=_said(TEXT, "the forward pass"),
            model_type=_said(TEXT, "the config’s own name for it"),
            part=_said(
                _or_null(_object(described=_or_null(TEXT), left_out=_list(TEXT))),
                "for a config with several parts, the one that is described",
            ),
            unknown_sizes=_said(_list(TEXT), "unknown keys that name a size; whatever they describe is not counted"),
            parameters=_object(
                **_figures("parameters"),
                stored=_said(COUNT, "numbers in the published file"),
                stored_is_computed=_said(YES_OR_NO, "true if no total of that file is known"),
            ),
            tied=_said(YES_OR_NO, "whether the LM head is the token embedding"),
            tensors=_said(tensors, "the trained tensors, in the order of their first use"),
            buffers=_said(tensors, "other tensors that the file stores"),
            names_verified=_said(YES_OR_NO, "whether the names were compared with the published file’s"),
            weights=_said(_weights(), "as stored in the requested format, here bfloat16"),
            kv_cache=_object(**_figures("kv_cache")),
            flops=_object(**_figures("flops")),
            formulas=_formulas(),
            costs=_costs(),
            sources=_said(
                _or_null(
                    _object(
                        **_about(),
                        aliases=_list(TEXT),
                        config=_said(TEXT, "source of the sizes"),
                        values=_said(
                            {"type": "object", "additionalProperties": TEXT},
                            "sources of single values that are not from `config`, by key",
                        ),
                        verified=_said({"type": "string", "format": "date"}, "date of the last lookup"),
                        headlines=_said(
                            _list(
                                _object(
                                    size=_said(TEXT, "at its own digits; A before it: active parameters"),
                                    counts=_said(_list(TEXT), "the counts that give it, of several any; or none"),
                                    source=TEXT,
                                    address=_or_null(TEXT),
                                    read=_or_null({"type": "string", "format": "date"}),
                                )
                            ),
                            "published sizes, and the counts that give them",
                        ),
                        published=_or_null(
                            _object(
                                parameters=COUNT,
                                exact=_said(YES_OR_NO, "whether it is not rounded"),
                                source=TEXT,
                                extra=_said(_list(_array(TEXT, {"type": "integer"})), "what it counts in addition"),
                            )
                        ),
                    )
                ),
                "null for a config.json of your own",
            ),
            class_defaults=_said(
                _object(
                    keys=_said(_list(TEXT), "keys of the config, as named there"),
                    context=_said(YES_OR_NO, "whether the longest context is one of them"),
                ),
                "values taken from the defaults of a transformers class, because no source of the maker gives them; "
                "without the sizes that an exact published total confirms",
            ),
            warnings=_said(_list(TEXT), "costs that are not counted, and contexts beyond the model’s"),
            components=_components(tensors) | {"x-optional": True},
        ),
        "$defs": {"expression": _EXPRESSION},
    }


def _components(tensors: Schema) -> Schema:
    """The towers beside a text part."""
    seen = _object(
        width=_said(COUNT, "of an image, in pixels") | {"x-optional": True},
        height=COUNT | {"x-optional": True},
        seconds=_said(NUMBER, "of a sound") | {"x-optional": True},
        residues=_said(COUNT, "of a protein: its amino acids") | {"x-optional": True},
        pieces=_said(COUNT, "read one by one: tiles of an image, chunks of a sound"),
        patches=_said(COUNT, "of all pieces; of a sound, moments; of a protein, tokens"),
        tokens=_said(COUNT, "places in the text, or vectors that its layers look at"),
        flops=_said(COUNT, "of the tower, once per image, sound or protein"),
    )
    return _said(
        _object(
            parameters=_said(COUNT, "of the text part and the towers"),
            parameters_with_prediction=_said(COUNT, "of the text part and the modules for multi-token prediction"),
            counts=_said(
                {"type": "object", "additionalProperties": COUNT},
                "every count that a published size may be, by its name in a preset",
            ),
            not_counted=_said(_list(TEXT), "other parts of the config"),
            prediction=_said(
                _or_null(
                    _object(
                        part=_said(TEXT, "the key in the config"),
                        modules=COUNT,
                        parameters=COUNT,
                        tensors=tensors,
                        buffers=tensors,
                        draft_flops_at=_said(_object(**{str(AT): COUNT}), "of each module once, by the context"),
                        cache_bytes_per_token=COUNT,
                    )
                ),
                "the modules for multi-token prediction",
            ),
            towers=_list(
                _object(
                    part=_said(TEXT, "the key in the config"),
                    name=TEXT,
                    architecture=_said(TEXT, "the forward pass"),
                    reads={"enum": ["image", "sound", "protein"]},
                    parameters=COUNT,
                    tensors=tensors,
                    buffers=tensors,
                    inputs=_list(seen),
                    unknown_keys=_list(TEXT),
                )
            ),
        ),
        "the towers beside the text part, with `--components`",
    )


def catalogue() -> Schema:
    """The schema of `catalogue.json`."""
    disclosed = "null where the maker has not disclosed the sizes"
    return {
        "$schema": DIALECT,
        "$id": "catalogue.schema.json",
        "title": "The catalog",
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
                                keys=_said(COUNT, "number of config values without a source of the maker’s"),
                                context=_said(YES_OR_NO, "whether the longest context is one of them"),
                            )
                        ),
                        disclosed,
                    ),
                    parameters=_said(_or_null(_object(**_figures("parameters"), stored=COUNT)), disclosed),
                    kv_cache=_said(_or_null(_object(**_figures("kv_cache"))), disclosed),
                    flops=_said(_or_null(_object(**_figures("flops"))), disclosed),
                    json=_said(_or_null(TEXT), "the address of the model’s object, relative to this file"),
                    csv=_said(_or_null(TEXT), "the address of its tensors as a table"),
                )
            ),
        ),
    }


def conformance() -> Schema:
    """The schema of `conformance.json`."""
    return {
        "$schema": DIALECT,
        "$id": "conformance.schema.json",
        "title": "The right answers of a calculator",
        **_object(
            version=_said({"const": VERSION}, "of this form"),
            contexts=_said(_list(COUNT), "context lengths of the figures below, in tokens"),
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
                    published_weight_bytes=_said(COUNT, "bytes of the weights in their published formats"),
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


def _weights() -> Schema:
    return _object(
        format={"enum": list(WEIGHTS)},
        bytes=_said(COUNT, "of all tensors; of a GGUF file without its header and tokenizer"),
        bits_per_weight={"type": "number"},
        gguf_architecture=_said(_or_null(TEXT), "llama.cpp’s name of the architecture, for a GGUF format"),
        needs_importance_matrix=_said(
            YES_OR_NO, "whether llama.cpp makes the GGUF format only with an importance matrix"
        ),
        tensors=_said(
            _list(_array(TEXT, TEXT, COUNT)),
            "name, type, bytes; for a pattern, of all copies of one type; for a GGUF format, under its names",
        ),
        layers=_said(
            _or_null(_list(_or_null(_list(_array(COUNT, COUNT, COUNT))))),
            "the layers of each row of patterns, as [first, last, step]; null if every tensor is listed",
        ),
    )


def _formulas() -> Schema:
    return _said(
        _object(
            symbols=_said({"type": "object", "additionalProperties": COUNT}, "the value of each symbol except T and S"),
            parameters=_said(EXPRESSION, "all parameters"),
            active=_said(EXPRESSION, "parameters that a token uses"),
            flops=_said(EXPRESSION, "FLOPs of a step of T new tokens that ends at a context of S"),
            cache=_said(
                _list(_object(name=TEXT, elements=EXPRESSION, item_bytes=_or_null(COUNT))),
                "elements cached at a context of S; item_bytes if an element has its own size",
            ),
            tensors=_said(
                _list(_array(TEXT, _list(EXPRESSION), EXPRESSION)),
                "name pattern, shape, number of copies, in the order of the collapsed tensors",
            ),
        ),
        "the counts as expressions of the sizes",
    )


def _costs() -> Schema:
    """Figures at each context, in the requested formats."""
    moved = _object(weights_read=COUNT, cache_read=COUNT, cache_written=COUNT, flops_per_byte=NUMBER)
    split = _said(_object(**dict.fromkeys(Split().degrees, COUNT)), "the degrees of parallelism")
    bound = _object(
        devices=_said(_or_null(COUNT), "the fewest devices that hold it; null if none of the tried splits does"),
        split=_or_null(split),
        prefill_seconds=_or_null(NUMBER),
        prefill_limited_by=_or_null(TEXT),
        decode_seconds=_or_null(NUMBER),
        decode_limited_by=_or_null(TEXT),
        tokens_per_second=_or_null(NUMBER),
        prefill_joules=_said(_or_null(NUMBER), "at the limit of the devices' power; null where no source states it"),
        decode_joules=_or_null(NUMBER),
        compute_limits_from_batch=_said(_or_null(COUNT), "null where memory is always the limit"),
    )
    part = _object(
        part=TEXT, kind=_or_null(TEXT), layers=_or_null(COUNT), decode=COUNT, prefill=COUNT, prefill_causal=COUNT
    )
    kept = _object(
        name=TEXT,
        layers=_said(_list(_array(COUNT, COUNT, COUNT)), "[first, last, step] each"),
        reach=_said(_or_null(TEXT), "which tokens are kept; null for a state of fixed size"),
        elements=_said(TEXT, "the formula, for people to read"),
        item_bytes=NUMBER,
        bytes_at=_at(COUNT),
    )
    return _said(
        _object(
            dtype=_said({"enum": list(CACHE_BYTES)}, "of the cache’s elements"),
            weights_format={"enum": list(WEIGHTS)},
            flops=_object(parts_at=_at(_list(part)), **_figures("costs.flops")),
            cache=_said(_list(kept), "what each kind of layer caches"),
            weight_bytes=_said(_object(**dict.fromkeys(FORMATS, COUNT)), "with every matrix in the format"),
            published_weights=_said(
                _or_null(
                    _object(
                        formats=_said(TEXT, "in words"),
                        is_stated=_said(YES_OR_NO, "whether the config says so; without, bfloat16"),
                        bytes=COUNT,
                        tensors=_said(
                            _list(_array(TEXT, _list(_array(TEXT, COUNT)), COUNT)),
                            "name pattern, copies in each format, bytes with scales",
                        ),
                    )
                ),
                "the weights in their published formats; null if these are not known",
            ),
            quantizer_bytes=_said(
                _object(**dict.fromkeys(QUANTIZERS, _or_null(COUNT))),
                "as written by GPTQ, AWQ, bitsandbytes, compressed-tensors, torchao and MLX; null if not known",
            ),
            gguf_bytes=_said(
                _or_null(_object(**dict.fromkeys(GGUF, COUNT))),
                "all tensors of a GGUF file, by format, without an importance matrix; null if llama.cpp has no "
                "such file",
            ),
            inference_bytes_at=_at(_terms()),
            training_bytes_at=_at(_terms()),
            split_bytes=_said(
                {
                    "type": "object",
                    "additionalProperties": _object(
                        split=split,
                        weights=COUNT,
                        cache_at=_at(COUNT),
                        sent=_said(NUMBER, "that one device sends for a token, the stages added up"),
                        total_sent=_said(NUMBER, "that all devices send for a token"),
                    ),
                },
                "on the fullest device, by number of devices, if the sizes allow a split",
            ),
            engine_bytes=_said(
                _object(
                    context=_said(COUNT, "tokens of the one sequence"),
                    memory_bytes=_said(COUNT, "of the machine, by which vLLM chooses its batch"),
                    **dict.fromkeys(engines(), _or_null(_terms())),
                ),
                "exact terms of what engines hold beside the weights (cache, state, prompt, outputs); null where an "
                "engine’s cache of the model is not known",
            ),
            lora=_said(
                _object(
                    **{
                        name.replace("-", "_"): _or_null(
                            _object(
                                rank=COUNT,
                                target_modules=_list(TEXT),
                                exclude_modules=_list(TEXT),
                                parameters=COUNT,
                            )
                        )
                        for name in LORA
                    }
                ),
                "parameters of adapters as PEFT makes them, on its default targets and on every linear layer; null "
                "where there are none",
            ),
            zero3_bytes=_said(
                _or_null(
                    _object(
                        devices=COUNT,
                        sequence=COUNT,
                        micro_batch=COUNT,
                        optimizer=TEXT,
                        bytes=_object(**{name.replace(" ", "_"): COUNT for name in TERMS}),
                        total=COUNT,
                    )
                ),
                "on each device in full training under ZeRO-3, by term; null where that is not known",
            ),
            decode_moves_at=_at(moved),
            prefill_moves_at=_at(moved),
            bounds_at=_said(_at(_object(**dict.fromkeys(common(), bound))), "the least times, by accelerator"),
            throughput_at=_said(
                _at(_object(**dict.fromkeys(common(), _at(NUMBER)))),
                "tokens per second at best on the devices of bounds_at, by accelerator and batch size, up to the "
                "largest that fits",
            ),
            verify_ratio_at=_said(
                _at(_at(_at(NUMBER))),
                f"for speculative decoding on the devices of bounds_at, {accelerator(CHECKED_ON).name}: the least time "
                "of a step that checks so many draft tokens, divided by that of a decoding step, by batch size and "
                "number of draft tokens",
            ),
            **_figures("costs"),
        ),
        "keys that end in _at have a value for each context",
    )


def _terms() -> Schema:
    return {"type": "object", "additionalProperties": COUNT}


def _figures(place: str) -> dict[str, Schema]:
    """The figures at a place of the object, each with its definition from the list of figures."""
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
    """A table of exactly these keys, all required except the figures that not every model has."""
    required = [name for name, value in properties.items() if not value.get("x-optional")]
    listed = {name: {k: v for k, v in value.items() if k != "x-optional"} for name, value in properties.items()}
    return {"type": "object", "properties": listed, "required": required, "additionalProperties": False}


def _at(schema: Schema) -> Schema:
    """A value for each context, by its tokens, or for each of other numbers."""
    return {"type": "object", "propertyNames": {"pattern": r"^\d+$"}, "additionalProperties": schema}


def _list(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _array(*items: Schema) -> Schema:
    return {"type": "array", "prefixItems": list(items), "minItems": len(items), "maxItems": len(items)}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}
