"""Where the time of a clean build goes, in percent of it.

    python tests/benchmarks/profile_build.py

One build in this process under cProfile, which slows small functions more than large ones: take it as an order, not as
a measure.
"""

import cProfile
import os
import pathlib
import pstats
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[2]

PARTS = [  # what it is, the function that all of it goes through: its file's end and its name
    ("Macros in the pages: tables, diagrams, formulas", "mkdocs_macros/plugin.py", "on_page_markdown"),
    ("Generated pages: traces, their totals, data files", "macros/site/mkdocs/pages.py", "on_files"),
    ("Markdown", "mkdocs/structure/pages.py", "render"),
    ("The index of the search", "macros/site/mkdocs/search.py", "on_post_build"),
    ("Pages as Markdown, for machines", "macros/site/plain_markdown.py", "markdown"),
    ("Copying the theme's and the site's files", "mkdocs/structure/files.py", "copy_static_files"),
    ("Writing the pages", "mkdocs/utils/__init__.py", "write_file"),
    ("Settings, imports, traces", "mkdocs/plugins.py", "on_config"),
]


def main() -> None:
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(ROOT))
    os.chdir(ROOT)
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    with tempfile.TemporaryDirectory() as site:
        config = load_config("mkdocs.yml", site_dir=site)
        config.plugins.on_startup(command="build", dirty=False)
        profile = cProfile.Profile()
        profile.runcall(build, config)
    stats = pstats.Stats(profile).stats
    whole = next(v[3] for (file, _, name), v in stats.items() if name == "build" and file.endswith("commands/build.py"))
    known = 0.0
    print("| part | share |\n| --- | ---: |")
    for title, file, name in PARTS:
        seconds = sum(v[3] for (f, _, n), v in stats.items() if n == name and f.endswith(file))
        known += seconds
        print(f"| {title} | {seconds / whole:.0%} |")
    print(f"| The theme's templates and everything else | {1 - known / whole:.0%} |")


if __name__ == "__main__":
    main()
