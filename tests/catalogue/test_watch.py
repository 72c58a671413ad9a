"""The watch: a wheel is read as an archive, and what it has and nothing here has is said."""

import json
import sys
import zipfile

import pytest
from reference import watch

CONFIG = """
raise SystemExit("this is run")
class NewConfig(PreTrainedConfig):
    model_type = "{type}"
    hidden_size: int = {size}
    {more}
"""
MODEL = "class M:\n    def __init__(self, c):\n        self.{layer} = Linear(c)\n"
AUTO = 'MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = OrderedDict([("llama", "A"), ("quite_new", "B"), ("lara_mini", "C")])\n'


def wheel(folder, version, size, more, layer, types):
    path = folder / f"transformers-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as file:
        for name in types:
            file.writestr(
                f"transformers/models/{name}/configuration_{name}.py",
                CONFIG.format(type=name, size=size, more=more),
            )
        file.writestr("transformers/models/llama/modeling_llama.py", MODEL.format(layer=layer))
        file.writestr("transformers/models/auto/modeling_auto.py", AUTO)
        file.writestr("transformers/models/bad/modeling_bad.py", "def (")
        if version == "2.0":
            file.writestr("tests/new.json", json.dumps({"model_type": "llama"}))
    return path


@pytest.fixture
def versions(tmp_path):
    wheel(tmp_path, "1.0", 8, "rms_norm_eps: float = 1e-6", "gate_proj", ["llama"])
    wheel(
        tmp_path,
        "2.0",
        8,
        "rms_norm_eps: float = 1e-5\n    wholly_new: int = 3",
        "gate",
        ["llama", "quite_new", "lara_mini"],
    )
    return tmp_path


def test_what_is_new_is_found_and_nothing_is_run(versions, capsys):
    watch.main(["transformers==2.0", "--since", "transformers==1.0", "--wheels", str(versions)])
    said = capsys.readouterr().out
    assert "## transformers 2.0" in said
    assert "Types that are refused here, without a reason: 1\n\n- `quite_new`" in said
    assert "New keys of covered types since 1.0: 1\n\n- `llama: wholly_new = 3`" in said
    assert "Other defaults of covered types since 1.0: 1\n\n- `llama: rms_norm_eps = 1e-05, before 1e-06`" in said
    assert "- `transformers/models/llama: gate_proj → gate`" in said
    assert "New configs since 1.0: 1\n\n- `tests/new.json`" in said


def test_a_type_that_is_taken_away_would_be_found(versions, tmp_path):
    report = tmp_path / "report.md"
    watch.main(["transformers==2.0", "--wheels", str(versions), "--without", "lara_mini", "--out", str(report)])
    assert "- `lara_mini`" in report.read_text("utf-8")


def test_a_wheel_is_asked_for_without_its_dependencies_and_never_built(tmp_path, monkeypatch):
    asked = []

    def run(command, check):
        asked.append(command)
        wheel(tmp_path, "2.0", 8, "", "gate", ["llama"])

    monkeypatch.setattr(watch.subprocess, "run", run)
    assert watch.download("transformers", tmp_path).name == "transformers-2.0-py3-none-any.whl"
    [command] = asked
    assert command[:4] == [sys.executable, "-m", "pip", "download"] and "--no-deps" in command
    assert command[command.index("--only-binary") + 1] == ":all:"


def test_the_day_of_the_last_look_stands_on_the_page():
    from macros.catalogue.watch import last_look
    from macros.views.reference.coverage import coverage_watch

    look, said = last_look(), str(coverage_watch())
    assert set(look.versions) == set(watch.PACKAGES)
    assert all(version in said for version in look.versions.values()) and str(look.date.year) in said


def test_the_names_of_the_hub_are_names():
    names = watch.NAMES.read_text("utf-8").split()
    assert len(names) == len(set(names)) > 5 and all(name.count("/") == 1 for name in names)
