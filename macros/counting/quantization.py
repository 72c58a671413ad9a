"""Reads the `quantization_config` of a config.json, in one module: which modules are stored in which
format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from msgspec.structs import replace

from ..engine.architectures import known
from ..engine.architectures.config import listed
from ..engine.errors import Problem, nearest, shorten
from ..engine.facts import USUAL_MLX
from .formats import FORMATS, Format
from .modules import MEND, Match, Modules
from .quantized import (
    FP8,
    INT4,
    INT8,
    KEY,
    MXFP4,
    NVFP4,
    Keys,
    Quantization,
    inside_of,
    names_of,
    not_covered,
    size_of,
    table_of,
)

MOST_GROUPS = 100  # maximum number of layers with a format of their own
# NVIDIA's Model Optimizer writes it next to config.json.
OTHER_FILE, OTHER_KEY = "hf_quant_config.json", "quantization"

FP8_OF_MATRIX = replace(FP8, block=(), scale_bits=0, matrix_bits=32)
FP8_OF_ROW = replace(FP8, block=(0,))


def read(raw: Keys) -> Quantization | None:
    """The quantization that a config.json states; None if it states none. Raises `Problem` for an unknown one."""
    said: object = raw.get(KEY)
    if said is None:
        for key in ("dtype", "torch_dtype"):
            if raw.get(key) in ("float64", "torch.float64", "double"):
                raise Problem(
                    f"{key} = float64: weights of 64 bits are not covered", "give float32, bfloat16 or float16"
                )
        return None
    keys = table_of(said, KEY)
    method: object = keys.get("quant_method")
    if method is None and keys.get("quant_algo") is not None:
        method = "modelopt"
    elif method is None and keys.get("group_size") is not None:
        method = "mlx"
    if not isinstance(method, str) or method not in METHODS:
        known = ", ".join(METHODS)
        raise Problem(f"{KEY}: quant_method = {shorten(method)} is not known", f"known are {known}; or {MEND}")
    return METHODS[method](keys, raw)


def check(raw: Keys) -> None:
    """Raise `Problem` for an unknown quantization, and for a key in it that looks like a misspelled known one.
    Programs write many keys that change no byte, so any other unknown key is accepted."""
    read(raw)
    for name in table_of(raw[KEY], KEY) if raw.get(KEY) is not None else ():
        if name not in KNOWN_KEYS and (mend := nearest(name, KNOWN_KEYS)):
            raise Problem(f"config.{KEY}.{name}: unknown key", mend)


# The keys that each method uses, and other keys that programs write.
KNOWN_KEYS = frozenset(
    """quant_method quant_algo activation_scheme weight_block_size fmt format scale_fmt expert_dtype store_dtype
    modules_to_not_convert ignored_layers exclude_modules ignore config_groups quantized_layers quantization_status
    bits group_size dynamic mode quant_type include_input_output_embeddings version
    dequantize weight_per_tensor activation_scale_ub kv_cache_scheme kv_cache_quant_algo global_compression_ratio
    sparsity_config transform_config checkpoint_format
    damp_percent desc_act static_groups sym true_sequential lm_head meta model_file_base_name model_name_or_path
    block_name_to_quantize pack_dtype zero_point backend do_fuse exllama_config modules_to_fuse
    load_in_4bit load_in_8bit bnb_4bit_compute_dtype bnb_4bit_quant_storage bnb_4bit_quant_type
    bnb_4bit_use_double_quant llm_int8_enable_fp32_cpu_offload llm_int8_has_fp16_weight llm_int8_skip_modules
    llm_int8_threshold _load_in_4bit _load_in_8bit producer quant_type_kwargs untie_embedding_weights
    global_quant_config layer_quant_config layer_type_quant_config kv_cache_quant_config exclude export algo_config
    quant_mode softmax_quant_spec kv_cache_post_rope
    """.split()
)


def _mxfp4(keys: Keys, raw: Keys) -> Quantization:
    """gpt-oss: only the routed experts."""
    return Quantization(_kept(keys), None, MXFP4)


def _fp8(keys: Keys, raw: Keys) -> Quantization:
    """Blocks with a scale each, or one scale per matrix; in some models with the experts in four bits (DeepSeek V4)."""
    block: object = keys.get("weight_block_size")
    if block is None:
        is_static = keys.get("activation_scheme") == "static"  # each matrix then has a scale for its inputs too
        linear = replace(FP8_OF_MATRIX, matrix_bits=64 if is_static else 32)
    else:
        linear = replace(FP8, block=_block(block, "weight_block_size"))
    expert = linear
    if "fp4" in (raw.get("expert_dtype"), keys.get("expert_dtype")) or keys.get("store_dtype") in ("mxfp4", "fp4"):
        expert = MXFP4
        if keys.get("scale_fmt") == "ue8m0":  # the scales' type; float32 with experts in fp8
            linear = replace(linear, scale_bits=8)
    listed, head = _skipped(keys, "modules_to_not_convert", linear)
    others = _kept({key: value for key, value in keys.items() if key != "modules_to_not_convert"})
    return Quantization((*_layers(keys), *listed, *others), linear, expert, head, gate=linear, transposed=False)


def _skipped(
    keys: Keys, key: str, form: Format | None, ending: str = ""
) -> tuple[tuple[tuple[Modules, Format | None], ...], Format | None]:
    """The modules that transformers leaves unquantized, and the format of a separate head: without a list, it leaves
    out the head; with one, only what the list names (get_modules_to_not_convert and should_convert_module of
    transformers 5.24). `ending` follows a module's name where parameters are looked up."""
    if keys.get(key) is None:
        return (), None
    names = names_of(keys, key)
    return (((Modules(names, Match.STARTS_OR_ENDS, ending), None),) if names else ()), form


