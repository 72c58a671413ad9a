"""Every attack by its name."""

from . import calls, checkpoints, configs, preset_files, saves

ATTACKS = {"configs": configs, "presets": preset_files, "checkpoints": checkpoints, "calls": calls}
LONG = {"saves": saves}  # a minute for each case: only the command runs it
EVERY = ATTACKS | LONG
