"""Writes small GGUF files, by the format's specification: nothing of the reader is used."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 8, "BF16": 30}

# A small model of llama's.
D, F, V, L, N, K = 64, 96, 40, 3, 4, 2
METADATA = {
    "general.architecture": "llama",
    "llama.context_length": 128,
    "llama.embedding_length": D,
    "llama.block_count": L,
    "llama.feed_forward_length": F,
    "llama.attention.head_count": N,
    "llama.attention.head_count_kv": K,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 5000.0,
    "llama.rope.dimension_count": D // N,
}


def tensors() -> dict[str, np.ndarray]:
    draw = np.random.default_rng(0)
    shapes = {"token_embd.weight": (V, D), "output_norm.weight": (D,), "output.weight": (V, D)}
    for i in range(L):
        shapes |= {
            f"blk.{i}.attn_norm.weight": (D,),
            f"blk.{i}.attn_q.weight": (D, D),
            f"blk.{i}.attn_k.weight": (D // N * K, D),
            f"blk.{i}.attn_v.weight": (D // N * K, D),
            f"blk.{i}.attn_output.weight": (D, D),
            f"blk.{i}.ffn_norm.weight": (D,),
            f"blk.{i}.ffn_gate.weight": (F, D),
            f"blk.{i}.ffn_up.weight": (F, D),
            f"blk.{i}.ffn_down.weight": (D, F),
        }
    return {name: draw.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}


QUANTIZED = {name: "Q8_0" for name, array in tensors().items() if array.ndim > 1}


def text(said: str) -> bytes:
    data = said.encode()
    return struct.pack("<Q", len(data)) + data


def value(said: Any) -> bytes:
    """A value of the metadata, its type before it."""
    if isinstance(said, bool):
        return struct.pack("<I?", 7, said)
    if isinstance(said, int):
        return struct.pack("<II", 4, said)
    if isinstance(said, float):
        return struct.pack("<If", 6, said)
    if isinstance(said, str):
        return struct.pack("<I", 8) + text(said)
    first = said[0] if said else 0
    kind = 8 if isinstance(first, str) else 6 if isinstance(first, float) else 7 if isinstance(first, bool) else 5
    form = {6: "<f", 5: "<i", 7: "<?"}.get(kind, "")
    items = b"".join(text(one) if kind == 8 else struct.pack(form, one) for one in said)
    return struct.pack("<IIQ", 9, kind, len(said)) + items


def quantized(array: np.ndarray, kind: str) -> bytes:
    """The numbers of a tensor in a type: of Q8_0 and Q4_0 as llama.cpp's reference quantizes."""
    array = np.ascontiguousarray(array, np.float32)
    if kind == "F32":
        return array.tobytes()
    if kind == "F16":
        return array.astype("<f2").tobytes()
    if kind == "BF16":
        return (array.view(np.uint32) >> 16).astype("<u2").tobytes()
    blocks = array.reshape(-1, 32)
    if kind == "Q8_0":
        scale = np.abs(blocks).max(axis=1, keepdims=True) / 127
        numbers = np.round(np.divide(blocks, scale, where=scale != 0, out=np.zeros_like(blocks))).astype(np.int8)
        return b"".join(s.tobytes() + n.tobytes() for s, n in zip(scale.astype("<f2"), numbers))
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
    scale = largest / -8
    numbers = np.clip(np.divide(blocks, scale, where=scale != 0, out=np.zeros_like(blocks)) + 8.5, 0, 15).astype(
        np.uint8
    )
    packed = numbers[:, :16] | numbers[:, 16:] << 4
    return b"".join(s.tobytes() + n.tobytes() for s, n in zip(scale.astype("<f2"), packed))


def write(path: Path, metadata: Mapping[str, Any], tensors: Mapping[str, np.ndarray], types: Mapping[str, str]) -> int:
    """A file with these tensors, of type F32 unless `types` says another; the bytes of all tensors."""
    infos, data, total = b"", b"", 0
    for name, array in tensors.items():
        kind = types.get(name, "F32")
        numbers = quantized(array, kind)
        total += len(numbers)
        infos += text(name) + struct.pack("<I", array.ndim)
        infos += b"".join(struct.pack("<Q", n) for n in reversed(array.shape))
        infos += struct.pack("<IQ", TYPES[kind], len(data))
        data += numbers + b"\0" * (-len(numbers) % 32)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    header += b"".join(text(key) + value(said) for key, said in metadata.items()) + infos
    path.write_bytes(header + b"\0" * (-len(header) % 32) + data)
    return total
