"""What the tools show in a browser, as text: each address with a tool's answer, in `texts/tools/<name>.txt`."""

from __future__ import annotations

import re
from pathlib import Path

from . import TEXTS, as_text

TOOLS = TEXTS / "tools"
# Each address gives an answer without a further key. More of them, and what each control does: test_states.py.
ADDRESSES = {
    "what-if-changed": "tools/what-if/?model=gpt2&n_layers=24&context=2048&on=24GB",
    "compare": "tools/compare/?models=deepseek-v3,llama3-8b",
    "fits-model": "tools/fits/?model=llama3-70b&context=8192",
    "plan-split": "tools/plan/?task=devices&model=llama3-70b&on=h100&devices=8&context=8192&batch=16",
    "plan-engine-cards": "tools/plan/?task=engine&model=llama3-8b&engine=llama.cpp&context=8192&batch=2"
    "&cards=rtx-3090%2Brtx-4090&options=-ts+2,3",
    "run": "tools/run/",
    "run-small": "tools/run/?text=The+capital+of+Peru+is&layer=1&head=2&lines=1&number=share/1/2/3/1",
    "config": "tools/config/",
    "step-by-step": "real-numbers/step-by-step/?ids=96&step=3",
    "choose-with": "real-numbers/step-by-step/?country=Peru&with=Japan&patch=1.2@4%7C0.stream@3&without=scaling&lines=1"
    "&number=part/1/2/322#choose-a-country",
    "stations-attention": "what-happens/attention-deep-dive/",
    "stations-tokens": "what-happens/tokens/",
    "stations-embeddings": "what-happens/embeddings/",
    "stations-kv-cache": "what-happens/kv-cache/",
    "stations-scores": "what-happens/final-vector-to-token/",
}
# Some answer at a press alone.
PRESSES = {"run-small": "Run this site’s small model"}
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
