"""Every attack by its name."""

from . import calls, configs

ATTACKS = {"configs": configs, "calls": calls}
