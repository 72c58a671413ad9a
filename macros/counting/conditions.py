"""The conditions of a cost."""

from __future__ import annotations

from dataclasses import dataclass

from .accelerators import Accelerator
from .formats import CACHE_BYTES, PUBLISHED, ItemBytes


@dataclass(frozen=True)
class Conditions:
    """The conditions of a figure: context, number of sequences, formats, devices and machine."""

    context: int | None = None
    batch: int = 1
    format: str = PUBLISHED
    dtype: str = "bfloat16"
    devices: int = 1
    accelerator: Accelerator | None = None

    @property
    def item_bytes(self) -> ItemBytes:
        """Bytes of an element of the cache."""
        return CACHE_BYTES[self.dtype]

    @property
    def tokens(self) -> int:
        """The context, for a figure that needs one. Raises ValueError if there is none."""
        if self.context is None:
            raise ValueError("a figure at a context needs the context")
        return self.context

    @property
    def sequences(self) -> str:
        """Number and length of the sequences: `8,192 tokens`, `4 sequences of 8,192 tokens`."""
        several = f"{self.batch:,} sequences of " if self.batch > 1 else ""
        return f"{several}{self.tokens:,} tokens"

    @property
    def machine(self) -> Accelerator:
        """The accelerator, for a figure that needs one. Raises ValueError if there is none."""
        if self.accelerator is None:
            raise ValueError("a figure of time needs an accelerator")
        return self.accelerator

    def at(self, context: int | None) -> Conditions:
        """These conditions at another context."""
        return Conditions(context, self.batch, self.format, self.dtype, self.devices, self.accelerator)

    def on(self, accelerator: Accelerator, devices: int) -> Conditions:
        """These conditions on other devices."""
        return Conditions(self.context, self.batch, self.format, self.dtype, devices, accelerator)

    def of_texts(self, batch: int) -> Conditions:
        """These conditions with another number of sequences."""
        return Conditions(self.context, batch, self.format, self.dtype, self.devices, self.accelerator)

    def in_format(self, format: str) -> Conditions:
        """These conditions with the weights in another format."""
        return Conditions(self.context, self.batch, format, self.dtype, self.devices, self.accelerator)