def _fp8_of_rows(keys: Keys, raw: Keys) -> Quantization:
    """Llama's own: a scale for each row."""
    return Quantization(_kept(keys), FP8_OF_ROW, FP8_OF_ROW)


def _packed(keys: Keys, raw: Keys) -> Quantization:
    """GPTQ, AWQ: integers, with a float16 scale and a zero point of the same width for each group of a row. For some
    types AWQ also scales an activation."""
    bits = _number(keys, "bits", (2, 3, 4, 8))
    group: object = keys.get("group_size", 128)
    is_gptq = keys.get("quant_method") == "gptq"
    form = replace(
        INT8 if bits == 8 else INT4,
        bits=bits,
        block=(0 if group == -1 else size_of(group, "group_size"),),
        scale_bits=16,
        zero_bits=bits,
        input_bits=32 if is_gptq else 0,  # g_idx, the group of each input, which is stored even without act-order
    )
    head = form if keys.get("lm_head") is True else None
    if not is_gptq:
        # the listed modules, and the head, which is always excluded
        names = names_of(keys, "modules_to_not_convert")
        listed = ((Modules(names, Match.STARTS_OR_ENDS), None),) if names else ()
        rules = (*listed, *_kept(_without(keys, "modules_to_not_convert")))
        this = known(raw.get("model_type"))
        return Quantization(rules, form, form, outside=False, scaled="" if this is None else this.scaled_by_awq)
    linear, inside = form, _inside_of_blocks(keys)
    rules = [*_dynamic(keys, form), *_kept(keys)]
    if inside:
        rules, linear = [*rules, (Modules(inside, Match.ENDS), form)], None
    return Quantization(tuple(rules), linear, linear, head, outside=False, packed=False)


def _without(keys: Keys, key: str) -> Keys:
    return {name: value for name, value in keys.items() if name != key}


def _inside_of_blocks(keys: Keys) -> list[str]:
    """The suffixes of the names that GPTQ quantizes in each layer; empty for all."""
    said: object = keys.get("modules_in_block_to_quantize")
    if said is None:
        return []
    groups = listed(said)
    flat = [name for group in groups or () for name in (listed(group) or [group])]
    if groups is None or not all(isinstance(name, str) for name in flat):
        raise Problem(
            f"{KEY}.modules_in_block_to_quantize = {shorten(said)}: expected lists of names", f"correct it, or {MEND}"
        )
    return flat


