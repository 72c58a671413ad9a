"""What setuptools leaves out of a source distribution. Only pyproject.toml names the class."""

from setuptools.command.sdist import sdist


class WithoutTests(sdist):
    """A source distribution without tests: they need the whole repository, and setuptools would take some of them."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, [name for name in files if not name.startswith("tests")])
