"""What the site's tools are given in a browser: addresses and files that nobody would write.

Each tool stands with its form, says in a line what it does not take, makes no markup of it, and takes seconds at most.
One page mounts one tool after the other: that of whoever calls `use`, or one of a browser of our own.
"""

from __future__ import annotations

import atexit
import base64
import json
import random
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from macros.counting.accelerators import accelerators
from macros.counting.formats import CACHE_BYTES, WEIGHTS
from macros.engine.errors import seen
from macros.engine.variations import VARIATIONS

from . import Case, TooLong, configs, gguf_headers, headers, own_machines
from .questions import AMOUNTS, keys_of, slugs
from .texts import MARK, text

FEW = 40
SECONDS = 4.0  # in the page, of a tool that comes or a file that is read; a test's machine may be busy

ROOT = Path(__file__).parent.parent.parent
TOOLS = (
    "what-if",
    "what-if",
    "what-if",
    "config",
    "config",
    "config",
    "compare",
    "compare",
    "capitals",
    "run",
    "fits",
    "fits",
    "plan",
    "plan",
    "plan",
)
MODULES = {"config": "what-if"}
NAMES = {
    "what-if": ("model", "context", "batch", "weights", "cache", "on", "devices", "way"),
    "config": ("context", "batch", "weights", "cache", "on", "devices", "way"),
    "compare": ("models", "models", "context", "weights", "cache", "on"),
    "fits": (
        "model",
        "model",
        "on",
        "context",
        "batch",
        "weights",
        "cache",
        "devices",
        "sort",
        "order",
        "family",
        "kind",
        "licence",
        "least",
        "most",
    ),
    "plan": (
        *("task", "task", "model", "on", "context", "batch", "weights", "cache", "devices", "engine", "dispatch"),
        *(
            "split",
            "prefix",
            "host",
            "gpu_layers",
            "n_cpu_moe",
            "draft",
            "draft_tokens",
            "acceptance",
            "method",
            "rank",
        ),
        *("target_modules", "bias", "modules_to_save", "optimizer", "zero", "tensor", "pipeline", "recompute"),
        *("expert", "sequence", "micro_batch", "tokens", "utilization", "watts"),
    ),
    "capitals": (
        *("country", "sentence", "text", "added", "temperature", "top_k", "top_p", "layer", "head", "off", "word"),
        "number",
    ),
    "run": (
        *("text", "source", "other", "added", "temperature", "top_k", "top_p", "layer", "head", "off", "patch", "word"),
        *("position", "lines", "number", "steps", "step"),
    ),
}
DIGITS = "9" * 20_000
NUMBERS = ("0", "-1", "1", "7", "8", "8192", "999999999", "1000000000", "65536", "65537", "2147483648", "1e5", "0x10")
NUMBERS += (
    "1.5",
    "NaN",
    "Infinity",
    "-0",
    "007",
    " 8 ",
    "٣",
    "",
    "32k",
    DIGITS,
    "-" + DIGITS,
    f"1e{DIGITS}",
    f"0.{DIGITS}",
)
TEXTS = (
    "null",
    "true",
    "[1]",
    "{}",
    "[" * 20_000,
    '{"a":' * 5000,
    '"\\ud800"',
    "\\",
    '"',
    "'",
    "%",
    "%E0%A4%A",
    "a,b,,",
)
TEXTS += ("__proto__", "constructor", "toString", "x" * 100_000, "1," * 20_000)
OF_OBJECTS = (
    "set.__proto__",
    "set.",
    "set",
    "__proto__",
    "constructor",
    "config",
    "set.model_type",
    "set.architectures",
)
BROKEN = (
    "",
    " ",
    "1",
    "null",
    "[]",
    '"a"',
    "{",
    "}",
    "{}",
    '{"a":}',
    "\ufeff{}",
    "{} {}",
    "// a\n{}",
    "{'a': 1}",
    "\x00",
)
MACHINES = ("24GB", "1008GB/s", "165TFLOPS", "fp8:330TFLOPS", "link:900GB/s", "2xDDR5-5600", "0GB/s", "1e-400TFLOPS")
MACHINES += (f"{DIGITS}GB", f"{DIGITS}xDDR5-{DIGITS}", "fp9:1TFLOPS", "GB/s", "link:", ":", "1,1GB", "24GB,24GB")
LISTS = ("model.safetensors.index.json", "x.safetensors", "x.json", "x")


