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
    "compare": "tools/compare/?models=deepseek-v3,llama3-8b",
    "fits-model": "tools/fits/?model=llama3-70b&context=8192",
    "fits-machine": "tools/fits/?on=24GB&context=8192",
    "fits-small": "tools/fits/?on=1GB&context=1024&sort=parameters",
    "fits-card": "tools/fits/?on=rtx-4090&context=2048",
    "fits-problems": "tools/fits/?model=llama3-8b&devices=0&batch=x&context=99999999999999999999999999",
    "fits-devices": "tools/fits/?model=gpt-oss-20b&devices=2",
    "plan-split": "tools/plan/?task=devices&model=llama3-70b&on=h100&devices=8&context=8192&batch=16",
    "plan-prefix": "tools/plan/?task=devices&model=llama3-8b&devices=2&on=h100&context=8192&prefix=2048&batch=16",
    "plan-offload": "tools/plan/?task=offload&model=gpt-oss-20b&on=rtx-4090&context=8192",
    "plan-engine": "tools/plan/?task=engine&model=llama3.1-8b&on=rtx-4090&context=16384",
    "plan-engine-none": "tools/plan/?task=engine&model=llama3-70b&on=rtx-4090&context=4096&engine=vllm",
    "plan-speculative": "tools/plan/?task=speculative&model=llama3.3-70b&draft=llama3.2-1b&on=h200",
    "plan-lora": "tools/plan/?task=training&model=gpt2&on=24GB&method=lora&rank=8",
    "plan-training": "tools/plan/?task=training&model=llama3-8b&on=h100&devices=8&tokens=1000000000",
    "run": "tools/run/",
    "config": "tools/config/",
    "step-by-step": "real-numbers/step-by-step/?ids=96&step=3",
    "stations-attention": "what-happens/attention-deep-dive/",
    "stations-tokens": "what-happens/tokens/",
    "stations-embeddings": "what-happens/embeddings/",
    "stations-kv-cache": "what-happens/kv-cache/",
    "stations-scores": "what-happens/final-vector-to-token/",
}
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


def shown_at(page) -> str:
    """What a page shows once its tool has answered."""
    said = as_text(page.evaluate(READ, WAITS), 30_000)
    said = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1", said)  # any free port
    return re.sub(r"\d+ of \d+ models|\d+ more would", "some models", said)  # a new preset changes nothing


def approved_at(name: str) -> str:
    path = TOOLS / f"{name}.txt"
    return path.read_text("utf-8").rstrip("\n") if path.is_file() else ""


def write_at(folder: Path, name: str, said: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.txt").write_text(said + "\n", "utf-8")
