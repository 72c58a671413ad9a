"""Other facts about a type, as plain data next to its forward pass, for other modules to interpret."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct


class Gguf(Struct, frozen=True):
    """How llama.cpp's converter turns a type's tensors into a file (`counting.gguf_names` has the notation).

    `name` is llama.cpp's for the architecture; `layer` and `outside` are the tensors whose names or conversion differ
    from the usual ones. A model with a tensor whose name contains a key of `becomes` is converted as its value says.

    If it `is_latent`, keys and values are one latent that all queries share. `seventy` is the number of layers at which
    llama.cpp treats a model of this architecture as one with 70 billion parameters. If it `is_by_layer`, the file has
    the numbers of heads of each layer. `f16` are matrices in 16 bits that are otherwise kept in 32. `native` are the
    types of matrices, by the end of the name (the first match counts), that every file of 16 or 32 bits has because the
    converter keeps the maker's. `kept` and `no_less` are parts of names: the former are not quantized, the latter are
    in Q8_0 or better.

    `is_own_of_ollama`: whether Ollama ran it with its own engine from 0.6 on (`OllamaEngineRequired` in
    fs/ggml/ggml.go), until all models moved to llama.cpp's server.

    In llama.cpp's cache: whether it knows the windows or chunks (`swa_type` in src/models; otherwise every layer keeps
    all tokens), and whether it keeps latents as keys and values of every head.

    If it is `in_pairs`, rows of queries and keys that rotate together are neighbors in the file. `shifted` are suffixes
    of the names of norms that are 1 larger there.
    """

    name: str
    layer: Mapping[str, str] = {}
    outside: Mapping[str, str] = {}
    is_latent: bool = False
    seventy: int = 0
    is_by_layer: bool = False
    f16: tuple[str, ...] = ()
    becomes: tuple[tuple[str, Gguf], ...] = ()
    native: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()
    no_less: tuple[str, ...] = ()
    is_windowed: bool = False
    is_written_out: bool = False
    in_pairs: bool = False
    shifted: tuple[str, ...] = ()
    is_own_of_ollama: bool = False


# Why a type has no GGUF file, as of llama-cpp-python 0.3.36. A test checks the first, which need not be stated.
NO_CLASS = "llama.cpp's converter has no class for it"
UNREAD = "llama.cpp's converter has a class for it, which was not read"


class Task(Struct, frozen=True):
    """A kind of head: its description; its computation, one of `heads` by name or a function; its number of labels,
    None for the config's; the prefix of the trunk's tensors, None if it is the same as with the forward pass's own
    head.
    """

    words: str
    compute: str | Callable[..., Any]
    labels: int | None = None
    prefix: str | None = None


class Stacked(Struct, frozen=True):
    """Names of an expert's matrices before they were stacked: PEFT adapts the stack if a target is one of them."""

    router: str
    gate: str
    up: str
    down: str


W_EXPERTS, NAMED_EXPERTS = Stacked("gate", "w1", "w3", "w2"), Stacked("gate", "gate_proj", "up_proj", "down_proj")
QUERY_VALUE = "q_proj", "v_proj"
TABLES = "encoder.embed_tokens", "decoder.embed_tokens"  # of one input table, in an encoder and a decoder
MODEL_TABLES = "model.encoder.embed_tokens", "model.decoder.embed_tokens"


class Peft(Struct, frozen=True):
    """What PEFT 0.21.2 adapts on the modules of transformers 5.24.0: read in both packages on 2026-11-29.

    `targets` if none is named (TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING in peft/utils/constants.py; for
    gemma4 it is a regular expression for these modules of the language model). `stacked`: experts, if it adapts their
    stack (_MOE_TARGET_MODULE_MAPPING in peft/utils/transformers_weight_conversion.py, by _MODEL_TO_CONVERSION_PATTERN
    in transformers/conversion_mapping.py).

    In transformers, `tied_head` is the head's name if it is also the input table; `tied_tables` are names of that table
    in an encoder and a decoder. A router is a module with its own class, or a `linear_router`; an `own_router` is of a
    subclass of linear layers, as every linear layer is with `own_linear`. `tables`: last parts of the names of tables
    that are read whole; `shared`: the part of a layer that several layers share; `foreign`: how the names of modules
    start whose classes PEFT does not accept. `refused` is the suffix of the name of a module whose weight the Mamba
    layer reads itself.
    """

    targets: tuple[str, ...] = ()
    stacked: Stacked | None = None
    tied_head: str = "lm_head"
    tied_tables: tuple[str, ...] = ()
    linear_router: bool = False
    own_router: bool = False
    own_linear: bool = False
    refused: str = ""
    tables: tuple[str, ...] = ()
    shared: str = ""
    foreign: str = ""


USUAL_PEFT = Peft()


class Mlx(Struct, frozen=True):
    """How mlx-lm 0.32 treats a type: the matrices that it keeps in 8 bits, by the end of their names; whether routers
    are quantized like other `linear` layers or are modules of their `own`, empty if that was not read; whether windows
    use a rotating cache (`make_cache` of mlx_lm/models; otherwise every layer keeps all tokens); and whether latents
    are kept as keys and values of every head.
    """

    in_8_bits: tuple[str, ...] = ()
    routers: str = ""
    is_windowed: bool = False
    is_written_out: bool = False


USUAL_MLX = Mlx()


class Vllm(Struct, frozen=True):
    """vLLM's handling of recurrent states for a type whose kernel can return a state mid-prompt, which costs one extra
    page with prefix caching (`get_kv_cache_spec` and `get_prefill_checkpoint_alignment` of its layers), and its
    defaults.

    `checkpoint`: the first version that does so. `capabilities`: the device's compute capabilities (major). `grain`:
    the number of tokens that a block must then be a multiple of. `needs`: the config key that it requires.

    If neither an option nor the config says, `state` gives the bits of a state, and the version since which it has
    them. `step` gives the minimum tokens of a step, likewise: those of one video, if the config has the key and the
    value in `sees` (`_get_min_mm_batched_tokens` in engine/arg_utils.py). If it `is_packed`, its pages of several sizes
    are side by side in a block (`counting.vllm_packed`).
    """

    checkpoint: tuple[int, int] = (0, 0)
    capabilities: tuple[int, ...] = ()
    grain: int = 1
    needs: tuple[str, str] | None = None
    state: tuple[int, tuple[int, int]] = (0, (0, 0))
    step: tuple[int, tuple[int, int]] = (0, (0, 0))
    sees: tuple[str, str] = ("", "")
    is_packed: bool = False


USUAL_VLLM = Vllm()