def draw(rng: random.Random) -> Case:
    tool = rng.choice(TOOLS)
    slug = rng.choice(slugs())
    pairs = [("model", slug)] if tool == "what-if" and rng.random() < 0.5 else []
    pairs += [pair(rng, tool, slug) for _ in range(rng.choice((0, 1, 1, 2, 3, 20)))]
    case: Case = {"tool": tool, "pairs": pairs, "hash": "", "file": None}
    if tool == "config" or rng.random() < 0.05:
        case["hash"] = rng.choice(("#config=", "#config=", "#config=", "#config", "#=", "#")) + encoded(config(rng))
    if tool == "config" and rng.random() < 0.4:
        case["file"] = file(rng)
    return case


def encoded(said: str) -> str:
    return quote(said, safe="", errors="surrogatepass")


def pair(rng: random.Random, tool: str, slug: str) -> tuple[str, str]:
    """A name and a value of an address; often one of them is as it should be."""
    if tool in ("what-if", "config") and rng.random() < 0.5:
        names, value, kind, is_size = rng.choice(keys_of(slug))
        other = configs.likely(rng, value, kind, is_size) if rng.random() < 0.5 else configs.strange(rng, value)
        said = other if isinstance(other, str) else json.dumps(other)[:100_000]
        return f"set.{rng.choice((*names, names[-1]))}", rng.choice((said, said, rng.choice(NUMBERS)))
    name = rng.choice(NAMES[tool]) if rng.random() < 0.9 else rng.choice((*OF_OBJECTS, text(rng)))
    kind = rng.random()
    if kind < 0.3:
        return name, likely(rng, name)
    if kind < 0.6:
        return name, rng.choice(NUMBERS)
    return name, rng.choice(TEXTS) if kind < 0.8 else text(rng)


def likely(rng: random.Random, name: str) -> str:
    """A value that a name may have."""
    known: dict[str, Any] = {
        "model": slugs(),
        "weights": [*WEIGHTS, "best", "Best", "q4_k_m"],
        "sort": ["left", "takes", "model", "kind"],
        "order": ["ascending", "descending"],
        "family": ["Gemma", "Qwen"],
        "kind": ["dense", "mixture of experts", "hybrid"],
        "licence": ["apache-2.0", "mit", "MIT"],
        **dict.fromkeys(("least", "most"), ["100M", "1B", "3B", "10B", "30B", "100B", "300B", "2B", "1b"]),
        "cache": [*CACHE_BYTES],
        "on": [*accelerators()],
        "way": [*VARIATIONS],
        "task": ["engine", "devices", "offload", "speculative", "training"],
        "engine": ["vllm", "llama.cpp", "transformers", "mlx"],
        "split": ["8,1,1", "1,8,1", "2,2,2"],
        "host": ["64GB,2xDDR5-5600", "96GB"],
        "draft": [*slugs(), "none"],
        "acceptance": ["0.5", "1", "0"],
        "method": ["full", "lora", "dora", "qlora"],
        "target_modules": ["all-linear", "q_proj,v_proj", "c_attn"],
        "zero": ["0", "1", "2", "3", "fsdp"],
        "tokens": ["15T", "1.5B", "7"],
        "utilization": ["0.4", "1"],
        "country": ["France", "Peru", "the Netherlands"],
        "added": ["Paris", "the|capital", "|", "Paris|Paris"],
        "text": ["Lima is the capital of", "New Zealand", "the Unit", ". . .", "is " * 20],
        "off": ["0.0", "1.2|2.mlp", "0.layer|1.layer|2.layer", "0.0|0.0", "3.0"],
        "word": ["Lima", "the Gambia"],
        "number": ["share/1/2/4/3", "map/2/down/0/47", "norm/6/0/0", "stream/7/0/0", "token/15/0", "logit/590", "12/7"],
    }
    if name == "on" and rng.random() < 0.3:
        return own_machines.machine(rng)
    if name == "on" and rng.random() < 0.4:
        parts = rng.sample((*MACHINES, *AMOUNTS), rng.choice((1, 2, 3, 5)))
        return ",".join([rng.choice(known["on"]), *parts] if rng.random() < 0.3 else parts)
    if name == "models":
        return ",".join(rng.choice((*slugs(), "none")) for _ in range(rng.choice((1, 2, 4, 5, 300))))
    return rng.choice(known.get(name, ["1", "2", "8", "64", "4096"]))


