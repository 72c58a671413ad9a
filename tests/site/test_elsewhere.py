"""On somebody else's site: its options and presets, what is added to its configuration, the names and links of macros.

tests/test_package.py builds whole sites from the wheel.
"""

from __future__ import annotations

import re
import subprocess
import sys
from html import unescape
from types import SimpleNamespace

import pytest
from copies import ROOT, environment
from jinja2 import Environment
from mkdocs.exceptions import PluginError

from macros.catalogue import presets
from macros.engine.errors import Problem
from macros.site import page_macros
from macros.site.mkdocs import other_sites

PRESET = (presets.FOLDER / "gpt" / "gpt2.toml").read_text("utf-8")


@pytest.fixture
def site(tmp_path):
    """The configuration of a site that has a preset in `models/`; afterwards there are only ours again."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "theirs.toml").write_text(PRESET.replace('name = "GPT-2', 'name = "Theirs', 1), "utf-8")
    yield {
        "config_file_path": str(tmp_path / "mkdocs.yml"),
        "extra": {"every_parameter": {"presets": "models", "prefix": "ep_"}},
        "extra_css": ["theirs.css"],
        "extra_javascript": [],
        "markdown_extensions": ["tables"],
        "watch": [],
    }
    presets.read_also(None)


@pytest.mark.parametrize(
    "said, message",
    [
        ("ep_", "extra.every_parameter = 'ep_': expected options; write `presets:` or `prefix:` below it"),
        ({"prefx": "ep_"}, 'extra.every_parameter.prefx: unknown option; did you mean "prefix"?'),
        ({3: "ep_"}, "extra.every_parameter.3: unknown option; known ones: presets, prefix"),
        ({"prefix": "ep-"}, "extra.every_parameter.prefix = 'ep-': a name cannot begin so; use letters"),
        ({"prefix": 5}, "extra.every_parameter.prefix = 5: a name cannot begin so"),
        ({"presets": "nowhere"}, "extra.every_parameter.presets = 'nowhere': no such folder; name one"),
        ({"presets": ["models"]}, "extra.every_parameter.presets = ['models']: no such folder"),
        ({"presets": "empty"}, "extra.every_parameter.presets = 'empty': holds no preset"),
    ],
)
def test_a_wrong_option_is_one_line(tmp_path, said, message):
    (tmp_path / "empty").mkdir()
    with pytest.raises(Problem) as raised:
        other_sites.read_options(said, tmp_path)
    assert str(raised.value).startswith(message) and "\n" not in str(raised.value)


@pytest.mark.parametrize("said", [None, {}, {"prefix": None, "presets": None}])
def test_no_option_is_needed(tmp_path, said):
    assert other_sites.read_options(said, tmp_path) == other_sites.Options(None, "")


def test_what_the_macros_need_is_added_to_the_configuration(site):
    assert page_macros.is_elsewhere(env_of(site))
    options = other_sites.start(site)
    assert options.prefix == "ep_" and site["watch"] == [str(options.presets)]
    assert site["extra_css"] == ["every-parameter/components.css", "theirs.css"]
    assert {script.path: script.type for script in site["extra_javascript"]} == {
        f"every-parameter/{name}.mjs": "module" for name in ("site", "tools", "tables")
    }
    assert site["markdown_extensions"] == ["tables", "macros.site.extensions.large_blocks"]
    site["markdown_extensions"] = named = ["every_parameter.site.extensions.large_blocks"]
    other_sites.start(site)
    assert named == ["every_parameter.site.extensions.large_blocks"]
    assert page_macros.is_elsewhere(env_of(site))


@pytest.mark.parametrize("folder", ["assets", "assets-0123456789ab"])
def test_our_own_site_is_known_by_its_styles(folder):
    assert not page_macros.is_elsewhere(env_of({"extra_css": [f"{folder}/site.css", f"{folder}/components.css"]}))


def test_our_own_site_has_its_styles_once(site_folder):
    assert not (site_folder / "every-parameter").exists()


def test_a_preset_of_the_site_stands_beside_ours_and_is_read_again(site, tmp_path):
    other_sites.start(site)
    ours = presets.model("gpt2").counts.total
    assert presets.preset("theirs").name.startswith("Theirs") and presets.model("theirs").counts.total == ours
    file = tmp_path / "models" / "deeper" / "theirs.toml"
    file.parent.mkdir()
    (tmp_path / "models" / "theirs.toml").rename(file)
    text = file.read_text("utf-8").partition("[published]")[0].replace("n_layer = 12", "n_layer = 13")
    file.write_text(re.sub(r"^headline = .*\n", "", text, flags=re.M), "utf-8")
    other_sites.start(site)
    assert presets.model("theirs").counts.total > ours == presets.model("gpt2").counts.total
    presets.read_also(None)
    assert "theirs" not in presets.paths()


def test_wrong_presets_of_the_site_end_the_build(site, tmp_path):
    file = tmp_path / "models" / "theirs.toml"
    file.write_text(file.read_text("utf-8").replace("n_layer = 12", "n_layer = 13"), "utf-8")
    with pytest.raises(PluginError, match=r"theirs\.toml: published.parameters = .* and the forward pass gives"):
        other_sites.start(site)
    file.rename(file.with_name("gpt2.toml"))
    with pytest.raises(PluginError, match=r"gpt2\.toml: duplicate slug, also in macros/presets/gpt/gpt2\.toml"):
        other_sites.start(site)


def env_of(site, *pages: str) -> SimpleNamespace:
    """What mkdocs-macros hands to a module, while a page is built."""
    registered = {}
    return SimpleNamespace(
        conf=site,
        variables={"files": pages},
        page=SimpleNamespace(file=SimpleNamespace(src_uri="index.md", src_path="index.md")),
        macro=lambda function, name: registered.__setitem__(name, function),
        registered=registered,
    )


def test_every_name_has_the_prefix_and_a_wrong_call_says_it(site):
    env = env_of(site)
    page_macros.register(env)
    assert len(env.registered) > 100 and all(name.startswith("ep_") for name in env.registered)
    assert "<code>ep_params</code>" in env.registered["ep_macro_table"]()
    with pytest.raises(Problem, match=r'ep_params\(\'llama3-8\'\): .*did you mean "llama3-8b"\?'):
        env.registered["ep_params"]("llama3-8")


def test_a_macro_of_ours_that_is_not_called_is_told_and_theirs_are_their_own(site):
    env = env_of(site)
    env.env = Environment(finalize=lambda value: "–" if value is None else value)
    page_macros.register(env)
    names = {**env.registered, "theirs": len, "none": None}
    for _ in range(2):  # pages
        page_macros.prepare(env)
        with pytest.raises(Problem, match="docs/index.md: ep_params is a macro that is not called"):
            env.env.from_string("{{ ep_params }}").render(names)
        said = env.env.from_string('{{ ep_params("gpt2") }} {{ theirs }} {{ none }}').render(names)
        assert re.fullmatch("[0-9,]+ <built-in function len> –", said)


def test_a_link_to_a_page_that_is_not_there_is_text(site):
    calls = {"comparison": (["gpt2"], ["total"]), "model_sheet": ("gpt2",), "pipeline_diagram": ("gpt2",)}
    calls |= {"area_map": ("gpt2",), "parameter_table": ("gpt2",), "model_link": ("gpt2",)}

    def links(*pages: str) -> set[str]:
        """To other pages."""
        env = env_of(site, *pages)
        page_macros.register(env)
        html = "".join(env.registered[f"ep_{name}"](*args) for name, args in calls.items())
        addresses = map(unescape, re.findall(r'href="([^"]*)"', html))
        return {address for address in addresses if "://" not in address and not address.startswith("#")}

    assert links() == links("reference/glossary.md") == set()  # another site's glossary is not ours
    assert links("models/gpt/gpt2.md", "what-happens/embeddings.md") > {"models/gpt/gpt2/"}


def test_lengths_are_scaled_to_the_theme_and_nothing_else():
    styles = ".ep-a1.5rem { margin: .5rem 1rem 2em; width: calc(100vw - 3.4rem); color: #1f1rem }"
    assert other_sites.scaled_styles(styles, 1.25) == (
        ".ep-a1.5rem { margin: 0.625rem 1.25rem 2em; width: calc(100vw - 4.25rem); color: #1f1rem }"
    )


@pytest.mark.slow("compiles the engine and reads every model")
def test_what_tools_load_is_written_for_those_that_are_there():
    small = {f"every-parameter/capitals/{name}" for name in other_sites.tool_files.OF_SMALL}
    assert not list(other_sites.loaded_by(set(), str))
    names = {name for name, _ in other_sites.loaded_by({"capitals"}, str)}
    assert small < names and all(name.endswith(".mjs") for name in names - small)
    files = dict(other_sites.loaded_by({"what-if"}, lambda slug: "x/" if slug == "gpt2" else ""))
    assert {
        "every-parameter/engine/engine.mjs",
        "every-parameter/engine/data.json",
    } < files.keys() and not small & files.keys()
    assert b'"page":"x/"' in files["every-parameter/engine/models/gpt2.json"]
    assert b'"page":""' in files["every-parameter/engine/models/llama3-8b.json"]


@pytest.mark.processes
def test_a_build_that_is_refused_prints_one_line(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Home\n", "utf-8")
    (tmp_path / "mkdocs.yml").write_text(
        "site_name: x\nplugins: [{macros: {modules: [macros]}}]\nextra: {every_parameter: {presets: nowhere}}\n"
    )
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build"]
    built = subprocess.run(command, cwd=tmp_path, env=environment(PYTHONPATH=str(ROOT)), capture_output=True, text=True)
    said = "mkdocs.yml: extra.every_parameter.presets = 'nowhere': no such folder; name one of TOML files"
    assert built.returncode == 1 and "Traceback" not in built.stderr
    [line] = [line for line in built.stderr.splitlines() if line.strip()]
    assert said in line


WRONG_CALLS = {
    "misspelt": ('---\ntitle: x\n---\n{{ parms("gpt2") }}', "4: 'parms' is undefined; did you mean \"params\"?"),
    "theirs": ("\n{{ doubeld(2) }}", "2: 'doubeld' is undefined; did you mean \"doubled\"?"),
    "unlike": ("{{ xyzzy(2) }}", "1: 'xyzzy' is undefined; the macro reference lists the macros"),
    "extra": (
        '{{ value("gpt2", "d_model") }}',
        "1: a variable value hides the macro of that name; rename the variable",
    ),
    "meta": ('---\nparams: 1\n---\n{{ params("gpt2") }}', "4: a variable params hides the macro of that name"),
    "argument": ('{{ params("gpt3") }}', "1: params('gpt3'): 'gpt3' could be several models; name one: gpt3-13b"),
}


@pytest.mark.processes
@pytest.mark.parametrize("fails", [False, True])
def test_a_wrong_call_is_one_line(tmp_path, fails):
    """In the place of the page, or at the end of the build; an error of a macro of theirs stays as it is."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "main.py").write_text("def define_env(env):\n    env.macro(lambda n: 2 * n, 'doubled')\n")
    for name, (page, _) in list(WRONG_CALLS.items())[: 1 if fails else None]:
        (tmp_path / "docs" / f"{name}.md").write_text(page, "utf-8")
    if not fails:
        (tmp_path / "docs" / "own.md").write_text("{{ doubled() }}", "utf-8")
        (tmp_path / "docs" / "kept.md").write_text("{{ parms }}", "utf-8")
    end = ", on_error_fail: true, on_undefined: strict" if fails else ""
    (tmp_path / "mkdocs.yml").write_text(
        f"site_name: x\ntheme: mkdocs\nplugins: [{{macros: {{modules: [macros]{end}}}}}]\nextra: {{value: 5}}\n"
    )
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
    )
    if fails:
        (line,) = [line for line in built.stderr.splitlines() if "undefined" in line]
        assert built.returncode != 0 and WRONG_CALLS["misspelt"][1] in line and "Traceback" not in built.stderr
        return
    pages = {path.parent.name: path.read_text("utf-8") for path in (tmp_path / "site").rglob("index.html")}
    for name, (_, line) in WRONG_CALLS.items():
        assert f"docs/{name}.md:{line}" in unescape(pages[name]) and "Traceback" not in pages[name]
    assert "Traceback" in pages["own"] and "{{ parms }}" in pages["kept"]
