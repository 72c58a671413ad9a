"""Keys of a config.json that transformers 5.23 reads differently from the forward passes here, with its behavior.

A config class lists its own as `otherwise`; `tests/reference/variants.py` checks that there are no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

# A config's keys as they come.
Table: TypeAlias = Mapping[str, Any]

# Types whose class in transformers 5.23 rounds the width of a head down if no key states it and the heads do not divide
# hidden_size. The others' classes refuse that, or build what cannot run.
ROUNDS_DOWN = frozenset(
    """
    apertus cohere cohere2 cohere_compass_text diffllama doge dots1 emu3_text_model ernie4_5_moe
    ernie4_5_vl_moe_text exaone4 exaone_moe falcon_h1 flex_olmo glm4_moe glm4v_moe_text glm4v_text glm_ocr_text
    granite granite4_vision_text granite_swa granitemoe granitemoe_swa granitemoeshared lfm2 lfm2_moe minimax
    mistral mixtral mllama_text_model nanochat nemotron olmo olmo2 olmo3 olmo_hybrid phi3 phi4_multimodal phimoe
    qwen2 qwen2_5_omni_text qwen2_moe qwen3_moe qwen3_omni_moe_text qwen3_vl_moe_text recurrent_gemma smollm3
    starcoder2
""".split()
)
# Of these, those whose class refuses an odd width, and one whose rotary embedding here has no pairs of a part.
REFUSES_ODD = frozenset("cohere2 cohere_compass_text diffllama mistral nanochat qwen3_vl_moe_text".split())
# Beside a width that was rounded: whether an odd one is counted, too.
ROUNDED = "head_dim_rounded_down"


class Otherwise(NamedTuple):
    """A key of a config with which transformers computes something else, when, and what."""

    key: str
    differs: Callable[[Table], bool]
    says: str


def other_than(name: str, *alike: object, unless: str = "") -> Callable[[Table], bool]:
    """Whether a key is given and has another value than these; not where the key `unless` is, too."""

    def differs(raw: Table) -> bool:
        return raw.get(name) is not None and raw[name] not in alike and (not unless or raw.get(unless) is None)

    return differs


def theta_beside(usual: float, part: str = "") -> Callable[[Table], bool]:
    """Whether `rope_theta` is given, is not the `usual` one, and is next to the table that would need it.

    `part`: the kind of layers whose table that is, where each has one.
    """

    def differs(raw: Table) -> bool:
        whole = _table(raw.get("rope_parameters"))
        table = _table(whole.get(part)) if part else whole
        return raw.get("rope_theta") not in (None, usual) and table.get("rope_theta") is None

    return differs


def single_table(usual: float) -> Otherwise:
    """When `rope_parameters` is one table, and not one for each kind of layers: scaled, or not the `usual` theta."""

    def differs(raw: Table) -> bool:
        table = _table(raw.get("rope_parameters"))
        if any(isinstance(part, Mapping) for part in table.values()):
            return False
        plain = {"rope_type": "default", "type": "default", "rope_theta": raw.get("rope_theta", usual)}
        return any(value != plain.get(name) for name, value in table.items())

    return Otherwise("rope_parameters", differs, "transformers 5.23 ignores it if it is one table for all layers")


def _table(value: object) -> Table:
    return cast("Table", value) if isinstance(value, Mapping) else {}


EXPERTS_ACTIVATION = Otherwise(
    "hidden_act",
    other_than("hidden_act", "silu", "swish"),
    "transformers 5.23 has SiLU in its routed experts anyway",
)
NEVER_TIED = Otherwise(
    "tie_word_embeddings",
    other_than("tie_word_embeddings", False),
    "transformers 5.23 ties no weights of this type, and has a separate head",
)


def with_rounded_head(raw: Table) -> Table:
    """The keys with the width of a head that transformers rounds down, if that is how it finds one."""
    kind, wide, n = raw.get("model_type"), raw.get("hidden_size"), raw.get("num_attention_heads")
    if not isinstance(kind, str) or kind not in ROUNDS_DOWN or raw.get("head_dim") is not None:
        return raw
    if type(wide) is not int or type(n) is not int or not 0 < n <= wide or wide % n == 0:
        return raw
    return {**raw, "head_dim": wide // n, ROUNDED: kind not in REFUSES_ODD}


def rounded_head(raw: Table) -> list[str]:
    """A line if the width of a head was rounded down."""
    n, wide, head = (raw.get(name) for name in ("num_attention_heads", "hidden_size", "head_dim"))
    if ROUNDED not in raw or type(n) is not int or type(wide) is not int or head != wide // n:
        return []
    found = f"num_attention_heads = {n} does not divide hidden_size = {wide}, and head_dim is missing"
    return [f"{found}: transformers 5.23 rounds it down, to {head}"]
