"""The generated pages, on a small copy of the site: what is built, and what a wrong preset does to a build and to the live preview."""

import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from html import unescape
from pathlib import Path

import pytest

from macros.catalogue import presets

ROOT = Path(__file__).parent.parent
MODELS = ("gpt2", "llama3-8b", "gemma2-2b", "gpt-4")


def small_site(folder: Path) -> Path:
    """A copy of the project with four models and two pages."""
    ignored = shutil.ignore_patterns("__pycache__", "presets")
    shutil.copytree(ROOT / "macros", folder / "macros", ignore=ignored)
    for slug in MODELS:
        path = presets.paths()[slug]
        (folder / "macros" / "presets" / path.parent.name).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / "macros" / "presets" / path.parent.name)
    for part in ("assets", "overrides", "includes"):
        shutil.copytree(ROOT / "docs" / part, folder / "docs" / part)
    (folder / "docs" / "models").mkdir()
    (folder / "docs" / "index.md").write_text("# Home\n\n{{ params('gpt2') }}\n")
    (folder / "docs" / "models" / "index.md").write_text("# Models\n\n{{ catalogue() }}\n")
    config = (ROOT / "mkdocs.yml").read_text()
    (folder / "mkdocs.yml").write_text(
        config[: config.index("\nnav:")] + "\nnav:\n  - Home: index.md\n  - Models:\n      - models/index.md\n"
    )
    return folder


def preset_path(folder: Path, slug: str) -> Path:
    return next(folder.glob(f"macros/presets/*/{slug}.toml"))


def build(folder: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"], cwd=folder, text=True, capture_output=True
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = small_site(tmp_path_factory.mktemp("site"))
    built = build(folder)
    assert built.returncode == 0, built.stderr[-3000:]
    return folder / "site"


def page(site: Path, path: str) -> str:
    return (site / path / "index.html").read_text(encoding="utf-8")


def test_every_preset_has_a_page_with_its_total(site):
    for slug, family in (("gpt2", "gpt"), ("llama3-8b", "llama"), ("gemma2-2b", "gemma")):
        html = page(site, f"models/{family}/{slug}")
        assert f"{presets.model(slug).counts.total:,}" in html
        assert html.count('<figure class="diagram"') == 1 + len(
            {str(n.kind) for n in presets.model(slug).trace.root.children if n.layers}
        )
        for heading in ("every-parameter", "the-formula", "kv-cache", "sources", "what-was-checked"):
            assert re.search(rf'<h[23][^>]* id="{heading}"', html)
        assert f"every-parameter describe {slug}" in re.sub(r"<[^>]+>", "", html)


def test_an_undisclosed_model_has_an_honest_page(site):
    html = page(site, "models/gpt/gpt-4")
    content = html[html.index("<article") : html.index("</article")]
    assert "has not disclosed" in content and "<table" not in content and "<figure" not in content


def test_families_list_their_models_and_are_in_the_navigation(site):
    family = page(site, "models/gpt")
    assert family.index("GPT-2 Small</a>") < family.index("GPT-4</a>")
    catalogue = page(site, "models")
    for family in ("gpt", "llama", "gemma"):
        assert f'href="{family}/"' in catalogue
    assert 'href="llama/llama3-8b/"' in unescape(catalogue)


def test_the_data_beside_a_page_is_what_describe_prints(site):
    data = json.loads((site / "models/llama/llama3-8b.json").read_text())
    assert data["parameters"]["total"] == presets.model("llama3-8b").counts.total
    assert 'href="../llama3-8b.json"' in page(site, "models/llama/llama3-8b")


def test_search_finds_the_names_of_the_hub(site):
    index = json.loads((site / "search/search_index.json").read_text())
    found = [d["location"] for d in index["docs"] if "meta-llama/Meta-Llama-3-8B" in d["text"]]
    assert found and all(location.startswith("models/llama/llama3-8b/") for location in found)
    assert not [d for d in index["docs"] if "flowchart TB" in d["text"]]


def test_every_wrong_preset_is_a_line_and_there_is_no_site(tmp_path):
    folder = small_site(tmp_path)
    total = preset_path(folder, "gpt2")
    total.write_text(total.read_text().replace("124_439_808", "124_439_809"))
    key = preset_path(folder, "llama3-8b")
    key.write_text(key.read_text().replace("hidden_size", "hiden_size"))
    built = build(folder)
    assert built.returncode != 0 and "Traceback" not in built.stderr
    lines = [line for line in built.stderr.splitlines() if "macros/presets/" in line]
    assert len(lines) == 2
    assert any("gpt/gpt2.toml" in line and "124,439,809" in line and "124,439,808" in line for line in lines)
    assert any("llama/llama3-8b.toml" in line and "hiden_size" in line for line in lines)
    assert not (folder / "site" / "models").exists()


def test_the_live_preview_shows_a_wrong_preset_and_recovers(tmp_path):
    folder = small_site(tmp_path)
    path = preset_path(folder, "gpt2")
    right = path.read_text()
    path.write_text(right.replace("124_439_808", "124_439_809"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with open(tmp_path / "log", "w+") as log:
        preview = subprocess.Popen(
            [sys.executable, "-m", "mkdocs", "serve", "-a", f"127.0.0.1:{port}"], cwd=folder, stdout=log, stderr=log
        )
        try:
            assert "124,439,809" in wait_for(port, "ep-error", log)
            path.write_text(right)
            assert "ep-error" not in wait_for(port, "What was checked", log)
        finally:
            preview.terminate()
            preview.wait(10)
        log.seek(0)
        assert "Traceback" not in log.read()


def wait_for(port: int, text: str, log) -> str:
    """The page of GPT-2 as soon as it holds this text."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/models/gpt/gpt2/", timeout=5) as answer:
                html = answer.read().decode()
            if text in html:
                return html
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            pass
        time.sleep(0.3)
    log.seek(0)
    raise AssertionError(f"{text!r} did not come:\n{log.read()[-3000:]}")
