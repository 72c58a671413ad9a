"""Reads the `quantization_config` of a config.json: which modules are stored in which format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from ..engine.architectures.config import listed
from ..engine.errors import Problem, nearest, shorten
from .formats import FORMATS, Format
from .modules import MEND, Modules

Keys = Mapping[str, Any]

KEY = "quantization_config"
MOST_GROUPS = 100  # of layers with a format each
# The files of NVIDIA's Model Optimizer say it beside config.json.
OTHER_FILE, OTHER_KEY = "hf_quant_config.json", "quantization"

FP8, MXFP4, NVFP4, INT4, INT8 = (FORMATS[name] for name in ("fp8", "mxfp4", "nvfp4", "int4", "int8"))
FP8_OF_MATRIX = replace(FP8, block=(), scale_bits=0, matrix_bits=32)
FP8_OF_ROW = replace(FP8, block=(0,))


class Quantization(Struct, frozen=True, dict=True):
    """The formats of a checkpoint: for listed modules, in order, the first list that names them; then for other linear
    layers, for routed experts, for the head, for embedding tables, for routers, for gates of one row. None is the
    format of everything that is not quantized.

    `transposed`: also linear layers that are stored [in, out]. `outside`: also those outside of the layers. If
    `experts_unknown`, the file's routed experts depend on more than the config says.
    """

    listed: tuple[tuple[Modules, Format | None], ...] = ()
    linear: Format | None = None
    expert: Format | None = None
    head: Format | None = None
    table: Format | None = None
    router: Format | None = None
    gate: Format | None = None
    transposed: bool = True
    outside: bool = True
    experts_unknown: bool = False

    @cached_property
    def has_numbers(self) -> bool:
        """Whether a list names a layer by its number."""
        return any(modules.has_numbers for modules, _ in self.listed)

    @cached_property
    def has_members(self) -> bool:
        """Whether a list names an expert by its number."""
        return any(modules.has_members for modules, _ in self.listed)


def read(raw: Keys) -> Quantization | None:
    """The quantization that a config.json states; None if it states none. Raises `Problem` for an unknown one."""
    said: object = raw.get(KEY)
    if said is None:
        return None
    keys = _table(said, KEY)
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
    """Raise `Problem` for an unknown quantization, and for a key of it that is nearly a known one. Programs write many
    that change no byte, so that one that is like none is taken as such."""
    read(raw)
    for name in _table(raw[KEY], KEY) if raw.get(KEY) is not None else ():
        if name not in KNOWN_KEYS and (mend := nearest(name, KNOWN_KEYS)):
            raise Problem(f"config.{KEY}.{name}: unknown key", mend)


# Keys that a method reads here, and those that programs write besides.
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
    """.split()
)


def _mxfp4(keys: Keys, raw: Keys) -> Quantization:
    """gpt-oss: routed experts alone."""
    return Quantization(_kept(keys), None, MXFP4)


def _fp8(keys: Keys, raw: Keys) -> Quantization:
    """Blocks with a scale each, or one scale for a matrix; in some models with the experts in four bits (DeepSeek
    V4)."""
    block: object = keys.get("weight_block_size")
    if block is None:
        is_static = keys.get("activation_scheme") == "static"  # then each matrix has a scale for its inputs too
        linear = replace(FP8_OF_MATRIX, matrix_bits=64 if is_static else 32)
    else:
        linear = replace(FP8, block=_block(block, "weight_block_size"))
    expert = linear
    if "fp4" in (raw.get("expert_dtype"), keys.get("expert_dtype")) or keys.get("store_dtype") in ("mxfp4", "fp4"):
        expert = MXFP4
        if keys.get("scale_fmt") == "ue8m0":  # stored as such; with experts in fp8 as float32
            linear = replace(linear, scale_bits=8)
    return Quantization((*_layers(keys), *_kept(keys)), linear, expert)


def _fp8_of_rows(keys: Keys, raw: Keys) -> Quantization:
    """Llama's own: a scale for each row."""
    return Quantization(_kept(keys), FP8_OF_ROW, FP8_OF_ROW)


