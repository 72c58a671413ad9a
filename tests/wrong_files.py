"""Files that are wrong in one place, for what reads them: each stands in a folder that is gone with the answer."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import gguf_files
from huggingface_hub import errors

from macros.catalogue import checks, preset_file, presets, stored
from macros.engine.errors import Problem

GPT2 = (presets.FOLDER / "gpt" / "gpt2.toml").read_text("utf-8")


@contextmanager
def written(files: dict[str, Any]) -> Iterator[Path]:
    """A folder with these files: bytes and text as they are, anything else as JSON. No problem shows its path."""
    with TemporaryDirectory() as place:
        for name, content in files.items():
            text = content if isinstance(content, str | bytes) else json.dumps(content)
            (Path(place) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(place) / name).write_bytes(text.encode() if isinstance(text, str) else text)
        try:
            yield Path(place)
        except Problem as problem:
            plain = [one.replace(f"{place}/", "").replace(place, "…") for one in (problem.what, problem.mend)]
            raise Problem(*plain, problem.where.replace(f"{place}/", "").replace(place, "…")) from None


def read(ask: Callable[[Path], Any], content: Any, name: str = "model.safetensors") -> Any:
    """What reads one file."""
    with written({name: content}) as folder:
        return ask(folder / name)


def listed(tensors: Any, length: int | None = None, rest: bytes = b"") -> bytes:
    """The beginning of a safetensors file: its list of tensors, and what follows."""
    text = tensors if isinstance(tensors, bytes) else json.dumps(tensors).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + rest


def tensor(shape: list[int], begin: int = 0, dtype: str = "F32") -> dict[str, Any]:
    size = math.prod(shape) * stored.BITS[dtype] // 8
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, begin + size]}


def in_turn(shapes: Iterable[tuple[str, Sequence[int]]], dtype: str) -> dict[str, Any]:
    """The list of tensors of which each begins where the one before ends."""
    made, end = dict[str, Any](), 0
    for name, shape in shapes:
        made[name] = tensor(list(shape), end, dtype)
        end = made[name]["data_offsets"][1]
    return made


def gguf(metadata: dict[str, bytes] | None = None, tensors: Sequence[bytes] = (), version: int = 3) -> bytes:
    """A GGUF file of values and tensors that are bytes already."""
    keys = b"".join(gguf_files.text(key) + value for key, value in (metadata or {}).items())
    return b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata or {})) + keys + b"".join(tensors)


def placed(name: str, shape: tuple[int, ...] = (32,), kind: int = 0, offset: int = 0, axes: int | None = None) -> bytes:
    """A tensor in the list of a GGUF file."""
    sides = struct.pack(f"<{len(shape)}Q", *shape)
    begun = gguf_files.text(name) + struct.pack("<I", len(shape) if axes is None else axes)
    return begun + sides + struct.pack("<IQ", kind, offset)


def preset(*changes: tuple[str, str], end: str = "") -> Any:
    """GPT-2's preset with other lines, as its file is read."""
    text = GPT2
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return read(preset_file.read_preset, text + end, "it.toml").name


def checked(*changes: tuple[str, str]) -> str:
    """The line that `check` prints of such a preset."""
    text = GPT2
    for old, new in (("GPT-2 Small", "Another"), *changes):
        assert old in text, old
        text = text.replace(old, new)
    with written({"it.toml": text}) as folder:
        return checks.check_file(folder / "it.toml").text.replace(f"{folder}/", "")


class Answer:
    """A host's answer to a request for a part of a file."""

    def __init__(self, status: int, content: bytes):
        self.status_code, self.content = status, content

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def iter_bytes(self, size: int) -> Iterator[bytes]:
        yield self.content


def library(
    folder: Path,
    raised: Exception | None = None,
    offline: bool = False,
    size: int | None = None,
    files: Iterable[str] = (),
    status: int = 206,
    content: bytes = b"",
) -> Any:
    """A library of the hub that has the files of a folder, or raises an error, and whose host answers so."""

    def asked(result: Any) -> Any:
        if raised is not None:
            raise raised
        return result

    return SimpleNamespace(
        errors=errors,
        constants=SimpleNamespace(ENDPOINT="https://hub.example", is_offline_mode=lambda: offline),
        utils=SimpleNamespace(
            disable_progress_bars=lambda: None,
            logging=SimpleNamespace(set_verbosity=lambda level: None),
            build_hf_headers=dict,
            hf_raise_for_status=lambda answer: None,
        ),
        get_session=lambda: SimpleNamespace(stream=lambda *_, **more: Answer(status, content)),
        hf_hub_url=lambda *_, **more: "https://hub.example",
        try_to_load_from_cache=lambda *_, **more: None,
        get_hf_file_metadata=lambda *_, **more: asked(SimpleNamespace(size=size)),
        hf_hub_download=lambda repository, file, **more: asked(str(folder / file)),
        HfApi=lambda: SimpleNamespace(
            model_info=lambda *_, **more: SimpleNamespace(siblings=[SimpleNamespace(rfilename=file) for file in files])
        ),
    )