def config(rng: random.Random) -> str:
    """A config.json: a published one that was changed, or hardly JSON."""
    if rng.random() < 0.25:
        return rng.choice((*BROKEN, *TEXTS, *NUMBERS, text(rng)))
    said = json.dumps(configs.config(configs.draw(rng)))
    kind = rng.random()
    if kind < 0.1:
        return said[: rng.randrange(len(said))]
    at = rng.randrange(len(said))
    return said[:at] + rng.choice((",", "\x00", '"', "9", "\ufeff", text(rng))) + said[at:] if kind < 0.15 else said


def file(rng: random.Random) -> dict[str, Any]:
    """A file for one of the two places that take one: its name, its place, its bytes in base 64, or the changes of a
    GGUF file."""
    if rng.random() < 0.3:
        return {"name": "x.gguf", "place": "config.json file", "gguf": gguf_headers.draw(rng)}
    is_list = rng.random() < 0.6
    if not is_list:
        content = config(rng).encode("utf-8", "surrogatepass")
    elif rng.random() < 0.5:
        names = [rng.choice((*headers.NAMES, "model.embed_tokens.weight")) for _ in range(rng.choice((0, 1, 3)))]
        table = {name: {"dtype": "BF16", "shape": rng.choice(headers.SHAPES)} for name in names}
        content = json.dumps(configs.strange(rng, table) if rng.random() < 0.5 else table).encode()
        length = rng.choice(
            (len(content), len(content), len(content) - 1, len(content) + 1, 0, 2**24 + 1, 2**63, 2**64 - 1)
        )
        content = max(length, 0).to_bytes(8, "little") + content
    else:
        content = json.dumps(configs.strange(rng, {"weight_map": {"a": "b"}})).encode()
    if rng.random() < 0.15:
        content = content[: rng.randrange(len(content) + 1)] + bytes([rng.randrange(256)])
    return {
        "name": rng.choice(LISTS) if is_list else "config.json",
        "place": "Tensor list" if is_list else "config.json file",
        "bytes": base64.b64encode(content[:2_000_000]).decode(),
    }