def _packed(keys: Keys, raw: Keys) -> Quantization:
    """GPTQ, AWQ: whole numbers, with a float16 scale and a zero point of the same width for each group of a row."""
    bits = _number(keys, "bits", (2, 3, 4, 8))
    group: object = keys.get("group_size", 128)
    is_gptq = keys.get("quant_method") == "gptq"
    form = replace(
        INT8 if bits == 8 else INT4,
        bits=bits,
        block=(0 if group == -1 else _size(group, "group_size"),),
        scale_bits=16,
        zero_bits=bits,
        input_bits=32 if is_gptq else 0,  # to which group an input belongs: g_idx, which stands also without act-order
    )
    left_out: list[str] = []
    dynamic: object = keys.get("dynamic")
    for name in _table(dynamic, f"{KEY}.dynamic") if dynamic is not None else ():
        if not name.startswith("-:"):
            raise _unknown("dynamic", name)
        left_out.append(f"re:{name.removeprefix('-:')}")
    rules = (((Modules(left_out), None),) if left_out else ()) + _kept(keys)
    return Quantization(rules, form, form, form if keys.get("lm_head") is True else None, outside=False)


def _bitsandbytes(keys: Keys, raw: Keys) -> Quantization:
    """LLM.int8 and NF4, as transformers writes them: every linear layer except the head. Stacked experts are not linear
    layers, and stay as they are; before transformers 5 some were quantized, which the config does not say.

    The JSON that describes each matrix is left out: its length depends on the digits of a mean.
    """
    if keys.get("load_in_8bit") is True:
        form = replace(INT8, name="llm.int8", block=(0,), scale_bits=32, matrix_bits=8)  # SCB, weight_format
    elif keys.get("load_in_4bit") is True:
        kind = keys.get("bnb_4bit_quant_type", "fp4")
        if kind not in ("nf4", "fp4"):
            raise _unknown("bnb_4bit_quant_type", kind)
        form = replace(INT4, name=f"{kind}", block=(64,), scale_bits=32, matrix_bits=16 * 32, is_flat=True, types=())
        if keys.get("bnb_4bit_use_double_quant") is True:
            form = replace(form, name=f"{kind}-dq", scale_bits=8, nested=256, matrix_bits=(16 + 256) * 32)
    else:
        raise _unknown("load_in_4bit", keys.get("load_in_4bit"))
    skipped = _names(keys, "llm_int8_skip_modules")
    rules = ((Modules(skipped), None),) if skipped else ()
    is_old = str(raw.get("transformers_version", "5")).startswith(("3.", "4."))
    return Quantization(rules, form, gate=form, experts_unknown=is_old)


def _torchao(keys: Keys, raw: Keys) -> Quantization:
    """torchao's own tensors, as transformers writes them: every linear layer but the head; stacked experts as they are.

    Int8Tensor has a float32 scale and a zero point of 8 bits for each row or group, Float8Tensor a float32 scale,
    Int4Tensor a scale and a zero point in 16 bits for each group, with which matrices of other rows are left out.
    """
    kinds = _table(keys.get("quant_type"), f"{KEY}.quant_type")
    said = _table(kinds.get("default"), f"{KEY}.quant_type.default")
    name, options = said.get("_type"), _table(said.get("_data", {}), f"{KEY}.quant_type.default._data")
    if len(kinds) > 1 or keys.get("include_input_output_embeddings") or said.get("_version", 2) != 2:
        raise _unknown("quant_type", "another layout than that of version 2, for linear layers alone")
    if name == "Int4WeightOnlyConfig" and options.get("int4_packing_format", "plain") == "plain":
        group = _size(options.get("group_size", 128), "group_size")
        form = replace(INT4, name="torchao-int4", block=(group,), scale_bits=32, is_whole=True)
    elif name in ("Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig"):
        form = replace(INT8, name="torchao-int8", block=_granularity(options), scale_bits=40)
    elif name in ("Float8WeightOnlyConfig", "Float8DynamicActivationFloat8WeightConfig"):
        block = _granularity(options)
        form = replace(FP8_OF_ROW, block=block) if block else FP8_OF_MATRIX
    else:
        raise _unknown("quant_type", name)
    is_old = str(raw.get("transformers_version", "5")).startswith(("3.", "4."))
    return Quantization(_kept(keys), form, gate=form, transposed=False, experts_unknown=is_old)


