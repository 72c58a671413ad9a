"""The live preview's part of what `published` does to a build."""

from . import assets
from .preview.addresses import ASSETS


def on_files(files, config):
    """Our scripts and styles where a published site has them, so that a page that leads elsewhere is seen to fail."""
    assets.move(assets.collected(files, config), ASSETS, config)
