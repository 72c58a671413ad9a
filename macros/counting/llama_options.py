"""llama.cpp's options by its own names.

Source: `common/arg.cpp` of llama.cpp in `llama-cpp-python` 0.3.36.
"""

from __future__ import annotations

from .engine_options import BYTES, NUMBER, SHARES, SWITCH, TEXT, TOKENS, WHOLE, Option

TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
OF_CONDITIONS = {"float32": "f32", "float16": "f16", "bfloat16": "f16"}

OPTIONS = (
    Option("context", ("--ctx-size", "-c"), TOKENS, "tokens of all sequences"),
    # not an option of its own: it determines the context
    Option("room", ("--cache-memory",), BYTES, "memory of all caches; not an option of its own"),
    Option("parallel", ("--parallel", "-np"), WHOLE, "sequences, or slots of the server"),
    Option("batch", ("--batch-size", "-b"), TOKENS, "tokens handed over at once; 2,048"),
    Option("step", ("--ubatch-size", "-ub"), TOKENS, "tokens of a step; 512"),
    Option(
        "gpu_layers",
        ("--n-gpu-layers", "--gpu-layers", "-ngl"),
        TEXT,
        "last layers on the devices, the output one of them; all",
    ),
    Option("split", ("--tensor-split", "-ts"), SHARES, "shares of the devices; their free memory"),
    Option("mode", ("--split-mode", "-sm"), TEXT, "how devices share the model", choices=("none", "layer", "row")),
    Option("main", ("--main-gpu", "-mg"), NUMBER, "the device of --split-mode none; 0"),
    Option("override", ("--override-tensor", "-ot"), TEXT, "pattern=buffer, separated by commas"),
    Option("cpu_moe", ("--n-cpu-moe", "-ncmoe"), NUMBER, "first layers whose experts stay on the CPU"),
    Option("all_moe", ("--cpu-moe", "-cmoe"), SWITCH, "all experts stay on the CPU"),
    Option("full", ("--swa-full",), SWITCH, "windows keep all tokens"),
    Option("unified", ("--kv-unified", "-kvu"), SWITCH, "one cache for all sequences", ("--no-kv-unified", "-no-kvu")),
    Option("keys", ("--cache-type-k", "-ctk"), TEXT, "type of keys; f16", choices=TYPES),
    Option("values", ("--cache-type-v", "-ctv"), TEXT, "type of values; f16", choices=TYPES),
    Option(
        "flash",
        ("--flash-attn", "-fa"),
        TEXT,
        "flash attention: on, off or auto",
        choices=("on", "off", "auto", "1", "0"),
        bare="on",
    ),
    Option("on_host", ("--no-kv-offload", "-nkvo"), SWITCH, "the cache stays on the CPU", ("--kv-offload", "-kvo")),
    Option(
        "draft_model", ("--model-draft", "-md", "--spec-draft-model"), TEXT, "the draft: a model that is known here"
    ),
    Option("draft_type", ("--spec-type",), TEXT, "kind of the draft"),
    Option(
        "drafted",
        ("--spec-draft-n-max", "--draft-max", "--draft-n", "--draft"),
        WHOLE,
        "tokens that the draft proposes",
    ),
)
IGNORED = tuple(
    """
    -m= --model= -hf= --hf-repo= -hff= --hf-file= --host= --port= -t= --threads= -tb= --threads-batch= --mlock
    --no-mmap --mmap --temp= --top-p= --top-k= --min-p= --repeat-penalty= --jinja --chat-template=
    --chat-template-file= -p= --prompt= -n= --predict= --n-predict= --seed= -s= --alias= -a= --api-key= --metrics
    --verbose -v --no-webui --log-file= --no-warmup --rope-scaling= --rope-freq-base= --rope-freq-scale=
    --yarn-orig-ctx= --cont-batching -cb --reasoning-format= --reasoning-budget= --numa= --device= -dev= --fit=
    -fit= --cache-ram= --slots --no-slots --defrag-thold= -dt= --timeout= --mmproj= --no-mmproj -lv=
    --log-verbosity= --presence-penalty= --ctx-checkpoints= --spec-draft-p-min= --draft-min= --draft-p-min=
    --embedding --embeddings --pooling= -dio --no-context-shift --context-shift --simple-io -cnv -no-cnv --no-cnv
    -i --color
    """.split()
)