def _granularity(options: Keys) -> tuple[int, ...]:
    """What shares a scale in torchao: a row, a group of one, or, as nothing, the matrix."""
    said: object = options.get("granularity")
    if isinstance(said, list):  # of the inputs, and of the weights
        said = cast("list[object]", said)[-1] if said else None
    if said is None:
        return (0,)
    kind = _table(said, f"{KEY}.granularity")
    if kind.get("_type") == "PerGroup":
        return (_size(_table(kind.get("_data"), f"{KEY}.granularity").get("group_size"), "group_size"),)
    if kind.get("_type") in ("PerRow", "PerTensor"):
        return (0,) if kind.get("_type") == "PerRow" else ()
    raise _unknown("granularity", kind.get("_type"))


# Matrices that mlx-lm 0.32 keeps in 8 bits, by the type of the model and the end of their names; of routers that are
# not among them, whether they are quantized like other linear layers.
MLX_IN_8_BITS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text"), ("mlp.gate", "mlp.shared_expert_gate")),
    **dict.fromkeys(("qwen3_moe", "qwen3_vl_moe", "qwen3_vl_moe_text", "mellum"), ("mlp.gate",)),
    "granite": ("self_attn.o_proj", "mlp.down_proj", "lm_head"),
}
MLX_LINEAR_ROUTERS = ("mixtral", "qwen2_moe", "olmoe")
MLX_OWN_ROUTERS = ("deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe")


def _mlx(keys: Keys, raw: Keys) -> Quantization:
    """MLX: a scale and a bias in 16 bits for each group of a row; also for tables and the head, and with other bits for
    modules that the config lists by name. A matrix whose rows are not whole groups stays as it is."""
    model_type = str(raw.get("model_type"))
    if keys.get("mode") not in (None, "affine"):
        raise _unknown("mode", keys.get("mode"))
    form = _of_mlx(keys)
    listed: list[tuple[Modules, Format | None]] = []
    for name, said in keys.items():
        if said is False:
            listed.append((Modules([name]), None))
        elif isinstance(said, Mapping):
            listed.append((Modules([name]), _of_mlx(_table(cast("object", said), f"{KEY}.{name}"))))
    in_8_bits = MLX_IN_8_BITS.get(model_type, ())
    if in_8_bits and not listed:
        listed.append((Modules(in_8_bits), _of_mlx({"group_size": 64, "bits": 8})))
    is_linear = model_type in MLX_LINEAR_ROUTERS
    is_known = is_linear or model_type in MLX_OWN_ROUTERS or model_type in MLX_IN_8_BITS or bool(listed)
    router = form if is_linear or listed else None
    return Quantization(tuple(listed), form, form, form, form, router, form, experts_unknown=not is_known)


def _of_mlx(keys: Keys) -> Format:
    bits = _number(keys, "bits", (2, 3, 4, 5, 6, 8))
    block = (_size(keys.get("group_size", 64), "group_size"),)
    base = INT8 if bits > 4 else INT4
    return replace(base, name=f"mlx-{bits}bit", bits=bits, block=block, scale_bits=32, is_whole=True)


def _compressed_tensors(keys: Keys, raw: Keys) -> Quantization:
    """Groups of targets, each with its format; none of them applies to the modules in `ignore`."""
    found = Quantization(((Modules(_names(keys, "ignore")), None),), transposed=False)
    groups = _table(keys.get("config_groups"), f"{KEY}.config_groups")
    if len(groups) > MOST_GROUPS:
        raise _unknown("config_groups", f"{len(groups)} groups")
    for name, said in groups.items():
        group = _table(said, f"{KEY}.config_groups.{name}")
        form = _of_group(group, keys)
        targets = _names(group, "targets")
        if "Linear" in targets:
            found = replace(found, linear=form, expert=form, head=form, gate=form)
        modules = [target for target in targets if target != "Linear"]
        for target in modules:
            if "." not in target and not target.startswith("re:"):
                raise _unknown("targets", target)
        if modules:
            found = replace(found, listed=(*found.listed, (Modules(modules), form)))
    return found