def smaller(case: Case) -> Iterator[Case]:
    if case["file"]:
        yield case | {"file": None}
    if case["hash"]:
        yield case | {"hash": ""}
    for i, (name, value) in enumerate(case["pairs"]):
        rest = case["pairs"][:i], case["pairs"][i + 1 :]
        yield case | {"pairs": [*rest[0], *rest[1]]}
        if len(value) > 1:
            yield case | {"pairs": [*rest[0], (name, value[: len(value) // 2]), *rest[1]]}


def trial(case: Case, folder: Path) -> None:
    given = {
        "tool": case["tool"],
        "module": MODULES.get(case["tool"], case["tool"]),
        "address": "?" + "&".join(f"{encoded(k)}={encoded(v)}" for k, v in case["pairs"]) + case["hash"],
        "file": case["file"],
        "mark": MARK,
    }
    if case["file"] and "gguf" in case["file"]:
        data = gguf_headers.content(case["file"]["gguf"], folder)
        given["file"] = case["file"] | {"bytes": base64.b64encode(data).decode()}
    answer = _asked(given)
    assert not answer["errors"], answer["errors"][0]
    assert answer["stands"], "the tool does not stand"
    if answer["milliseconds"] >= 1000 * SECONDS:
        raise TooLong(f"took {answer['milliseconds']:.0f} ms")
    assert not answer["marked"], answer["marked"]
    for line in answer["lines"]:
        assert "\n" not in line and seen(line) == line, f"not as it may stand in a line: {line[:300]!r}"
        assert len(line) < 2200, f"a line of {len(line):,} characters: {line[:200]!r}"
        bare = re.sub(r"'.*'|\".*\"|[‘“].*[’”]", "", line)
        assert not re.search(INNER, bare), f"an inner error: {line[:300]!r}"
    if case["tool"] in ("what-if", "compare", "fits", "plan"):
        assert answer["answer"], f"no answer, and {answer['lines']}"


INNER = (
    r"<class |unsupported operand|out of bounds|\bundefined\b|is not a function|annot (read|convert|mix)|call stack|"
    r"\[object|an error of this page|NaN\b"
)


# The page

MOUNT = """async ({ tool, module, address, file, mark }) => {
    const root = globalThis.toolsRoot
    globalThis.errors ??= (() => {
        const all = []
        addEventListener("error", event => all.push(`${event.error?.stack ?? event.message}`))
        addEventListener("unhandledrejection", event => all.push(`${event.reason?.stack ?? event.reason}`))
        return all
    })()
    errors.length = 0
    const { mount } = await import(new URL(`tools/${module}.mjs`, root))
    for (const old of document.querySelectorAll(".ep-tool")) old.remove()
    history.replaceState(null, "", location.pathname + address)
    const place = document.createElement("div")
    place.className = "ep-tool"
    place.dataset.tool = tool
    document.body.append(place)
    const started = performance.now(), pause = () => new Promise(resolve => setTimeout(resolve, 5))
    const until = async isSo => { for (let n = 0; n < 1000 && !isSo(); n++) await pause() }
    const lines = () => [...place.querySelectorAll("[role=alert]:not([hidden])")].map(e => e.textContent)
    const answer = () => place.querySelector(".ep-answer")?.textContent ?? ""
    try {
        await mount(place)
        const asked = "country|sentence|text|added|temperature|top_k|top_p|layer|head|off|word|number"
        if (tool === "capitals" && new RegExp(`(${asked})=`).test(address))
            await until(() => answer() && !answer().includes("Loading"))
        if (file) {
            const label = [...place.querySelectorAll("label")].find(e => e.textContent.startsWith(file.place)),
                input = label.querySelector("input"), given = new DataTransfer()
            const bytes = Uint8Array.from(atob(file.bytes), c => c.charCodeAt(0))
            given.items.add(new File([bytes], file.name))
            input.files = given.files
            const before = lines().join("\\n") // an element of a line is used again for the next
            delete place.dataset.milliseconds
            input.dispatchEvent(new Event("change"))
            await until(() => place.dataset.milliseconds || lines().join("\\n") !== before)
        }
    } catch (error) {
        errors.push(`${error?.stack ?? error}`)
    }
    const milliseconds = performance.now() - started
    await pause()
    const strange = `${mark}, .${mark}, #${mark}, [${mark}], script, img, iframe, [href^="javascript:"]`
    const marked = [...place.querySelectorAll(strange)]
    if (globalThis[mark]) marked.push(document.body)
    return {
        milliseconds, lines: lines(), answer: answer(), errors: [...errors],
        stands: place.querySelector("form.ep-whatif") !== null,
        marked: marked.map(e => e.outerHTML.slice(0, 200)).join(),
    }
}"""

_page: list[Any] = []  # one, with what ends its browser


def use(page: Any, root: str) -> None:
    """Take the tools of this page's site; `root` is the address of the folder that has them."""
    page.evaluate("root => { globalThis.toolsRoot = root }", root)
    _page[:] = [page, None]


def leave() -> None:
    """Take no page any more, before it is closed."""
    _page.clear()


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    if not _page:
        _own()
    page, end = _page
    try:
        with _at_most(10 * SECONDS):
            return page.evaluate(MOUNT, given)
    except TooLong:
        _page.clear()
        if end:
            end()
        raise


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise `TooLong` where the block takes more seconds of the clock: the page computes in another process."""

    def too_long(*_: object):
        raise TooLong(f"no answer within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@cache
def _folder() -> Path:
    """The tools without pages: their scripts, the compiled engine, the models' data."""
    from macros.site.tool_files import tool_files

    folder = Path(tempfile.mkdtemp(prefix="fuzz-tools-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / "assets", folder / "assets")
    for one in tool_files():
        path = folder / one.path
        path.parent.mkdir(parents=True, exist_ok=True)
        content = one.make()
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "index.html").write_text("<!doctype html><meta charset=utf-8><title>tools</title>", "utf-8")
    return folder


def _own() -> None:
    """A browser of our own, whose page has the tools."""
    from chromium import chromium_path
    from playwright.sync_api import sync_playwright
    from serving import served

    server = served(_folder())
    address = server.__enter__()
    playwright = sync_playwright().start()
    browser = playwright.chromium.launch(
        executable_path=chromium_path(), args=["--no-sandbox", "--disable-gpu", "--disable-ipc-flooding-protection"]
    )
    page = browser.new_page()
    page.goto(address)

    def end() -> None:
        browser.close()
        playwright.stop()
        server.__exit__(None, None, None)

    use(page, f"{address}assets/")
    _page[1] = end
    atexit.register(_ended, end)


def _ended(end: Callable[[], None]) -> None:
    if _page and _page[1] is end:
        end()
