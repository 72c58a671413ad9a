"""Other facts about a type, as plain data next to its forward pass, for other modules to interpret."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct


class Gguf(Struct, frozen=True):
    """How llama.cpp's converter makes a file of a type's tensors (`counting.gguf_names` has the spelling).

    `name` is llama.cpp's for the architecture; `layer` and `outside` are the tensors with other names, or another
    conversion, than usual. A model with a tensor whose name contains a key of `becomes` is converted as that says.

    If it `is_latent`, keys and values are one latent, which all queries share. `seventy` are the numbers of layers at
    which llama.cpp treats a model of this architecture as one with 70 billion parameters. If it `is_by_layer`, the file
    has the numbers of heads of each layer. `f16` are matrices in 16 bits that others keep in 32. `native` are the types
    of matrices in every file of 16 or 32 bits, where the converter keeps the maker's, by the end of the name: the first
    that fits. Parts of names: what is not quantized is `kept`, `no_less` is in Q8_0 at least.

    `is_own_of_ollama`: whether Ollama ran it by an engine of its own from 0.6 on (`OllamaEngineRequired` in
    fs/ggml/ggml.go), until all models went to llama.cpp's server.

    In llama.cpp's cache: whether it knows the windows or chunks (`swa_type` in src/models; of others every layer keeps
    all), and whether it keeps latents as keys and values of every head.

    If it is `in_pairs`, rows of queries and keys that rotate together are neighbors in the file. `shifted` are ends of
    names of norms that hold 1 more there.
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


# Why a type has no GGUF file: of llama-cpp-python 0.3.36. A test holds the first, which needs not be said.
NO_CLASS = "llama.cpp's converter has no class for it"
UNREAD = "llama.cpp's converter has a class for it, which was not read"


class Task(Struct, frozen=True):
    """A kind of head: in words; its computation, one of `heads` by name or a function; its number of labels, None for
    that of the config; the prefix of the trunk's tensors, None if it is the same as with the forward pass's own head.
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

    `targets` where none is named (TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING in peft/utils/constants.py; of
    gemma4 it is a regular expression for these modules of the language model). `stacked`: experts, if it adapts their
    stack (_MOE_TARGET_MODULE_MAPPING in peft/utils/transformers_weight_conversion.py, by _MODEL_TO_CONVERSION_PATTERN
    in transformers/conversion_mapping.py).

    In transformers, `tied_head` is the head's name if it is the input table too, `tied_tables` are names of that table
    in an encoder and a decoder. A router is a module of a class of its own, or a `linear_router`; an `own_router` is of
    a subclass of linear layers, as with `own_linear` every one is. `tables`: last parts of the names of tables that are
    read whole; `shared`: the part of a layer that is one for several; `foreign`: the beginning of the names of
    modules of classes that PEFT does not take. `refused` is the end of the name of a module
    whose weight the Mamba layer reads itself.
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
    """What mlx-lm 0.32 does with a type: matrices that it keeps in 8 bits, by the end of their names; whether routers
    are quantized like other `linear` layers, or are modules of their `own`, empty where that was not read; whether
    windows are in a rotating cache (`make_cache` of mlx_lm/models; of others every layer keeps all), and latents are
    kept as keys and values of every head.
    """

    in_8_bits: tuple[str, ...] = ()
    routers: str = ""
    is_windowed: bool = False
    is_written_out: bool = False


USUAL_MLX = Mlx()


class Vllm(Struct, frozen=True):
    """How vLLM keeps the states of a type whose kernel hands out a state in the middle of a prompt, which takes one
    page more with prefix caching: since which version (`checkpoint`), on devices of which compute capability (the first
    number), of how many tokens a block is a multiple then, and the key that its config `needs` (`get_kv_cache_spec` and
    `get_prefill_checkpoint_alignment` of its layers). Where neither an option nor the config says it, a state has so
    many bits (`state`) since the version that follows, and a step at least so many tokens (`step`): those of one video,
    where the config says what `sees` names (`_get_min_mm_batched_tokens` in engine/arg_utils.py). If it `is_packed`,
    its pages of several sizes lie side by side in a block (`counting.vllm_packed`).
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
