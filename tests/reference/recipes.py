"""The models of vLLM's recipes: `python -m tests.reference.recipes REPOSITORY`, from the repository.

REPOSITORY is a clone of vllm-project/recipes. The program writes `macros/catalogue/vllm_recipes.json`: each model with
its tasks, as of the day of the last commit. Which of them are in the catalog is looked up.
"""

from __future__ import annotations

import json
import subprocess
import sys

import yaml

from macros.catalogue.transformers_types import RECIPES_FILE


def git(repository: str, *words: str) -> str:
    return subprocess.run(["git", "-C", repository, *words], capture_output=True, text=True, check=True).stdout


def main(repository: str) -> None:
    files = [
        f for f in git(repository, "ls-tree", "-r", "--name-only", "HEAD", "models").split() if f.endswith(".yaml")
    ]
    models: dict[str, list[str]] = {}
    for file in files:
        said = yaml.safe_load(git(repository, "show", f"HEAD:{file}"))
        models[said["model"]["model_id"]] = said["meta"]["tasks"]
    day = git(repository, "log", "-1", "--format=%cs").strip()
    lines = (f"{json.dumps(name)}: {json.dumps(tasks)}" for name, tasks in sorted(models.items()))
    RECIPES_FILE.write_text(f'{{"version": {json.dumps(day)}, "models": {{\n' + ",\n".join(lines) + "\n}}\n", "utf-8")
    print({"models": len(models)})


if __name__ == "__main__":
    main(sys.argv[1])
