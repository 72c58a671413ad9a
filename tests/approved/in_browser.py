"""What the tools show in a browser, as text: each address with a tool's answer, in `texts/tools/<name>.txt`."""

from __future__ import annotations

import re
from pathlib import Path

from . import TEXTS, as_text

TOOLS = TEXTS / "tools"
# Each address gives an answer without a further key; some have several, at what most differs.
ADDRESSES = {
    "what-if": "tools/what-if/?model=llama3-8b&context=32768&weights=fp8&on=h100",
    "what-if-experts": "tools/what-if/?model=mixtral-8x7b&context=8192&on=h100&devices=4",
    "what-if-changed": "tools/what-if/?model=gpt2&n_layers=24&context=2048&on=24GB",
    "what-if-problems": "tools/what-if/?model=llama3-8b&devices=7&on=h100&weights=int9&context=1e9&n_heads=30",
    "what-if-way": "tools/what-if/?model=gemma3-27b&way=window&batch=3&context=4096&cache=fp8&on=24GB",
    "what-if-own": "tools/what-if/?on=24GB&context=2048#config=%7B%22model_type%22%3A%22gpt2%22%7D",
    "compare": "tools/compare/?models=deepseek-v3,llama3-8b",
    "compare-three": "tools/compare/?models=internlm3-8b,gemma3-27b,gpt2&on=24GB&context=4096&weights=fp8",
    "fits-model": "tools/fits/?model=llama3-70b&context=8192",
    "fits-machine": "tools/fits/?on=24GB&context=8192",
    "fits-small": "tools/fits/?on=1GB&context=1024&sort=parameters",
    "fits-card": "tools/fits/?on=rtx-4090&context=2048",
    "fits-problems": "tools/fits/?model=llama3-8b&devices=0&batch=x&context=99999999999999999999999999",
    "fits-devices": "tools/fits/?model=gpt-oss-20b&devices=2",
    "plan-split": "tools/plan/?task=devices&model=llama3-70b&on=h100&devices=8&context=8192&batch=16",
    "plan-prefix": "tools/plan/?task=devices&model=llama3-8b&devices=2&on=h100&context=8192&prefix=2048&batch=16",
    "plan-offload": "tools/plan/?task=offload&model=gpt-oss-20b&on=rtx-4090&context=8192",
    "plan-engine": "tools/plan/?task=engine&model=llama3.1-8b&on=rtx-4090&context=4096&batch=2",
    "plan-engine-none": "tools/plan/?task=engine&model=llama3-70b&on=rtx-4090&context=4096&engine=vllm",
    "plan-engine-cards": "tools/plan/?task=engine&model=llama3-8b&engine=llama.cpp&context=8192&batch=2"
    "&cards=rtx-3090%2Brtx-4090&options=-ts+2,3",
    "plan-engine-draft": "tools/plan/?task=engine&model=deepseek-v3&engine=vllm&cards=16xh200&context=8192"
    "&options=--tensor-parallel-size+16+--speculative-config+'%7B%22method%22:%22mtp%22,%22num_speculative_tokens%22:2%7D'",
    "plan-engine-refused": "tools/plan/?task=engine&model=llama3-8b&on=h100&engine=sglang&options=--no-such",
    "plan-bill": "tools/plan/?task=bill&model=llama3-8b&on=h100&batch=8&cached=2000&price_per_hour=2&electricity=0.3",
    "plan-offload-experts": "tools/plan/?task=offload&model=gpt-oss-20b&on=rtx-4090&context=8192&n_cpu_moe=3",
    "plan-pipeline": "tools/plan/?task=training&model=mixtral-8x7b&on=h100&devices=16&zero=1&tensor=2&pipeline=2"
    "&expert=2&sequence_parallel=yes&recompute=full&price_per_hour=2",
    "plan-speculative": "tools/plan/?task=speculative&model=llama3.3-70b&draft=llama3.2-1b&on=h200",
    "plan-lora": "tools/plan/?task=training&model=gpt2&on=24GB&method=lora&rank=8",
    "plan-training": "tools/plan/?task=training&model=llama3-8b&on=h100&devices=8&tokens=1000000000",
    "run": "tools/run/",
    "run-small": "tools/run/?text=The+capital+of+Peru+is&layer=1&head=2&lines=1&number=share/1/2/3/1",
    "run-changed": "tools/run/?text=The+capital+of+Peru+is&other=The+capital+of+Japan+is&patch=0.stream@3"
    "&off=1.0%7C0.mlp&top_k=3&temperature=0.5&layer=1&steps=1&step=9",
    "run-without": "tools/run/?text=The+currency+of+Peru+is&without=scaling&position=2&top_p=0.9&layer=2&head=3",
    "config": "tools/config/",
    "step-by-step": "real-numbers/step-by-step/?ids=96&step=3",
    "choose-with": "real-numbers/step-by-step/?country=Peru&with=Japan&patch=1.2@4%7C0.stream@3&without=scaling&lines=1"
    "&number=part/1/2/322#choose-a-country",
    "choose-off": "real-numbers/step-by-step/?sentence=1&country=Peru&off=1.2%7C0.layer&layer=1&head=2&top_k=3"
    "&number=share/1/2/3/1#choose-a-country",
    "choose-own": "real-numbers/step-by-step/?text=Tokyo+is+the+capital+of&added=Japan&temperature=0.5&top_p=0.9"
    "&word=Japan&position=2&number=norm/6/4/0#choose-a-country",
    "choose-problems": "real-numbers/step-by-step/?text=Tokyo+is+the+captial+of&other=Lima&layer=9&off=7.mlp&top_k=0.5"
    "&patch=0.mlp@99&number=a+b#choose-a-country",
    "stations-attention": "what-happens/attention-deep-dive/",
    "stations-tokens": "what-happens/tokens/",
    "stations-embeddings": "what-happens/embeddings/",
    "stations-kv-cache": "what-happens/kv-cache/",
    "stations-scores": "what-happens/final-vector-to-token/",
}
# Some answer at a press alone.
PRESSES = dict.fromkeys(("run-small", "run-changed", "run-without"), "Run this site’s small model")
WAITS = 1200  # milliseconds without a change, after which a page is taken to have its answer
# Waits until nothing in the page has changed for so long, or for 20 seconds; then everything that is shown, without
# what is hidden, with the values of its fields, of each tool in the page.
READ = """async waits => {
    const page = document.querySelector(".md-content")
    await new Promise(done => {
        let timer = setTimeout(done, waits)
        new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(done, waits) })
            .observe(page, { subtree: true, childList: true, characterData: true, attributes: true })
        setTimeout(done, 20000)
    })
    const both = [...page.querySelectorAll(".ep-tool, .ep-stepper")]
    const tools = both.filter(one => !one.parentElement.closest(".ep-tool"))
    const places = tools.length ? tools : [page]
    const within = selector => places.flatMap(place => [...place.querySelectorAll(selector)])
    within("input, select, textarea").forEach(field => {
        if (["checkbox", "radio"].includes(field.type)) field.setAttribute("value", field.checked ? "on" : "off")
        else if (field.localName === "select")
            for (const one of field.options) {
                one.setAttribute("value", one.value) // a library may leave it to the text
                one.toggleAttribute("selected", one.selected)
            }
        else if (field.type !== "file") field.setAttribute("value", field.value)
    })
    const seen = one => !one.hidden && getComputedStyle(one).display !== "none"
    return places.map(place => {
        const copy = place.cloneNode(true)
        const shown = [...place.querySelectorAll("*")], copies = [...copy.querySelectorAll("*")]
        shown.forEach((one, n) => { if (!seen(one)) copies[n].remove() })
        for (const one of copy.querySelectorAll(".ep-cite, .headerlink, nav")) one.remove()
        return copy.innerHTML
    }).join("")
}"""


def shown_at(page, name: str) -> str:
    """What a page shows once its tool has answered."""
    if name in PRESSES:
        page.get_by_role("button", name=PRESSES[name]).click()
        page.get_by_text("The last step took").wait_for()
    said = as_text(page.evaluate(READ, WAITS), 30_000)
    said = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1", said)  # any free port
    said = re.sub(r"took [\d.,]+ m?s", "took some time", said)
    return re.sub(r"\d+ of \d+ models|\d+ more would", "some models", said)  # a new preset changes nothing


def approved_at(name: str) -> str:
    path = TOOLS / f"{name}.txt"
    return path.read_text("utf-8").rstrip("\n") if path.is_file() else ""


def write_at(folder: Path, name: str, said: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.txt").write_text(said + "\n", "utf-8")