def _dynamic(keys: Keys, form: Format) -> list[tuple[Modules, Format | None]]:
    """GPTQModel's `dynamic` patterns. Those starting with `-:` exclude modules and are tried first. Of the others (`+:`
    or no prefix), the first match overrides the bits or group size."""
    said: object = keys.get("dynamic")
    found: list[tuple[Modules, Format | None]] = []
    if said is None:
        return found
    for name, given in sorted(table_of(said, f"{KEY}.dynamic").items(), key=lambda one: not one[0].startswith("-:")):
        expression = f"re:{name.removeprefix('-:').removeprefix('+:')}"
        if name.startswith("-:"):
            found.append((Modules([expression], Match.WHOLE), None))
            continue
        other = table_of(given, f"{KEY}.dynamic.{name}")
        bits = _number({"bits": other.get("bits", form.bits)}, "bits", (2, 3, 4, 8))
        group: object = other.get("group_size", form.block[0] or -1)
        block = (0 if group == -1 else size_of(group, "group_size"),)
        found.append(
            (
                Modules([expression], Match.WHOLE),
                replace(
                    INT8 if bits == 8 else form,
                    bits=bits,
                    zero_bits=bits,
                    block=block,
                    scale_bits=16,
                    input_bits=form.input_bits,
                ),
            )
        )
    return found


def _bitsandbytes(keys: Keys, raw: Keys) -> Quantization:
    """LLM.int8 and NF4, as transformers writes them: every linear layer except the head. Stacked experts are not linear
    layers and stay unquantized; before transformers 5 some were quantized, which the config does not say.

    The JSON that describes each matrix is left out: its length depends on the digits of a mean.
    """
    if keys.get("load_in_8bit") is True:
        form = replace(INT8, name="llm.int8", block=(0,), scale_bits=32, matrix_bits=8)  # SCB, weight_format
    elif keys.get("load_in_4bit") is True:
        kind = keys.get("bnb_4bit_quant_type", "fp4")
        if kind not in ("nf4", "fp4"):
            raise not_covered("bnb_4bit_quant_type", kind)
        form = replace(INT4, name=f"{kind}", block=(64,), scale_bits=32, matrix_bits=16 * 32, is_flat=True, types=())
        if keys.get("bnb_4bit_use_double_quant") is True:
            form = replace(form, name=f"{kind}-dq", scale_bits=8, nested=256, matrix_bits=(16 + 256) * 32)
    else:
        raise not_covered("load_in_4bit", keys.get("load_in_4bit"))
    rules, head = _skipped(keys, "llm_int8_skip_modules", form)
    is_old = str(raw.get("transformers_version", "5")).startswith(("3.", "4."))
    return Quantization(rules, form, head=head, gate=form, experts_unknown=is_old)


def _torchao(keys: Keys, raw: Keys) -> Quantization:
    """torchao's own tensors, as transformers writes them: every linear layer except the head; stacked experts stay
    unquantized.

    Int8Tensor has a float32 scale and an 8-bit zero point for each row or group, Float8Tensor a float32 scale,
    Int4Tensor a 16-bit scale and zero point for each group; Int4Tensor leaves out matrices whose rows do not fit it.
    """
    kinds = table_of(keys.get("quant_type"), f"{KEY}.quant_type")
    said = table_of(kinds.get("default"), f"{KEY}.quant_type.default")
    name, options = said.get("_type"), table_of(said.get("_data", {}), f"{KEY}.quant_type.default._data")
    if len(kinds) > 1 or keys.get("include_input_output_embeddings") or said.get("_version", 2) != 2:
        what = f"{KEY}: quant_type is not version 2 of one configuration for linear layers"
        raise Problem(what, MEND)
    if name == "Int4WeightOnlyConfig" and options.get("int4_packing_format", "plain") == "plain":
        group = size_of(options.get("group_size", 128), "group_size")
        form = replace(INT4, name="torchao-int4", block=(group,), scale_bits=32, is_whole=True)
    elif name in ("Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig"):
        form = replace(INT8, name="torchao-int8", block=_granularity(options), scale_bits=40)
    elif name in ("Float8WeightOnlyConfig", "Float8DynamicActivationFloat8WeightConfig"):
        block = _granularity(options)
        form = replace(FP8_OF_ROW, block=block) if block else FP8_OF_MATRIX
    else:
        raise not_covered("quant_type", name)
    is_old = str(raw.get("transformers_version", "5")).startswith(("3.", "4."))
    rules, head = _skipped(keys, "modules_to_not_convert", form, ".weight")
    return Quantization(rules, form, head=head, gate=form, transposed=False, experts_unknown=is_old)


