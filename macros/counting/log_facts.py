"""The facts of a start-up log other than its figures: version, model, architecture, options and devices, line by line.

Only names of options and numbers, a model's name without its path, and a device's name are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from .deployments import decimal
from .engine_options import DIGITS, number_of
from .log_commands import NAMES, SMALL, Facts, draft_of, model_name
from .log_forms import LETTERS, value_in, whole_before, whole_behind, word


def _name_in(line: str, facts: Facts) -> None:
    """The name under which a server offers its model; the first if there are several."""
    said = model_name(value_in(line, "served_model_name").partition(",")[0].strip("[]'\" "))
    if said and said != "None" and "served" not in facts:
        facts["served"] = said


# vLLM

# Keys that are options here, from its lists of arguments that differ from the defaults, and from its config.
OF_VLLM = {
    "tensor_parallel_size": "--tensor-parallel-size",
    "pipeline_parallel_size": "--pipeline-parallel-size",
    "data_parallel_size": "--data-parallel-size",
    "decode_context_parallel_size": "--decode-context-parallel-size",
    "max_model_len": "--max-model-len",
    "max_seq_len": "--max-model-len",
    "gpu_memory_utilization": "--gpu-memory-utilization",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "max_num_seqs": "--max-num-seqs",
    "kv_cache_dtype": "--kv-cache-dtype",
    "block_size": "--block-size",
    "mamba_ssm_cache_dtype": "--mamba-ssm-cache-dtype",
    "mamba_cache_mode": "--mamba-cache-mode",
    "num_gpu_blocks_override": "--num-gpu-blocks-override",
    "gdn_prefill_backend": "--gdn-prefill-backend",
}
# The kernel of a delta rule for prompts, by the words of the line that names it.
KERNELS_OF_VLLM = (
    ("Using FlashInfer GDN prefill kernel", "flashinfer"),
    ("Using Triton/FLA GDN prefill kernel", "triton"),
    ("Using CuteDSL GDN prefill kernel", "cutedsl"),
    ("Using FlashKDA KDA prefill", "flashkda"),
)
SWITCHES_OF_VLLM = {
    "enable_prefix_caching": ("--enable-prefix-caching", "--no-enable-prefix-caching"),
    "enable_expert_parallel": ("--enable-expert-parallel", ""),
    "enforce_eager": ("--enforce-eager", ""),
    "language_model_only": ("--language-model-only", ""),
    "disable_hybrid_kv_cache_manager": ("--disable-hybrid-kv-cache-manager", ""),
}
# Numbers after a marker in a line, as options; the first match counts.
BEHIND_IN_VLLM = (
    ("max seq len (", "--max-model-len"),
    ("max_seq_len (", "--max-model-len"),
    ("Using max model len ", "--max-model-len"),
    ("Chunked prefill is enabled with max_num_batched_tokens=", "--max-num-batched-tokens"),
    ("Setting kv cache block size to ", "--block-size"),
    ("Forcing kv cache block size to ", "--block-size"),
)
LISTS = ("non-default args", "Initializing a V", "LLM engine (v", "args: Namespace(", "Initializing an LLM engine")


def of_vllm(line: str, facts: Facts) -> None:
    """The version, the model and the options in a line of vLLM."""
    for mark in ("vLLM API server version ", "LLM engine (v", "vLLM version ", "version "):
        if mark in line and "version" not in facts and (mark != "version " or "▄▄" in line or "█" in line):
            facts["version"] = word(line.partition(mark)[2], "." + DIGITS + SMALL + "+")
    if any(mark in line for mark in LISTS):
        _arguments_of_vllm(line, facts)
    for mark in ("Starting to load model ", "█ model "):
        if mark in line and "model" not in facts:
            facts["model"] = model_name(line.partition(mark)[2].strip().removesuffix("..."))
    if "Resolved architecture: " in line and "architecture" not in facts:
        facts["architecture"] = word(line.partition("Resolved architecture: ")[2], NAMES)
    length = whole_before(line, " tokens per request: ")
    if length and "--max-model-len" not in facts:
        facts["--max-model-len"] = length
    for mark, option in BEHIND_IN_VLLM:
        if mark in line and option not in facts and (said := whole_behind(line, mark)):
            facts[option] = said
    for mark, kernel in KERNELS_OF_VLLM:
        if mark in line:
            facts["--gdn-prefill-backend"] = kernel
    if " tokens, Maximum concurrency for " in line and "version" not in facts:  # one line since 0.28
        facts["version"] = "0.33"
    if "Updating mamba_ssm_cache_dtype to " in line:  # from a config, or its default for the type
        facts["--mamba-ssm-cache-dtype"] = word(line.partition("_dtype to ")[2].removeprefix("'"), SMALL)
    if "Raising max_num_batched_tokens from " in line and (said := whole_behind(line, " to ")):
        facts["--max-num-batched-tokens"] = said
    for mark in ("gpu_memory_utilization (", "memory utilization is (", "gpu_memory_utilization ", "y_utilization="):
        if mark in line and "--gpu-memory-utilization" not in facts:
            said = word(line.partition(mark)[2], DIGITS + ".")
            share = number_of(said) if said else None
            if share is not None and 0 < share <= 1:
                facts["--gpu-memory-utilization"] = said
    if "kv_cache_dtype=torch.float8" in line and "--kv-cache-dtype" not in facts:
        facts["--kv-cache-dtype"] = "fp8"
    for mark in ("(Worker_TP", "(VllmWorker TP", "(Worker TP", "(VllmWorker rank="):
        if mark in line and (rank := whole_behind(line, mark)):
            facts["rank"] = str(max(int(rank[:4]), int(facts.get("rank", "0"))))


def _arguments_of_vllm(line: str, facts: Facts) -> None:
    """A list of arguments: those that differ from the defaults, or the config."""
    is_chosen = "non-default" in line
    for key in ("model_tag", "model"):
        said = value_in(line, key)
        if said and "model" not in facts:
            facts["model"] = model_name(said)
    _name_in(line, facts)
    for key, option in OF_VLLM.items():
        said = value_in(line, key)
        if said and said not in ("None", "auto") and (option not in facts or is_chosen):
            facts[option] = word(said, NAMES)
    for key, (on, off) in SWITCHES_OF_VLLM.items():
        said = value_in(line, key)
        if said == "True" and on not in facts:
            facts[on] = ""
        elif said == "False" and off and on not in facts and (key != "enable_prefix_caching" or not is_chosen):
            facts[off] = ""
    for key, fact in (("dtype", "dtype"), ("quantization", "quantization")):
        said = word(value_in(line, key).removeprefix("torch."), SMALL + "-")
        if said and said not in ("auto",) and fact not in facts:
            facts[fact] = said
    _draft_of_vllm(line, facts)


def _draft_of_vllm(line: str, facts: Facts) -> None:
    """A draft's method and the number of tokens that it proposes."""
    if "--speculative-config" in facts:
        return
    method, number = "", ""
    if "SpeculativeConfig(" in line:
        rest = line.partition("SpeculativeConfig(")[2]
        method, number = value_in(rest, "method") or value_in("(" + rest, "method"), value_in(rest, "num_spec_tokens")
    elif "speculative_config'" in line:
        rest = line.partition("speculative_config'")[2]
        method, number = value_in(rest, "method"), value_in(rest, "num_speculative_tokens")
    if method and number and all(c in DIGITS for c in number):
        facts["--speculative-config"] = draft_of({"method": method, "num_speculative_tokens": int(number[:3])})


