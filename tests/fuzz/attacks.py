"""Every attack by its name."""

from . import (
    addresses,
    arrays,
    builds,
    calls,
    checkpoints,
    configs,
    engines,
    gguf_headers,
    headers,
    interrupts,
    names,
    plans,
    preset_files,
    programs,
    questions,
    saves,
    tokenizers,
    writing,
)

ATTACKS = {"configs": configs, "presets": preset_files, "checkpoints": checkpoints, "calls": calls}
ATTACKS |= {
    "questions": questions,
    "plans": plans,
    "programs": programs,
    "headers": headers,
    "gguf_headers": gguf_headers,
    "names": names,
    "engines": engines,
    "tokenizers": tokenizers,
    "arrays": arrays,
    "writing": writing,
}
LONG = {"saves": saves, "builds": builds, "interrupts": interrupts}  # seconds for each case: only the command runs them
IN_A_BROWSER = {"addresses": addresses}
EVERY = ATTACKS | LONG | IN_A_BROWSER
