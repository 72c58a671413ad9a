"""The tools in Node, without a browser: each control is used, in the order of the keyboard. What a reader then sees and
hears is a text that somebody approved, and a new page at the same address shows the same."""

import difflib
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections import Counter

import jinja2
import pytest
from approved import macros
from approved.in_browser import TOOLS
from copies import ROOT
from serving import write_engine
from test_gate_javascript import IS_THERE, MODULES, NPM, tools  # noqa: F401 - installs what drives the tools

from macros.catalogue import capitals, merges
from macros.site import tool_files

pytestmark = pytest.mark.processes
if not IS_THERE:
    pytest.skip("no Node", allow_module_level=True)

MEND = "if the new lines are what readers should see: APPROVE=yes python -m pytest --few 0 tests/browser/test_states.py"
STATES = TOOLS.parent / "states"
MODELS = (
    *("gpt2", "llama3-8b", "llama3.2-1b", "gpt-oss-20b", "llama3-70b", "mixtral-8x7b", "gemma3-27b", "deepseek-v3"),
    *("internlm3-8b", "llama3.1-8b", "llama3.3-70b", "gpt-oss-120b"),
)
MOST = 40  # lines of a step; of more only a digest
LOG = """INFO 06-18 [config.py:1604] Using max model len 8192
INFO 06-18 [llm_engine.py:230] Initializing a V1 LLM engine (v0.9.1) with config: model='meta-llama/Llama-3.2-1B', \
tensor_parallel_size=1, dtype=torch.bfloat16, max_seq_len=8192
INFO 06-18 [gpu_model_runner.py:1624] Model loading took 2.3185 GiB and 1.2 seconds
INFO 06-18 [kv_cache_utils.py:716] GPU KV cache size: 549,408 tokens"""
GPT2 = '{"model_type":"gpt2","vocab_size":50257,"n_embd":768,"n_layer":6,"n_head":12,"n_positions":1024}'
# What is written into the fields that take more than a number, and what is taken from the lists that one types into.
WRITTEN = {
    "on": "h200",
    "machine": "48GB,900GB/s,100TFLOPS",
    "options": "--max-model-len 4096",
    "cards": "2xrtx-4090",
    "version": "0.9.0",
    "prefix": "1024",
    "host": "64GB,2xDDR5-5600,link:32GB/s",
    "gpu_layers": "10",
    "n_cpu_moe": "4",
    "draft_tokens": "3",
    "acceptance": "0.6",
    "cached": "500",
    "utilization": "0.5",
    "price_per_hour": "2.5",
    "purchase": "20000",
    "years": "4",
    "electricity": "0.3",
    "rank": "8",
    "target_modules": "q_proj,v_proj",
    "target_parameters": "",
    "exclude_modules": "lm_head",
    "watts": "500",
    "layers_to_transform": "0-3",
    "layers_pattern": "layers",
    "rank_pattern": "q_proj=32",
    "tokens": "1B",
    "alpha_pattern": "q_proj=64",
    "modules_to_save": "lm_head",
    "method": "lora",
    "expert": "1",
    "log": LOG,
    "config": GPT2,
    "name": "Llama 3 8B",
    "engine": "sglang",
    "top_p": "0.5",
    "text": "Tokyo is the capital of",
    "other": "Lima is the capital of",
    "temperature": "0.5",
    "top_k": "5",
    "hidden_act": "gelu",
    "activation_function": "relu",
}
FOUND = {"model": "Llama 3.2 1B", "draft": "GPT-2 Small", "model1": "Llama 3 70B"}
# Of each tool its place, as a macro makes it or with its name alone, and its address.
ON = "model=mixtral-8x7b&on=rtx-4090&context=8192"
STARTS = {
    "what-if": ('<div class="ep-tool" data-tool="what-if" data-models="llama3-8b" data-atlas="models/atlas/">', ""),
    "config": ('<div class="ep-tool" data-tool="config" data-atlas="models/atlas/">', f"#config={GPT2}"),
    "compare": ('<div class="ep-tool" data-tool="compare" data-models="llama3-8b,gpt2">', ""),
    "fits": ('<div class="ep-tool" data-tool="fits">', "?on=24GB&context=8192"),
    "log": ('<div class="ep-tool" data-tool="log">', ""),
    "run": ('<div class="ep-tool" data-tool="run">', ""),
    "choose": ("choose_country()", "?country=Peru"),
    "bars": (
        'moving_bars({"Full": {"Weights": "2 * m.total", "States": "14 * m.total"}, "LoRA": {"Weights": "2 * m.total", '
        '"Strips": "16 * rank * m.lora_per_rank"}}, by={"rank": [1, 8, 64, 512]}, states=[1, 8, 64], '
        'lines=["rtx-4090"], caption="Memory", m=["gpt2", "llama3-8b"])',
        "",
    ),
    "memory": ('memory_figure(["gpt2", "llama3.1-8b"])', ""),
    "growing": ('grows_with("llama3-8b")', ""),
    "masks": ("attention_masks()", ""),
    "attention": ('attention_heads("The capital of Japan is")', ""),
    "pieces": ('token_pieces("To be, or not to be", ["2026-11-29", "naïve"])', ""),
    "next": ("recorded_next()", ""),
    "words": ("embedding_map()", ""),
}
PLAN = '<div class="ep-tool" data-tool="plan">'
STARTS |= {
    f"plan-{task}": (PLAN, f"?task={task}&{given}")
    for task, given in {
        "engine": ON,
        "devices": "model=llama3-8b&on=h100&context=8192&devices=4",
        "offload": ON,
        "speculative": "model=llama3-8b&draft=llama3.2-1b&on=h100",
        "bill": "model=llama3-8b&on=h100&batch=8&purchase=9&years=4",
        "training": "model=mixtral-8x7b&on=h100&devices=4",
    }.items()
}
STARTS |= {
    f"station-{name}": (f'station("{name}")', "")
    for name in ("tokens", "embedding", "rope", "neurons", "next", "cache")
}
# Further addresses of each.
OTHERS = {
    "what-if": [
        "?model=llama3-8b&context=32768&weights=fp8&on=h100",
        "?model=mixtral-8x7b&context=8192&on=h100&devices=4",
        "?model=llama3-8b&devices=7&on=h100&weights=int9&context=1e9&n_heads=30",
        "?model=gemma3-27b&way=window&batch=3&context=4096&cache=fp8&on=24GB",
        "?model=llama3-8b&set.num_attention_heads=0&set.hidden_size=0&set.intermediate_size=0&set.vocab_size=1000",
    ],
    "config": [
        "?on=24GB&context=2048#config=%7B%22model_type%22%3A%22gpt2%22%7D",
    ],
    "compare": [
        "?models=internlm3-8b,gemma3-27b,gpt2&on=24GB&context=4096&weights=fp8",
    ],
    "fits": [
        "?on=24GB&context=8192",
        "?on=1GB&context=1024&sort=parameters",
        "?on=rtx-4090&context=2048",
        "?model=llama3-8b&devices=0&batch=x&context=99999999999999999999999999",
        "?model=gpt-oss-20b&devices=2",
        "?on=2GB&context=1024&devices=3",
        "?model=llama3-70b&on=24GB&context=4096",
    ],
    "plan-devices": [
        "?task=devices&model=llama3-8b&devices=2&on=h100&context=8192&prefix=2048&batch=16",
        "?task=devices&model=llama3-8b&devices=2&on=24GB&context=8192",
    ],
    "plan-offload": [
        "?task=offload&model=gpt-oss-20b&on=rtx-4090&context=8192",
        "?task=offload&model=gpt-oss-20b&on=rtx-4090&context=8192&n_cpu_moe=3",
        "?task=offload&model=gpt-oss-20b&on=8GB&context=8192",
        "?task=offload&model=gpt-oss-20b&on=rtx-4090&context=8192&host=96GB",
        "?task=offload&model=gpt-oss-20b&on=rtx-4090&context=8192&n_cpu_moe=3&host=96GB,80GB/s",
    ],
    "plan-engine": [
        "?task=engine&model=llama3.1-8b&on=rtx-4090&context=4096&batch=2",
        "?task=engine&model=llama3-70b&on=rtx-4090&context=4096&engine=vllm",
        "?task=engine&model=deepseek-v3&engine=vllm&cards=16xh200&context=8192&options=--tensor-parallel-size+16+--speculative-config+'%7B%22method%22:%22mtp%22,%22num_speculative_tokens%22:2%7D'",
        "?task=engine&model=llama3-8b&on=h100&engine=sglang&options=--no-such",
        "?task=engine&model=llama3-8b&on=rtx-4090&engine=vllm&context=4097&batch=3",
        "?task=engine&model=llama3-8b&engine=llama.cpp&context=8192&batch=2&cards=rtx-3090%2Brtx-4090&options=-ts+2,3",
    ],
    "plan-bill": [
        "?task=bill&model=llama3-8b&on=h100&batch=8&cached=2000&price_per_hour=2&electricity=0.3",
        "?task=bill&model=llama3-8b&on=24GB",
        "?task=bill&model=llama3-8b&on=h100&engine=vllm&batch=208",
        "?task=bill&model=llama3-8b&on=h100&engine=vllm&batch=209",
    ],
    "plan-training": [
        "?task=training&model=mixtral-8x7b&on=h100&devices=16&zero=1&tensor=2&pipeline=2&expert=2&sequence_parallel=yes&recompute=full&price_per_hour=2",
        "?task=training&model=gpt2&on=24GB&method=lora&rank=8",
        "?task=training&model=llama3-8b&on=h100&devices=8&tokens=1000000000",
        "?task=training&model=llama3-8b&on=80GB&devices=8&tokens=1000000000",
    ],
    "plan-speculative": [
        "?task=speculative&model=llama3.3-70b&draft=llama3.2-1b&on=h200",
        "?task=speculative&model=llama3.3-70b&draft=llama3.2-1b&on=80GB&batch=2",
    ],
    "choose": [
        "?sentence=1&country=Peru&off=1.2%7C0.layer&layer=1&head=2&top_k=3&number=share/1/2/3/1",
        "?text=Tokyo+is+the+capital+of&added=Japan&temperature=0.5&top_p=0.9&word=Japan&position=2&number=norm/6/4/0",
        "?country=Peru&number=map/0/c_attn/1/50",
        "?country=Peru&number=part/1/mlp/7",
        "?text=Tokyo+is+the+captial+of&other=Lima&layer=9&off=7.mlp&top_k=0.5&patch=0.mlp@99&number=a+b",
    ],
    "run": [
        "?text=The+capital+of+Peru+is&other=The+capital+of+Japan+is&patch=0.stream@3&off=1.0%7C0.mlp&top_k=3&temperature=0.5&layer=1&steps=1&step=9",
        "?text=The+currency+of+Peru+is&without=scaling&position=2&top_p=0.9&layer=2&head=3",
        "?text=The+currency+of+Peru+is&layer=9&head=99&number=map/0/c_fc/1/9",
    ],
}
# What is done in one go, after all controls: a field is left while something is wrong, and a machine is written.
WRITES = [
    *(["choose", "on", "Custom"], ["write", "machine", "48GB"], ["write", "machine", "h100"], ["leave", "machine"]),
    *(["choose", "on", "Custom"], ["write", "machine", "9"], ["leave", "machine"], ["write", "machine", "32GB,1TB/s"]),
    *(["write", "context", "0"], ["leave", "context"], ["write", "machine", "64GB"], ["write", "context", "512"]),
]
GOES = {
    "what-if": [*WRITES, ["write", "num_attention_heads", "0"], ["leave", "num_attention_heads"]],
    "config": [
        *(["write", "name", "Llama 3"], ["leave", "name"], ["write", "context", "0"], ["leave", "context"]),
        *(["write", "batch", "4"], ["leave", "batch"], ["write", "context", "256"], ["leave", "context"]),
        *(["press", "Look up"], ["choose", "weights", "fp8"], ["write", "name", "gpt2"], ["press", "Look up"]),
        ["give", "Tensor list", json.dumps({"weight_map": {f"h.0.other.{i}": "a.safetensors" for i in range(30)}})],
    ],
    "fits": WRITES,
    "log": [["write", "log", f"{LOG}\n{LOG}"]],
    # A patch, none, and others, one after the other in the same text.
    "choose": [
        *(["choose", "with", "Japan"], ["press", "cell 0.stream@3"], ["press", "cell 0.stream@3"]),
        *(["press", "cell 1.2@4"], ["press", "cell 1.2@4"], ["press", "cell 2.mlp@4"], ["press", "cell share/"]),
    ],
}
STARTS["plan"] = (PLAN, f"?{ON}")  # of its tasks alone
TASKS = [
    "Several devices",
    "Offload to the host",
    "Speculative decoding",
    "What a token costs",
    "Training",
    "Inference engine",
]
NOT = [
    "Copy",
    "Draw a",
]  # the controls that are left out: what takes a table along has its own test, and chance has none


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The scripts of the pages, the compiled engine, and the data of a few models."""
    folder = tmp_path_factory.mktemp("states") / "assets"
    shutil.copytree(
        ROOT / "docs/assets", folder, ignore=lambda _, names: [n for n in names if "." in n and not n.endswith("js")]
    )
    write_engine(folder)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "node_modules").symlink_to(MODULES)
    shutil.copy(ROOT / "tests/browser/driven.mjs", folder)
    site = json.loads(tool_files.tool_data())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tool_files, "_listed", lambda: list(MODELS))
        texts = {
            "data": json.dumps({**site, "models": {slug: site["models"][slug] for slug in MODELS}}),
            "capacity": tool_files._capacities(),
            "keys": tool_files._keys(),
            "names": tool_files._names(),
            "divided/2": tool_files._divided(2),
        }
    texts |= {"plan": tool_files._plan(), "served": tool_files._served(), "gguf_types": tool_files._gguf_types()}
    texts |= {f"models/{slug}": tool_files._of_model(slug, f"models/{slug}/") for slug in MODELS}
    pages = {f"../models/{slug}": str(macros()["block_diagram"](slug)) for slug in MODELS}
    for name, text in ({f"engine/{name}.json": text for name, text in texts.items()} | pages).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    (folder / "capitals").mkdir()
    for name in tool_files.OF_SMALL:
        shutil.copy(capitals.FOLDER / name, folder / "capitals" / name)
    shutil.copytree(merges.FOLDER, folder / "vocabularies")
    return folder


def driven(folder, name):
    """The steps of a tool, each with its address and all that is shown."""
    place, address = STARTS[name]
    page = place if place[0] == "<" else str(jinja2.Environment().compile_expression(place)(**macros()))
    asked = {"page": page, "address": f"tools/{name}/{address}", "written": WRITTEN, "found": FOUND}
    asked |= {"goes": GOES.get(name)} if name in GOES else {}
    asked |= {"others": OTHERS.get(name, []), "not": NOT + (TASKS if name.startswith("plan-") else [])}
    asked |= {"only": TASKS} if name == "plan" else {"press": SMALL} if name == "run" else {}
    done = subprocess.run([NPM[0], "driven.mjs"], cwd=folder, input=json.dumps(asked), capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def changed(old, new):
    """The lines that are new, and those that are gone without another in their place."""
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("replace", "insert"):
            yield from new[k:m]
        elif tag == "delete":
            yield from (f"gone: {line}" for line in old[i:j])


def cut(lines, most=MOST):
    if len(lines) <= most:
        return lines
    digest = hashlib.blake2b("\n".join(lines[most:]).encode(), digest_size=6).hexdigest()
    return [*lines[:most], f"… {len(lines) - most} more: {digest}"]


def said(steps):
    """Each step, with the address if it is another, and the lines that it changes."""
    before, at = [], ""
    for step in steps:
        if step["step"] != "reload":
            yield f"### {step['step']}"
            if step["address"] != at:
                yield f"address: {step['address']}"
            is_whole = step["step"].startswith("at ") or step.get("isNew")
            yield from cut(step["lines"], 1000) if is_whole else cut([*changed(before, step["lines"])])
        before, at = step["lines"], step["address"]


SMALL = "Run this site’s small model"


def plain(lines):
    """Without the digests of drawings, since a figure is served as Python draws it, and how tables are sorted."""
    lines = [re.sub(r"^drawn \w+|\w+$", "drawn", line) if line.startswith("drawn") else line for line in lines]
    return [re.sub(r"<([^<>→]*)>( \(sort=\w+\))?", r"\1", line) if line.startswith("| ") else line for line in lines]


def pressed(lines):
    """What can be pressed in tables: a column that has got figures sorts them as one that had them from the start."""
    return {name for line in lines if line.startswith("| ") for name in re.findall(r"<([^<>→]*)>", line)}


def unlike(steps):
    """What a new page shows at the address of each step, and the step did not, or the other way round."""
    for before, step in zip(steps, steps[1:]):
        if step["step"] == "reload" and not any(line.startswith("alert: ") for line in step["before"]):
            old, new = Counter(plain(step["before"])), Counter(plain(step["lines"]))
            more = pressed(step["lines"]) - pressed(step["before"])
            yield [
                before["step"],
                *(f"- {line}" for line in old - new),
                *(f"+ {line}" for line in new - old),
                *(f"+ <{name}>" for name in more),
            ]


@pytest.mark.parametrize("name", STARTS)
def test_each_control_of_a_tool_does_what_was_approved(folder, name):
    steps = driven(folder, name)
    text, path = "\n".join(said(steps)) + "\n", STATES / f"{name}.txt"
    if os.environ.get("APPROVE"):
        path.parent.mkdir(exist_ok=True)
        return path.write_text(text, "utf-8")
    was = path.read_text("utf-8") if path.is_file() else ""
    lines = difflib.unified_diff(was.splitlines(), text.splitlines(), "approved", "now", lineterm="", n=1)
    assert text == was, "\n".join([MEND, *list(lines)[:60]])
    assert name == "pieces" or not [others for others in unlike(steps) if others[1:]]  # its form comes at a press


def test_each_text_is_of_a_tool():
    assert {path.stem for path in STATES.glob("*.txt")} == STARTS.keys()


ASKED = STATES.parent / "scripts" / "asked.txt"
OF_A_SCRIPT = 300  # characters of an answer; of what comes after them only a digest


def names_of(source):
    """What a script defines at its top level: functions, classes and constants, also several of one `const`."""
    found, is_const = [], False
    for line in source.splitlines():
        if m := re.match(r"(?:export )?(?:(?:async )?function\*?|class|const) (\w+)", line):
            found.append(m[1])
        if line[:1].strip():
            is_const = bool(re.match(r"(?:export )?const \w", line)) or is_const and line[0] in "})]`/"
        elif is_const and (m := re.match(r"  (\w+) = ", line)):
            found.append(m[1])
    return found


def test_each_script_answers_as_was_approved(folder, tmp_path):
    """Constants, rules, what functions make of plain values, and the expressions that stand in the text."""
    place = tmp_path / "assets"
    shutil.copytree(folder, place, symlinks=True)
    shutil.copy(ROOT / "tests/browser/asked.mjs", place)
    was = ASKED.read_text("utf-8") if ASKED.is_file() else ""
    expressions = {part.partition("\n")[0]: re.findall(r"^= (.*)", part, re.M) for part in was.split("\n## ")}
    asked = []
    for path in sorted((ROOT / "docs/assets").rglob("*.mjs")):
        script, source = path.relative_to(ROOT / "docs/assets").as_posix(), path.read_text("utf-8")
        if not script.startswith(("vendor/", "capitals/")) and "postMessage" not in source:
            (place / script).write_text(
                f"{source}\nexport const itsNames = {{ {', '.join(names_of(source))} }}\n", "utf-8"
            )
            numbers = {
                float(text.replace("_", "")) for text in re.findall(r"(?<![\w.#])\d[\d_]*(?:\.\d+)?(?:e\d+)?\b", source)
            }
            asked.append({"script": script, "expressions": expressions.get(script, []), "numbers": sorted(numbers)})
    done = subprocess.run([NPM[0], "asked.mjs"], cwd=place, input=json.dumps(asked), capture_output=True, text=True)
    assert not done.returncode, done.stderr
    text = "What scripts answer: constants, edges of rules, functions of plain values, and expressions, with =.\n"
    for script, answers in json.loads(done.stdout.replace(tmp_path.as_uri(), "")).items():
        if answers:
            text += f"\n## {script}\n"
        for name, value in answers.items():
            more = (
                hashlib.blake2b(value[OF_A_SCRIPT:].encode(), digest_size=6).hexdigest() if value[OF_A_SCRIPT:] else ""
            )
            value = value[:OF_A_SCRIPT].replace("\n", "⏎")
            text += f"{name}\n    {value}{more and f' … {more}'}\n"
    if os.environ.get("APPROVE"):
        ASKED.parent.mkdir(exist_ok=True)
        ASKED.write_text(text, "utf-8")
        was = text
    lines = difflib.unified_diff(was.splitlines(), text.splitlines(), "approved", "now", lineterm="", n=1)
    assert text == was, "\n".join([MEND, *list(lines)[:60]])
