"""Every attack by its name."""

from . import configs

ATTACKS = {"configs": configs}