def _granularity(options: Keys) -> tuple[int, ...]:
    """The unit that shares a scale in torchao: a row, a group of a row, or the matrix (None)."""
    said: object = options.get("granularity")
    if isinstance(said, list):  # of the inputs, and of the weights
        said = cast("list[object]", said)[-1] if said else None
    if said is None:
        return (0,)
    kind = table_of(said, f"{KEY}.granularity")
    if kind.get("_type") == "PerGroup":
        return (size_of(table_of(kind.get("_data"), f"{KEY}.granularity").get("group_size"), "group_size"),)
    if kind.get("_type") in ("PerRow", "PerTensor"):
        return (0,) if kind.get("_type") == "PerRow" else ()
    raise not_covered("granularity", kind.get("_type"))


def _mlx(keys: Keys, raw: Keys) -> Quantization:
    """MLX: a 16-bit scale and bias for each group of a row, also in tables and the head, and with other bits for
    modules that the config lists by name. A matrix whose rows are not whole groups stays unquantized."""
    this = known(raw.get("model_type"))
    rule = USUAL_MLX if this is None else this.mlx
    if keys.get("mode") not in (None, "affine"):
        raise not_covered("mode", keys.get("mode"))
    form = _of_mlx(keys)
    listed: list[tuple[Modules, Format | None]] = []
    for name, said in keys.items():
        if said is False:
            listed.append((Modules([_called_by_mlx(name, keys)]), None))
        elif isinstance(said, Mapping):
            of_name = _of_mlx(table_of(cast("object", said), f"{KEY}.{name}"))
            listed.append((Modules([_called_by_mlx(name, keys)]), of_name))
    if rule.in_8_bits and not listed:
        listed.append((Modules(rule.in_8_bits), _of_mlx({"group_size": 64, "bits": 8})))
    is_known = bool(rule.routers or listed)
    router = form if rule.routers == "linear" or (listed and rule.routers != "own") else None
    return Quantization(tuple(listed), form, form, form, form, router, form, experts_unknown=not is_known)


# The last parts of the names of experts' matrices that MLX stacks; and the halves of a latent's expansion there.
_STACKED = {"gate_proj": "(gate_proj|w1)", "down_proj": "(down_proj|w2)", "up_proj": "(up_proj|w3)"}
_OF_BOTH = "(gate_proj|up_proj|gate_up_proj|w1|w3)"
_HALVES = {"embed_q": "unembed_out", "unembed_out": "embed_q"}


def _called_by_mlx(name: str, keys: Keys) -> str:
    """A name in MLX's list translated to the names in makers' files: an expression for a stack of experts. Raises
    `Problem` where the two halves of one matrix differ."""
    before, _, last = name.rpartition(".")
    if last in _HALVES:
        other = f"{before}.{_HALVES[last]}"
        if keys.get(other) != keys[name]:
            raise Problem(f"{KEY}.{name}: another format than that of {shorten(other)}", MEND)
        return f"{before}.kv_b_proj"
    if not before.endswith(".switch_mlp") or last not in _STACKED:
        return name
    gate, up = (keys.get(f"{before}.{part}") for part in ("gate_proj", "up_proj"))
    return _expression(before, _OF_BOTH if last != "down_proj" and gate == up else _STACKED[last])


def _expression(before: str, last: str) -> str:
    """The expression for one part of all experts in a layer."""
    inside = before.removesuffix(".switch_mlp")
    inside = inside[inside.find("layers.") :] if "layers." in inside else inside
    return "re:.*" + inside.replace(".", r"\.") + rf"\.experts\..*{last}"


def _of_mlx(keys: Keys) -> Format:
    bits = _number(keys, "bits", (2, 3, 4, 5, 6, 8))
    block = (size_of(keys.get("group_size", 64), "group_size"),)
    base = INT8 if bits > 4 else INT4
    return replace(base, name=f"mlx-{bits}bit", bits=bits, block=block, scale_bits=32, is_whole=True)


