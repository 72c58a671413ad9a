"""What a host and a package index read of the repository: license, citation, workflows, forms, releases."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml
from sampling import fewer

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CHANGELOG = (ROOT / "docs/reference/changelog.md").read_text("utf-8")
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
CONTRIBUTORS = "The Every Parameter contributors"


def says(*command: object, program: object = sys.executable, folder: Path = ROOT) -> tuple[int, str]:
    """(exit status, what it wrote) of this Python or of a program that is installed beside it."""
    done = subprocess.run([str(program), *map(str, command)], cwd=folder, text=True, capture_output=True)
    return done.returncode, done.stdout + done.stderr


def workflow(name: str) -> dict:
    """A workflow; PyYAML reads its key `on` as True."""
    return yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text("utf-8"))


# --- license, citation ------------------------------------------------------------------------------------------------


def test_the_page_quotes_the_license():
    """Mend: the block of docs/reference/licence.md, with its own quotation marks, or LICENSE."""
    page = (ROOT / "docs/reference/licence.md").read_text("utf-8")
    quoted = " ".join(re.findall(r"^> ?(.*)$", page, re.M)).replace("“", '"').replace("”", '"').replace("©", "(c)")
    license = (ROOT / "LICENSE").read_text("utf-8")
    assert license.split() == ["MIT", "License", *quoted.split()]
    assert f"Copyright (c) 2026 {CONTRIBUTORS}\n" in license


def test_citation_and_package_name_the_contributors_and_the_version():
    """Mend: `version` and `date-released` in CITATION.cff are those of the changelog's newest entry."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    version, date = re.search(r"^## (\S+) \((\S+)\)$", CHANGELOG, re.M).groups()
    assert (citation["version"], citation["date-released"]) == (version, date)
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["abstract"] == PROJECT["description"]
    assert citation["authors"] == PROJECT["authors"] == [{"name": CONTRIBUTORS}]


# --- schemas ----------------------------------------------------------------------------------------------------------

# By schema: files, and an edit that it must refuse.
SCHEMAS = {
    "citation-file-format": ("CITATION.cff", "license: MIT", "license: MITT"),
    "dependabot": (".github/dependabot.yml", "interval: weekly", "interval: sometimes"),
    "github-issue-config": (".github/ISSUE_TEMPLATE/config.yml", "true", "perhaps"),
    "github-issue-forms": (".github/ISSUE_TEMPLATE/[!c]*.yml", "type: input", "type: number"),
    "github-workflows": (".github/workflows/*.yml", "runs-on:", "run-on:"),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("schema", fewer(SCHEMAS, 2))
def test_a_file_is_as_its_schema_has_it(schema, tmp_path):
    """Mend: what check-jsonschema names. It brings its schemas along."""
    pattern, right, wrong = SCHEMAS[schema]
    files = sorted(ROOT.glob(pattern))
    command = ["-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    status, said = says(*command, *files)
    assert status == 0, said
    (seeded := tmp_path / files[-1].name).write_text(files[-1].read_text("utf-8").replace(right, wrong))
    status, said = says(*command, seeded)
    assert status == 1 and seeded.name in said


def test_every_file_for_the_host_is_held_to_a_schema():
    held = {path for pattern, _, _ in SCHEMAS.values() for path in ROOT.glob(pattern)}
    assert {path for path in (ROOT / ".github").rglob("*") if path.suffix in (".yml", ".yaml")} < held


def test_every_relative_link_leads_to_a_file():
    for path in (ROOT / ".github").rglob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)[^)]*\)", path.read_text("utf-8")):
            assert (path.parent / target).is_file(), f"{path.name}: {target}"


# --- workflows --------------------------------------------------------------------------------------------------------


def test_every_action_is_pinned_by_its_commit():
    """And one action by one commit, with its version beside it. Mend: `- uses: owner/action@<40 digits> # v1.2.3`."""
    pins: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for used in re.findall(r"^\s*(?:- )?uses: (.*)$", path.read_text("utf-8"), re.M):
            if used.startswith("./"):
                assert (ROOT / used).is_file()
                continue
            pinned = re.fullmatch(r"([\w./-]+)@([0-9a-f]{40} # v\d+\.\d+\.\d+)", used)
            assert pinned, f"{path.name}: {used}"
            pins.setdefault(pinned[1], set()).add(pinned[2])
    assert len(pins) > 4
    assert {action: found for action, found in pins.items() if len(found) > 1} == {}


def zizmor(folder: Path) -> tuple[int, str]:
    program = Path(sysconfig.get_path("scripts"), "zizmor")
    return says("--offline", "--no-progress", "--min-severity", "medium", ".github", program=program, folder=folder)


def test_nothing_in_a_workflow_can_be_abused(tmp_path):
    """Mend: what zizmor names, with a link to its page. A seeded violation is found."""
    status, said = zizmor(ROOT)
    assert status == 0, said
    folder = shutil.copytree(ROOT / ".github", tmp_path / ".github")
    (pages := folder / "workflows/pages.yml").write_text(
        pages.read_text("utf-8").replace('origin/$GITHUB_BASE_REF"', 'origin/${{ github.head_ref }}"')
    )
    status, said = zizmor(tmp_path)
    assert status and "template-injection" in said


