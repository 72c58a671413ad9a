"""Before a package is built for an index: links that work there, and where the project is.

    python .ci/for_the_index.py https://github.com/owner/name v0.2.0 [https://example.org/site/]

The repository does not say where it is hosted; whoever releases it knows. README.md and pyproject.toml are changed in
place.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def readme(text: str, repository: str, ref: str) -> str:
    """The README with every link to a file, and every picture, as a whole address."""
    text = re.sub(r"\]\((?![a-z]+:|#)([^)]+)\)", rf"]({repository}/blob/{ref}/\1)", text)
    return re.sub(r' (src|srcset)="(?![a-z]+:)([^"]+)"', rf' \1="{repository}/raw/{ref}/\2"', text)


def urls(repository: str, ref: str, site: str) -> str:
    """The table of the project's addresses."""
    named = {
        "Homepage": site or repository,
        "Documentation": site,
        "Repository": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/{ref}/docs/reference/changelog.md",
    }
    return "\n[project.urls]\n" + "".join(f'{name} = "{address}"\n' for name, address in named.items() if address)


if __name__ == "__main__":
    repository, ref, *site = sys.argv[1:]
    if not re.fullmatch(r"https://[\w.-]+(/[\w.-]+)+", repository):
        sys.exit(f"{repository!r} is no address of a repository: https://github.com/owner/name")
    project = ROOT / "pyproject.toml"
    said = project.read_text("utf-8")
    if "\n[project.urls]" not in said:
        project.write_text(
            said.replace("\n[project.scripts]", urls(repository, ref, *site or [""]) + "\n[project.scripts]", 1)
        )
    (ROOT / "README.md").write_text(readme((ROOT / "README.md").read_text("utf-8"), repository, ref), "utf-8")
