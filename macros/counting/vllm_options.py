"""vLLM's options by its own names, and its names for the types of a cache and of a state.

Source in vLLM: `engine/arg_utils.py`, `config/cache.py`, `config/speculative.py`.
"""

from __future__ import annotations

from ..engine.errors import Problem
from ..engine.steps import Holds, Role
from ..engine.tensors import CacheEntry
from .costs import Costs
from .engine_options import BYTES, JSON, SHARE, SWITCH, TEXT, TOKENS, WHOLE, Option

CACHE_TYPES = {
    "auto": "",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "half": "float16",
    "float32": "float32",
    "float": "float32",
    "fp8": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "fp8_inc": "fp8",
    "fp8_ds_mla": "fp8_ds_mla",
    "nvfp4": "nvfp4",
    "nvfp4_4over6": "nvfp4",
    "int8_per_token_head": "int8_per_token_head",
    "fp8_per_token_head": "fp8_per_token_head",
    "int4_per_token_head": "int4_per_token_head",
}
# Types whose pages no rule here covers.
UNCOUNTED = tuple(
    "nvfp4_ds_mla turboquant_k8v4 turboquant_4bit_nc turboquant_k3v4_nc turboquant_3bit_nc octave_k3v4 octave_k3v3 "
    "octave_k3v3_compact ultraquant_4bit".split()
)
# Bits of an element, with a scale of 32 bits for each token and head (`customize_spec` in v1/attention/backends/
# triton_attn.py): one behind K and one behind V, and both behind latents.
WITH_SCALES = {"int8_per_token_head": 8, "fp8_per_token_head": 8, "int4_per_token_head": 4}
SCALES_SINCE = (0, 33)  # the version whose source was read
BITS = {"auto": 0, "float32": 32, "float": 32, "float16": 16, "half": 16, "bfloat16": 16}
# Drafts whose layers are of the model's own kind: how many each has by default.
OWN_HEADS = ("mtp", "eagle", "eagle3", "deepseek_mtp", "qwen3_next_mtp", "qwen3_5_mtp", "glm4_moe_mtp", "mimo_mtp")
MODEL_DRAFTS = (None, "draft_model", "dflash")  # methods whose draft is a model that the options name
OTHER_DRAFTS = ("ngram", "suffix", "medusa", "mlp_speculator", "draft_model")