def test_the_matrix_is_the_supported_pythons():
    """Mend: the classifiers and requires-python in pyproject.toml, or the matrix of tests.yml."""
    matrix = workflow("tests")["jobs"]["tests"]["strategy"]["matrix"]["include"]
    prefix = "Programming Language :: Python :: "
    classified = [c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(f"{prefix}3.")]
    assert [entry["python"] for entry in matrix] == classified
    assert PROJECT["requires-python"] == f">={classified[0]}"
    assert [entry["selection"] for entry in matrix].count("") == 1


def test_a_pull_request_is_tested_and_built_and_not_published():
    pages = workflow("pages")
    assert "pull_request" in pages[True] and "pull_request_target" not in pages[True]
    assert pages["jobs"]["tests"]["uses"] == "./.github/workflows/tests.yml"
    assert set(pages["jobs"]["deploy"]["needs"]) == {"tests", "build"}
    for job in pages["jobs"].values():
        if "write" in job.get("permissions", {}).values():
            assert job["if"] == "github.event_name != 'pull_request'"


# --- releases ---------------------------------------------------------------------------------------------------------

NOTES = ".ci/release_notes.py"


def test_the_tag_of_the_version_starts_a_release_with_its_entry():
    """The whole entry, an item per line, without links, which lead nowhere on a release's page."""
    (pattern,) = workflow("release")[True]["push"]["tags"]
    assert fnmatch(tag := f"v{PROJECT['version']}", pattern)
    status, said = says(NOTES, tag)
    assert status == 0, said
    entry = CHANGELOG.split(f"\n## {PROJECT['version']} (")[1].split("\n## ")[0].partition("\n")[2]
    assert re.sub(r"\W", "", said) == re.sub(r"\W", "", re.sub(r"\]\([^)]*\)", "", entry))
    assert "](" not in said and said.count("\n- ") == entry.count("\n- ")
    assert all(line.startswith("- ") or not line or line in entry.split("\n") for line in said.split("\n"))


def test_a_release_needs_the_tests():
    """Whatever may write waits for them and for the build, which compares the tag with the version."""
    jobs = workflow("release")["jobs"]
    assert jobs["tests"]["uses"] == "./.github/workflows/tests.yml"
    assert any(NOTES in step.get("run", "") for step in jobs["build"]["steps"])
    writing = {name for name, job in jobs.items() if "write" in job.get("permissions", {}).values()}
    assert writing == {"release", "index"}
    assert all(set(jobs[name]["needs"]) == {"tests", "build"} for name in writing)
    assert "vars.TRUSTED_PUBLISHING == 'true'" in jobs["index"]["if"]


def test_changes_since_the_release_are_named_as_such():
    """Mend: new lines of the changelog stand below "## Unreleased", above the version that was released last."""
    headings = re.findall(r"^## (.*)$", CHANGELOG, re.M)
    dated = [re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", heading) for heading in headings]
    assert all(dated[1:]) and (dated[0] or headings[0] == "Unreleased")


def test_a_released_package_says_where_the_project_is(tmp_path):
    """Every link of its README is a whole address, of a file that is there; and so is its picture's."""
    repository, tag = "https://github.com/someone/every-parameter", f"v{PROJECT['version']}"
    for name in (".ci/for_the_index.py", "pyproject.toml", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    command = tmp_path / ".ci/for_the_index.py", repository, tag
    assert says(*command) == says(*command) == (0, ""), "twice as once"
    readme = (tmp_path / "README.md").read_text("utf-8")
    links = [*re.findall(r"\]\(([^)]+)\)", readme), *re.findall(r'(?:src|srcset)="([^"]+)"', readme)]
    files = [link.removeprefix(f"{repository}/") for link in links]
    assert len(links) > 10 and {link.partition("/")[0] for link in files} == {"blob", "raw"}
    for link in files:
        kind, at, path = link.split("/", 2)
        assert (kind, at) == ("raw" if path.endswith(".webp") else "blob", tag) and (ROOT / path).is_file(), link
    urls = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))["project"]["urls"]
    assert urls["Homepage"] == urls["Repository"] == repository and urls["Changelog"].startswith(
        f"{repository}/blob/{tag}/"
    )
    assert set(urls) == {"Homepage", "Repository", "Issues", "Changelog"}
    assert any(".ci/for_the_index.py" in step.get("run", "") for step in workflow("release")["jobs"]["build"]["steps"])
    status, said = says(tmp_path / ".ci/for_the_index.py", "someone/every-parameter", tag)
    assert status == 1 and said.endswith("is no address of a repository: https://github.com/owner/name\n")


def test_a_release_whose_tag_or_entry_is_missing_ends_with_a_line(tmp_path):
    status, said = says(NOTES, "v0.0.1")
    assert status == 1
    assert said == (
        f"the tag is v0.0.1, but pyproject.toml has version {PROJECT['version']}: "
        f"tag v{PROJECT['version']}, or change the version\n"
    )
    for name in (NOTES, "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "docs/reference").mkdir(parents=True)
    (tmp_path / "docs/reference/changelog.md").write_text("# Changelog\n\n## 0.0.1 (2020-01-01)\n\n- Begun.\n")
    status, said = says(tmp_path / NOTES, f"v{PROJECT['version']}")
    assert status == 1
    assert said == f"docs/reference/changelog.md has no entry for {PROJECT['version']}: add one on top\n"