# SGLang

OF_SGLANG = {
    "tp_size": "--tp-size",
    "pp_size": "--pp-size",
    "dp_size": "--dp-size",
    "ep_size": "--ep-size",
    "mem_fraction_static": "--mem-fraction-static",
    "context_length": "--context-length",
    "chunked_prefill_size": "--chunked-prefill-size",
    "max_total_tokens": "--max-total-tokens",
    "max_running_requests": "--max-running-requests",
    "max_mamba_cache_size": "--max-mamba-cache-size",
    "kv_cache_dtype": "--kv-cache-dtype",
    "page_size": "--page-size",
    "swa_full_tokens_ratio": "--swa-full-tokens-ratio",
    "mamba_full_memory_ratio": "--mamba-full-memory-ratio",
    "mamba_ssm_dtype": "--mamba-ssm-dtype",
    "speculative_algorithm": "--speculative-algorithm",
    "speculative_num_draft_tokens": "--speculative-num-draft-tokens",
}
SWITCHES_OF_SGLANG = (
    ("enable_dp_attention", "--enable-dp-attention"),
    ("disable_radix_cache", "--disable-radix-cache"),
)


def of_sglang(line: str, facts: Facts) -> None:
    """The model and the options in a line of SGLang."""
    if "ServerArgs(" in line:
        said = value_in(line, "model_path")
        if said:
            facts["model"] = model_name(said)
        _name_in(line, facts)
        for key, option in OF_SGLANG.items():
            said = value_in(line, key)
            is_default = said in ("", "None", "auto", "False") or said == "1" and key.endswith("p_size")
            if not is_default and not said.startswith("-") and option not in facts:
                facts[option] = word(said, NAMES)
        for key, option in SWITCHES_OF_SGLANG:
            if value_in(line, key) == "True":
                facts[option] = ""
        said = word(value_in(line, "quantization"), SMALL + "-")
        if said and said != "None":
            facts["quantization"] = said
    if "Load weight end" in line and "architecture" not in facts:
        facts["architecture"] = word(line.partition("type=")[2], NAMES)
        for mark, fact, signs in ((" dtype=torch.", "dtype", SMALL), (" quant=", "quantization", SMALL + "-")):
            if mark in line and fact not in facts:
                facts[fact] = word(line.partition(mark)[2], signs)
    if "context_len=" in line and "--context-length" not in facts and (said := whole_behind(line, "context_len=")):
        facts["--context-length"] = said
    if "KV Cache is allocated" in line and "dtype: torch." in line and "--kv-cache-dtype" not in facts:
        dtype = word(line.partition("dtype: torch.")[2], SMALL)
        if dtype.startswith("float8"):
            facts["--kv-cache-dtype"] = "fp8_e5m2" if "e5m2" in dtype else "fp8_e4m3"
    if "swa size: " in line and "full size: " in line and "--swa-full-tokens-ratio" not in facts:
        few, many = whole_behind(line, "swa size: "), whole_behind(line, "full size: ")
        if few and many and 0 < int(few) <= int(many):
            facts["--swa-full-tokens-ratio"] = decimal(Fraction(int(few), int(many)))
    for mark in (" TP", "[TP"):
        if mark in line[:80] and (rank := whole_behind(line, mark)):
            facts["rank"] = str(max(int(rank[:3]), int(facts.get("rank", "0"))))