OPTIONS = (
    Option("tensor", ("--tensor-parallel-size", "-tp"), WHOLE, "ranks that share each matrix"),
    Option("pipeline", ("--pipeline-parallel-size", "-pp"), WHOLE, "stages of layers"),
    Option("data", ("--data-parallel-size", "-dp"), WHOLE, "engine cores, each with a pool of its own"),
    Option(
        "experts",
        ("--enable-expert-parallel", "-ep"),
        SWITCH,
        "routed experts are divided whole over the ranks",
        ("--no-enable-expert-parallel",),
    ),
    Option("dcp", ("--decode-context-parallel-size", "-dcp"), WHOLE, "ranks that share a sequence's rows in decode"),
    Option("pcp", ("--prefill-context-parallel-size", "-pcp"), WHOLE, "the same for the prompt"),
    Option("share", ("--gpu-memory-utilization",), SHARE, "the part of the memory that it takes; 0.92"),
    Option("length", ("--max-model-len",), TOKENS, "tokens of a request"),
    Option("step", ("--max-num-batched-tokens",), TOKENS, "tokens of a step; 8,192 on 70 GiB and more, else 2,048"),
    Option("sequences", ("--max-num-seqs",), WHOLE, "sequences of a step; 1,024 on 70 GiB and more, else 256"),
    Option("block", ("--block-size",), WHOLE, "tokens of a block; 16, of latents 32 or 64 by kernel"),
    Option("cache", ("--kv-cache-dtype",), TEXT, "type of the cache", choices=(*CACHE_TYPES, *UNCOUNTED)),
    Option("room", ("--kv-cache-memory-bytes", "--kv-cache-memory"), BYTES, "memory of each rank's cache"),
    Option("blocks", ("--num-gpu-blocks-override",), WHOLE, "blocks of the cache"),
    Option(
        "prefix",
        ("--enable-prefix-caching",),
        SWITCH,
        "prefix caching: a recurrent layer keeps two states a sequence, and one without",
        ("--no-enable-prefix-caching", "--disable-prefix-caching"),
    ),
    Option("ssm", ("--mamba-ssm-cache-dtype",), TEXT, "type of a recurrent state", choices=tuple(BITS)),
    Option("mode", ("--mamba-cache-mode",), TEXT, "states kept a sequence", choices=("none", "align", "all")),
    Option(
        "prefill",
        ("--gdn-prefill-backend", "--kda-prefill-backend"),
        TEXT,
        "kernel of a delta rule for prompts: FlashInfer’s and FlashKDA, the default on Hopper and Blackwell, keep one "
        "more state a sequence",
        choices=("auto", "flashinfer", "flashkda", "triton", "cutedsl"),
    ),
    Option("draft", ("--speculative-config", "-sc"), JSON, "the draft: method, model, num_speculative_tokens"),
    Option(
        "no_windows",
        ("--disable-hybrid-kv-cache-manager",),
        SWITCH,
        "layers with a window keep all tokens",
        ("--no-disable-hybrid-kv-cache-manager",),
    ),
    Option(
        "overlap",
        ("--async-scheduling",),
        SWITCH,
        "the next step is scheduled during the last: since 0.26 a window keeps the rows of both",
        ("--no-async-scheduling",),
    ),
    Option(
        "no_images",
        ("--language-model-only",),
        SWITCH,
        "no images: Gemma 4’s step need not hold a video",
        ("--no-language-model-only",),
    ),
    Option(
        "limits", ("--limit-mm-per-prompt",), TEXT, "images, sounds and videos of a request; the same without videos"
    ),
    Option(
        "performance",
        ("--performance-mode",),
        TEXT,
        "throughput doubles the default tokens and sequences of a step",
        choices=("balanced", "interactivity", "throughput"),
    ),
    Option("eager", ("--enforce-eager",), SWITCH, "no CUDA graphs", ("--no-enforce-eager",)),
)
IGNORED = tuple(
    """
    --host= --port= --api-key= --served-model-name= --trust-remote-code --quantization= -q= --dtype= --tokenizer=
    --seed= --reasoning-parser= --tool-call-parser= --enable-auto-tool-choice --chat-template= --disable-log-stats
    --disable-log-requests --download-dir= --load-format= --revision= --max-logprobs= --generation-config=
    --enable-chunked-prefill --no-enable-chunked-prefill --distributed-executor-backend=
    --disable-custom-all-reduce --attention-backend= --moe-backend= --uvicorn-log-level= --model= --max-log-len=
    --enable-log-requests --default-chat-template-kwargs=
    --stream-interval= --tokenizer-mode= --hf-overrides= --compilation-config= -cc= -O=
    --override-generation-config= --allowed-origins= --mm-encoder-tp-mode= --mm-processor-cache-gb=
    """.split()
)


def bytes_with_scales(k: CacheEntry, elements: int, dtype: str, version: tuple[int, int]) -> int:
    """Bytes of a row in a type with scales. Raises `Problem` for a version older than the one whose rule is known."""
    if version < SCALES_SINCE:
        raise Problem(f"no rule is known for vLLM’s cache of type {dtype} before 0.33", "give --engine-version 0.33")
    width = elements * WITH_SCALES[dtype] // 8
    if k.holds in (Holds.LATENT, Holds.ROPE_KEY):
        return width + (8 if k.holds is Holds.LATENT else 0)
    return width + elements // int(k.shape[-1]) * 4


def stages_of(layers: int, stages: int) -> list[tuple[int, int]]:
    """The first layer of each stage and the one after its last: as equal as possible, with one more for those before
    the last (`get_pp_indices` in vllm/distributed/utils.py)."""
    each, rest = divmod(layers, stages)
    numbers = [each] * stages
    for i in range(rest):
        numbers[stages - 2 - i if stages - 2 - i >= 0 else stages - 1] += 1
    bounds: list[tuple[int, int]] = []
    first = 0
    for n in numbers:
        bounds.append((first, first + n))
        first += n
    return bounds


def rotary_bytes(costs: Costs, longest: int) -> int:
    """Bytes of the table of sines and cosines, in 16 bits, for each position up to the longest context: each rank holds
    all of it, once for all layers that rotate alike (`RotaryEmbedding` in model_executor/layers/rotary_embedding)."""
    tables = [node for node in costs.trace.root.walk() if node.role is Role.ROPE_TABLE]
    return sum(longest * int(out.shape[-1]) * 2 for node in tables for out in node.outputs)