def _of_group(group: Keys, keys: Keys) -> Format | None:
    """The format of a group of compressed-tensors; None if its weights are not quantized."""
    said: object = group.get("weights")
    if said is None:
        return None
    weights = _table(said, f"{KEY}.config_groups.weights")
    bits, kind, strategy = (weights.get(name) for name in ("num_bits", "type", "strategy"))
    form = {"4 int": INT4, "8 int": INT8, "4 float": NVFP4, "8 float": FP8}.get(f"{bits} {kind}")
    if form is None:
        raise _unknown("config_groups.weights", f"{bits} bits of type {kind}")
    group_size: object = weights.get("group_size")
    packing: object = group.get("format") or keys.get("format") or ""
    if kind == "float" and bits == 4:
        if isinstance(packing, str) and packing.startswith("mxfp4"):
            return MXFP4
        scales = 64 if group.get("input_activations") else 32  # of the matrix, and of its inputs
        return replace(NVFP4, block=(_size(group_size, "group_size"),), matrix_bits=scales)
    scale = 16  # as the weights were
    zero = 0 if weights.get("symmetric", True) else int(form.bits)
    packed = 0
    if packing == "pack-quantized":  # the shape, as two whole numbers: the library's are of 64 bits, Moonshot's of 32
        packed = 128 if keys.get("version") is not None else 64
    inputs_said: object = group.get("input_activations")
    if isinstance(inputs_said, Mapping) and cast("Keys", inputs_said).get("dynamic") is False:
        packed += 16  # a scale of the inputs
    inputs = 32 if weights.get("actorder") == "group" else 0
    if strategy == "tensor":
        return replace(form, block=(), scale_bits=0, matrix_bits=scale + zero + packed, input_bits=inputs)
    if strategy == "channel":
        block: tuple[int, ...] = (0,)
    elif strategy == "block":
        block = _block(weights.get("block_structure"), "block_structure")
    elif strategy in ("group", None) and group_size is not None:
        block = (_size(group_size, "group_size"),)
    else:
        raise _unknown("config_groups.weights.strategy", strategy)
    return replace(form, block=block, scale_bits=scale + zero, matrix_bits=packed, input_bits=inputs)


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
        group = _size(keys.get("group_size", 16), "group_size")
        return replace(NVFP4, block=(group,), matrix_bits=64 if name == "NVFP4" else 32)
    raise _unknown("quant_algo", name)


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
}


# --- what several of them share ---------------------------------------------------------------------------------------

KEPT = ("modules_to_not_convert", "ignored_layers", "exclude_modules", "ignore")


def _kept(keys: Keys) -> tuple[tuple[Modules, Format | None], ...]:
    """The modules that are not quantized, whatever the list is called; those in `ignore` only if no list names the
    quantized layers, since next to such a list it has another meaning."""
    lists = KEPT[:3] if keys.get("quantized_layers") is not None else KEPT
    names = [name for key in lists for name in _names(keys, key)]
    return ((Modules(names), None),) if names else ()


def _layers(keys: Keys) -> tuple[tuple[Modules, Format | None], ...]:
    """The layers that are listed individually, by their formats."""
    said: object = keys.get("quantized_layers")
    if said is None:
        return ()
    by_format: dict[Format, list[str]] = {}
    for name, one in _table(said, f"{KEY}.quantized_layers").items():
        layer = _table(one, f"{KEY}.quantized_layers.{name}")
        by_format.setdefault(_of_algorithm(layer.get("quant_algo"), layer), []).append(name)
    return tuple((Modules(names), form) for form, names in by_format.items())


def _table(value: object, name: str) -> Keys:
    if not isinstance(value, Mapping):
        raise Problem(f"{name} = {shorten(value)}: expected a table of keys", f"correct the value, or {MEND}")
    return cast("Keys", value)


def _names(keys: Keys, key: str) -> list[str]:
    """A list of names, or an empty one."""
    value: object = keys.get(key)
    names = listed(value)
    if value is None:
        return []
    if names is None or not all(isinstance(name, str) for name in names):
        raise Problem(f"{KEY}.{key} = {shorten(value)}: expected a list of names", f"correct the value, or {MEND}")
    return names


def _number(keys: Keys, key: str, known: Iterable[int]) -> int:
    value: object = keys.get(key)
    for number in known:
        if value == number and value is not True:
            return number
    raise _unknown(key, value)


def _size(value: object, key: str) -> int:
    """The number of weights that share a scale."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= 2**20:
        raise Problem(f"{KEY}.{key} = {shorten(value)}: expected a whole number >= 1", f"correct the value, or {MEND}")
    return value


def _block(value: object, key: str) -> tuple[int, ...]:
    """Rows and columns of a block."""
    sides = listed(value) or []
    if len(sides) != 2:
        raise Problem(f"{KEY}.{key} = {shorten(value)}: expected two whole numbers", f"correct the value, or {MEND}")
    return (_size(sides[0], key), _size(sides[1], key))


def _unknown(key: str, value: object) -> Problem:
    return Problem(f"{KEY}: {key} = {shorten(value)} is not known", MEND)