# llama.cpp and Ollama

TYPES_OF_FILES = {
    "Q4_K - Medium": "Q4_K_M",
    "Q4_K - Small": "Q4_K_S",
    "Q5_K - Medium": "Q5_K_M",
    "Q5_K - Small": "Q5_K_S",
    "Q3_K - Medium": "Q3_K_M",
    "Q3_K - Large": "Q3_K_L",
    "Q3_K - Small": "Q3_K_S",
    "Q2_K - Medium": "Q2_K",
    "Q2_K - Small": "Q2_K_S",
    "all F32": "F32",
    "MXFP4 MoE": "MXFP4_MOE",
}
OPTIONS_IN_LLAMA = (
    ("n_ctx = ", "--ctx-size"),
    ("n_seq_max = ", "--parallel"),
    ("using n_parallel = ", "--parallel"),
    ("n_slots = ", "--parallel"),
    ("n_batch = ", "--batch-size"),
    ("n_ubatch = ", "--ubatch-size"),
)
# Sizes of a model that llama.cpp prints, by the key of a config.
SIZES = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_head_kv": "num_key_value_heads",
    "n_ff": "intermediate_size",
    "n_vocab": "vocab_size",
}
SWITCHES_OF_LLAMA = (("kv_unified = true", "--kv-unified"), ("using full-size SWA cache", "--swa-full"))
# Which cache the lines after a marker are about.
KINDS = (
    ("creating non-SWA KV cache", "cache"),
    ("creating main KV cache", "cache"),
    ("creating SWA KV cache", "windows"),
    ("creating indexer KV cache", "index"),
    ("lightning-indexer KV cache", "index"),
)


