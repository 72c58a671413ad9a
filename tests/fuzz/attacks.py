"""Every attack by its name."""

from . import calls, checkpoints, configs, preset_files

ATTACKS = {"configs": configs, "presets": preset_files, "checkpoints": checkpoints, "calls": calls}