def _compressed_tensors(keys: Keys, raw: Keys) -> Quantization:
    """Groups of targets, each with its format; none of them applies to the modules in `ignore`.

    A target is the full name of a module, an expression after `re:`, or a class; the most specific one decides, and
    among expressions the first (match_targets of compressed-tensors 0.20.1).
    """
    said: object = keys.get("transform_config")
    if said and inside_of(said, "format") != "dense":
        raise not_covered("transform_config", said)
    sparse = _sparse(keys)
    found = Quantization(transposed=False, lists_tables=True, writes_tied_head=True, splits_experts=True)
    groups = table_of(keys.get("config_groups", {} if sparse else None), f"{KEY}.config_groups")
    if len(groups) > MOST_GROUPS:
        raise not_covered("config_groups", f"{len(groups)} groups")
    modules: dict[str, Format | None] = {}
    for name, one in groups.items():
        group = table_of(one, f"{KEY}.config_groups.{name}")
        form = _of_group(group, keys, raw)
        for target in names_of(group, "targets"):
            if target == "Linear":
                found = replace(found, linear=form, expert=form, head=form, gate=form)
            elif target == "Embedding":
                found = replace(found, table=form)
            elif target[:1].isupper() and "." not in target:
                raise not_covered("targets", target)
            else:
                modules[target] = form
    listed = [
        (Modules([target], Match.WHOLE), form)
        for target, form in sorted(modules.items(), key=lambda one: (one[0].startswith("re:"), one[0]))
    ]
    found = replace(found, listed=(*_ignored(keys), *listed))
    return _of_half(found, sparse, raw) if sparse else found


def _sparse(keys: Keys) -> Keys | None:
    """The keys of matrices that store two of every four elements of a row (compressed-tensors 0.11, and before); None
    without any."""
    said: object = keys.get("sparsity_config")
    if not said or inside_of(said, "format") == "dense":
        return None
    sparse = table_of(said, f"{KEY}.sparsity_config")
    if sparse.get("format") != "sparse-24-bitmask":
        raise not_covered("sparsity_config.format", sparse.get("format"))
    return sparse


def _of_half(found: Quantization, sparse: Keys, raw: Keys) -> Quantization:
    """A quantization whose linear layers are sparse, except for the ignored ones."""
    targets, kept = names_of(sparse, "targets") or ["Linear"], names_of(sparse, "ignore")
    if targets != ["Linear"]:
        raise not_covered("sparsity_config.targets", targets)
    if any(form and form.is_packed for form in (found.linear, *(form for _, form in found.listed))):
        raise not_covered("sparsity_config", "sparse-24-bitmask over packed weights")
    left = [name for modules, form in found.listed if form is None for name in modules.listed]
    if found.linear is not None and sorted(kept) != sorted(left):
        raise not_covered("sparsity_config.ignore", kept)
    types = [str(raw.get(key)).removeprefix("torch.") for key in ("dtype", "torch_dtype")]
    wide = next((FORMATS[name] for name in types if name in ("float32", "float16")), FORMATS["bfloat16"])

    def half(form: Format | None) -> Format:
        form = form or replace(wide, types=())
        return replace(form, name=f"{form.name}-2:4", matrix_bits=form.matrix_bits + 128, is_sparse=True)

    listed = tuple((modules, None if form is None else half(form)) for modules, form in found.listed)
    form = half(found.linear)
    ignored = ((Modules(kept, Match.WHOLE), None),) if kept and found.linear is None else ()
    return replace(found, listed=(*ignored, *listed), linear=form, expert=form, head=form, gate=form)


def _ignored(keys: Keys) -> tuple[tuple[Modules, Format | None], ...]:
    """The modules that compressed-tensors leaves unquantized; a class is one of all linear layers, or of none."""
    names = names_of(keys, "ignore")
    if "Linear" in names:
        raise not_covered("ignore", "Linear")
    return ((Modules(names, Match.WHOLE), None),) if names else ()


# The formats of compressed-tensors, in the order in which it tries them: (bits, type, group size) of weights.
_FLOATS = {4: "4 float", 6: "6 float", 8: "8 float"}


