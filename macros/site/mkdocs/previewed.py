"""The live preview's part of what `published` does to a build."""

from . import assets
from .preview.addresses import ASSETS


def on_files(files, config):
    """Serve scripts and styles from the paths a published site uses, so that a page that links anywhere else visibly
    breaks."""
    assets.move(assets.collected(files, config), ASSETS, config)