def of_llama(line: str, facts: Facts) -> None:
    """The model, its format, the version and the options in a line of llama.cpp or Ollama."""
    if "general.name" in line and "model" not in facts:
        said = line.partition(" str = ")[2] if " str = " in line else line.partition("general.name = ")[2]
        if said and said != "n/a":
            facts["model"] = model_name(said.replace(" ", "-"))
    if "print_info: model type = " in line and "size" not in facts:
        facts["size"] = word(line.partition(" type = ")[2], LETTERS + DIGITS + ".").replace(".", "-")
    if (
        "llama_kv_cache" in line
        and "--ctx-size" not in facts
        and (said := whole_before(line.replace("(", " "), " cells,"))
    ):
        facts["--ctx-size"] = said  # of the first cache, which has a cell for each token
    if "loaded meta data with " in line and ".gguf" in line and "file" not in facts:
        facts["file"] = model_name("/" + line.partition(" tensors from ")[2].partition(".gguf")[0])
    for mark in ("general.architecture str = ", "print_info: arch = ", "llm_load_print_meta: arch = "):
        if mark in line and "architecture" not in facts:
            facts["architecture"] = word(line.partition(mark)[2], NAMES)
    for key in SIZES:
        for mark in (f"print_info: {key} = ", f"llm_load_print_meta: {key} = ", f"load_internal: {key} = "):
            if mark in line and key not in facts and (said := whole_behind(line, mark)):
                facts[key] = said
    for mark in ("file type = ", "model ftype = "):
        if mark in line and "weights" not in facts:
            said = line.partition(mark)[2]
            whole = next((kind for start, kind in TYPES_OF_FILES.items() if said.startswith(start)), "")
            facts["weights"] = whole or word(said, "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + DIGITS + "_")
    for mark in ("build: ", "build_info: b", "build = "):
        if mark in line and "version" not in facts and (said := whole_behind(line, mark)):
            facts["version"] = f"b{said}"
    for mark, option in OPTIONS_IN_LLAMA:
        if mark in line and f"_{mark}" not in line and option not in facts and (said := whole_behind(line, mark)):
            if int(said):
                facts[option] = said
    said = whole_before(line, " rs_seq")
    if said and int(said) and "--spec-type" not in facts:
        facts["--spec-type"], facts["--spec-draft-n-max"] = "draft-mtp", said  # states for the tokens of a draft
    for mark, option in SWITCHES_OF_LLAMA:
        if mark in line:
            facts[option] = ""
    if "flash_attn = " in line or "Flash Attention was auto, set to " in line:
        mark = "flash_attn = " if "flash_attn = " in line else "set to "
        said = word(line.partition(mark)[2], SMALL)
        if said != "auto":
            facts["--flash-attn"] = "off" if said in ("0", "disabled", "off", "false") else "on"
    if "layers to GPU" in line and (said := whole_behind(line, "offloaded ")):
        facts["--n-gpu-layers"] = said
    if ", K (" in line and ", V (" in line:
        keys, values = [word(line.partition(mark)[2], SMALL) for mark in (", K (", ", V (")]
        if keys and values:
            facts["--cache-type-k"], facts["--cache-type-v"] = keys, values
    if ", c^KV (" in line and (said := word(line.partition(", c^KV (")[2], SMALL)):
        facts["--cache-type-k"] = facts["--cache-type-v"] = said


def of_ollama(line: str, facts: Facts) -> None:
    """What Ollama's own lines add: its version, and the options of its runner."""
    if "(version " in line and "version" not in facts:
        facts["version"] = word(line.partition("(version ")[2], "." + DIGITS)
    for mark, option in (("KvSize:", "--ctx-size"), ("Parallel:", "--parallel"), ("BatchSize:", "--ubatch-size")):
        if "Operation:" in line and mark in line and (said := whole_behind(line, mark)) and int(said):
            facts[option] = said
    if "FlashAttention:" in line and "Operation:" in line:
        said = word(line.partition("FlashAttention:")[2], LETTERS).lower()
        facts["--flash-attn"] = "on" if said in ("true", "enabled") else "off"
    if "KvCacheType:" in line and (said := word(line.partition("KvCacheType:")[2], SMALL)):
        facts["--cache-type-k"] = facts["--cache-type-v"] = said
    if 'msg="template selection"' in line and "model" not in facts:
        name, _, tag = (
            word(line.partition(" model=")[2], NAMES).removeprefix("registry.ollama.ai/library/").partition(":")
        )
        facts["model"] = model_name(f"{name}-{facts.get('size', '') if tag in ('', 'latest') else tag}".strip("-"))
    if "GPULayers:" in line:
        _layers_in(line.partition("GPULayers:")[2], facts)
    if " architecture=" in line and "file_type=" in line:
        if "architecture" not in facts:
            facts["architecture"] = word(line.partition(" architecture=")[2], NAMES)
        if "weights" not in facts:
            facts["weights"] = word(line.partition("file_type=")[2], "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + DIGITS + "_")
        said = line.partition(' name="')[2].partition('"')[0]
        if said and "model" not in facts:
            facts["model"] = model_name(said.replace(" ", "-"))


def _layers_in(text: str, facts: Facts) -> None:
    """The layers of each device: `41[ID:GPU-1 Layers:29(0..28) ID:GPU-2 Layers:12(29..40)]`."""
    numbers = [word(part, DIGITS) for part in text.partition("]")[0].split("Layers:")[1:]]
    numbers = [one for one in numbers if 0 < len(one) < 6]
    if numbers:
        facts["--n-gpu-layers"] = str(sum(int(one) for one in numbers))
        if len(numbers) > 1:
            facts["--tensor-split"] = ",".join(numbers)


LIBRARIES = {"cuda": "CUDA", "rocm": "ROCm", "metal": "Metal", "vulkan": "Vulkan"}  # as their buffers are called


def devices_in(line: str, engine: str, devices: list[tuple[str, int]]) -> None:
    """A device that a line names, with its free memory in MiB."""
    name, free = "", ""
    if "using device " in line and "MiB free" in line:
        name = word(line.partition("using device ")[2], LETTERS + DIGITS + "_")
        free = whole_before(line, " MiB free")
    elif engine == "ollama" and 'msg="inference compute"' in line:
        said = word(line.partition(" library=")[2], LETTERS) or "cpu"
        name = LIBRARIES.get(said.lower(), said)
        said = number_of(line.partition(' available="')[2].partition(" GiB")[0])
        if said is not None and name.lower() != "cpu":
            same = len([other for other, _ in devices if other.startswith(name)])
            name, free = f"{name}{same}", str(int(said * 1024))
    if name and free and not any(name == other for other, _ in devices):
        devices.append((name, int(free)))


def kind_of(line: str, kind: str) -> str:
    """The cache of llama.cpp that the following lines are about; every line about a draft is about the draft's
    cache."""
    if "draft model" in line and "loading" in line or "creating MTP draft context" in line:
        return "draft"
    for mark, meant in KINDS:
        if mark in line:
            return "draft" if kind == "draft" else meant
    if ("llama_context:" in line or "sched_reserve:" in line) and "KV" not in line and kind != "draft":
        return ""
    return kind


def rank_of(line: str) -> str:
    """The rank in a line of SGLang, which follows the time in brackets; "" if there is only one."""
    for part in line[:160].split("[")[1:]:
        _, found, rest = part.partition("]")[0].partition(" TP")
        if found:
            return rest.partition(" ")[0]
    return ""


def sizes_in(facts: Mapping[str, str]) -> dict[str, int]:
    """The sizes of a model among facts, by the key of a config, without zeros."""
    return {meant: int(facts[key]) for key, meant in SIZES.items() if facts.get(key, "0") != "0"}


def options_in(facts: Mapping[str, str]) -> tuple[str, ...]:
    """The options among facts, as words of a command line."""
    words: list[str] = []
    for key, value in facts.items():
        if key.startswith("-"):
            words += [key] if value == "" else [key, value]
    return tuple(words)