def _of_group(group: Keys, keys: Keys, raw: Keys) -> Format | None:
    """The format of a group of compressed-tensors; None if its weights are not quantized."""
    said: object = group.get("weights")
    if said is None:
        return None
    weights = table_of(said, f"{KEY}.config_groups.weights")
    bits, kind = _number(weights, "num_bits", range(1, 9)), weights.get("type", "int")
    group_size: object = weights.get("group_size")
    if kind not in ("int", "float") or (kind == "float" and bits not in _FLOATS):
        raise not_covered("config_groups.weights", f"{bits} bits of type {kind}")
    if weights.get("dynamic"):
        raise not_covered("config_groups.weights.dynamic", weights.get("dynamic"))
    packing = _packing(bits, str(kind), group, keys)
    inputs: object = group.get("input_activations")
    if packing in ("mxfp4-pack-quantized", "mxfp6-pack-quantized", "mxfp8-quantized"):
        return replace(
            MXFP4, name=f"mxfp{bits}", bits=bits, types=("fp8",) if bits > 4 else MXFP4.types, block=(32,), scale_bits=8
        )
    if packing == "nvfp4-pack-quantized":
        scales = 64 if inputs else 32  # scales of the matrix and of its inputs
        return replace(NVFP4, block=(size_of(group_size, "group_size"),), matrix_bits=scales)
    is_packed = packing == "pack-quantized"
    scale = 32 if any(str(raw.get(key)).endswith("float32") for key in ("dtype", "torch_dtype")) else 16
    is_symmetric = weights.get("symmetric", True) is not False
    extra = sum(_static(group.get(f"{which}_activations"), scale) for which in ("input", "output"))
    if is_packed:  # the shape, as two integers: the library's have 64 bits, Moonshot's 32
        extra += 128 if keys.get("version") is not None else 64
    form = replace(
        FP8 if kind == "float" else INT4 if bits <= 4 else INT8,
        bits=bits if is_packed else 8,
        name=("fp8" if kind == "float" else f"int{bits}"),
        is_packed=is_packed,
        input_bits=32 if weights.get("actorder") == "group" and str(keys.get("version", "")) < "0.12" else 0,
    )
    strategy: object = weights.get("strategy") or ("tensor" if group_size is None else "group")
    if strategy == "tensor":
        return replace(form, block=(), scale_bits=0, matrix_bits=extra + scale + (0 if is_symmetric else 8))
    if strategy == "channel":
        block: tuple[int, ...] = (0,)
    elif strategy == "block":
        block = _block(weights.get("block_structure"), "block_structure")
    elif strategy in ("group", "tensor_group"):
        size: object = group_size
        block = (0 if size == -1 else size_of(size, "group_size"),)
    else:
        raise not_covered("config_groups.weights.strategy", strategy)
    if is_symmetric:
        return replace(form, block=block, scale_bits=scale, matrix_bits=extra)
    if is_packed and len(block) == 1:
        return replace(form, block=block, scale_bits=scale, zero_bits=bits, matrix_bits=extra)
    return replace(form, block=block, scale_bits=scale + 8, matrix_bits=extra)


PACKINGS = (
    *("pack-quantized", "int-quantized", "float-quantized", "naive-quantized", "nvfp4-pack-quantized"),
    *("mxfp4-pack-quantized", "mxfp6-pack-quantized", "mxfp8-quantized"),
)


def _packing(bits: int, kind: str, group: Keys, keys: Keys) -> str:
    """How compressed-tensors stores the weights of a group: as the config says, or as it would choose itself."""
    for said in (group.get("format"), keys.get("format")):
        if said is not None and said not in (*PACKINGS, "mixed-precision"):
            raise not_covered("format", said)
        if isinstance(said, str) and said in PACKINGS:
            return said
    weights = table_of(group.get("weights"), f"{KEY}.config_groups.weights")
    size: object = weights.get("group_size")
    if kind == "float" and bits < 8:
        return f"mxfp{bits}-pack-quantized" if size == 32 or bits == 6 else "nvfp4-pack-quantized"
    if kind == "float":
        is_mx = size == 32 and "uint8" in str(weights.get("scale_dtype"))
        return "mxfp8-quantized" if is_mx else "float-quantized"
    return "int-quantized" if group.get("input_activations") is not None else "pack-quantized"


def _static(said: object, scale: int) -> int:
    """Bits of the scale of activations that is stored for each matrix; 0 where it is computed at run time."""
    if not isinstance(said, Mapping) or cast("Keys", said).get("dynamic") is not False:
        return 0
    activations = cast("Keys", said)
    if activations.get("strategy", "tensor") != "tensor":
        raise not_covered("activations.strategy", activations.get("strategy"))
    return scale + (0 if activations.get("symmetric", True) is not False else 8)


def _modelopt(keys: Keys, raw: Keys) -> Quantization:
    """NVIDIA's Model Optimizer: one algorithm for all linear layers except the excluded ones, or one for each listed
    layer."""
    listed = _layers(keys)
    kept = _kept(keys)
    algorithm: object = keys.get("quant_algo")
    if algorithm == "MIXED_PRECISION" and listed:
        return Quantization((*listed, *kept))
    if algorithm is None and keys.get("config_groups") is not None:
        return _compressed_tensors(keys, raw)
    form = _of_algorithm(algorithm, keys)
    return Quantization((*listed, *kept), form, form)


def _of_algorithm(name: object, keys: Keys) -> Format:
    """The format of a Model Optimizer algorithm, with float32 scales for matrices and for their inputs."""
    if name == "FP8":
        return replace(FP8_OF_MATRIX, matrix_bits=64)
    if name == "FP8_PER_CHANNEL_PER_TOKEN":
        return FP8_OF_ROW
    if name in ("FP8_PB_WO", "FP8_2D_BLOCKWISE_WEIGHT_ONLY"):
        return FP8
    if name == "MXFP8":
        return replace(FP8, block=(32,), scale_bits=8)
    if name in ("NVFP4", "W4A16_NVFP4"):
        group = size_of(keys.get("group_size", 16), "group_size")
        return replace(NVFP4, block=(group,), matrix_bits=64 if name == "NVFP4" else 32)
    raise not_covered("quant_algo", name)


def _quark(keys: Keys, raw: Keys) -> Quantization:
    from .quark import read as made  # a browser loads these rules only for such a config

    return made(keys, raw)


METHODS: dict[str, Callable[[Keys, Keys], Quantization]] = {
    "mxfp4": _mxfp4,
    "fp8": _fp8,
    "fbgemm_fp8": _fp8_of_rows,
    "compressed-tensors": _compressed_tensors,
    "modelopt": _modelopt,
    "gptq": _packed,
    "awq": _packed,
    "bitsandbytes": _bitsandbytes,
    "mlx": _mlx,
    "torchao": _torchao,
    "quark": _quark,
}


# --- what several of them share ---------------------------------------------------------------------------------------

KEPT = ("modules_to_not_convert", "ignored_layers", "exclude_modules", "ignore")


def _kept(keys: Keys) -> tuple[tuple[Modules, Format | None], ...]:
    """The modules that are not quantized, whatever the list is called; those in `ignore` only if no list names the
    quantized layers, since next to such a list it has another meaning."""
    lists = KEPT[:3] if keys.get("quantized_layers") is not None else KEPT
    names = [name for key in lists for name in names_of(keys, key)]
    return ((Modules(names), None),) if names else ()


def _layers(keys: Keys) -> tuple[tuple[Modules, Format | None], ...]:
    """The layers that are listed individually, by their formats."""
    said: object = keys.get("quantized_layers")
    if said is None:
        return ()
    by_format: dict[Format, list[str]] = {}
    for name, one in table_of(said, f"{KEY}.quantized_layers").items():
        layer = table_of(one, f"{KEY}.quantized_layers.{name}")
        by_format.setdefault(_of_algorithm(layer.get("quant_algo"), layer), []).append(name)
    return tuple((Modules(names), form) for form, names in by_format.items())


def _number(keys: Keys, key: str, known: Iterable[int]) -> int:
    value: object = keys.get(key)
    for number in known:
        if value == number and value is not True:
            return number
    raise not_covered(key, value)


def _block(value: object, key: str) -> tuple[int, ...]:
    """Rows and columns of a block."""
    sides = listed(value) or []
    if len(sides) != 2:
        raise Problem(f"{KEY}.{key} = {shorten(value)}: expected two whole numbers", f"correct the value, or {MEND}")
    return (size_of(sides[0], key), size_of(sides[1], key))
