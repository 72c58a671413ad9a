"""Small configs of prime, mutually distinct sizes, and random weights for them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from macros.counting.parameters import Counts
from macros.engine.architectures import find
from macros.engine.dims import Poly
from macros.engine.forward import trace

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)


def degree(poly: Poly, symbol: str) -> int:
    """The highest power of `symbol` outside `min`, `//` and `%`."""
    return max((e for m in poly.terms for a, e in m if a == symbol), default=0)


def counts(raw: dict) -> Counts:
    """The counts of a config."""
    architecture = find(raw["model_type"])
    config, unknown = architecture.config.read(raw)
    assert not unknown
    return Counts(trace(architecture, config))


def random_weights(raw: dict, seed: int = 5) -> dict[str, np.ndarray]:
    """Weights of the names and shapes that the config's trace asks for."""
    rng = np.random.default_rng(seed)
    found = counts(raw)
    return {
        name: rng.normal(0, 0.5, shape).astype(np.float32)
        for name, shape in (*found.tensors(), *found.tensors(found.buffers))
    }


@st.composite
def configs(draw) -> dict:
    """A config.json of gpt2, llama or mistral."""
    layers, heads, groups, width, ff, vocabulary = draw(st.permutations(PRIMES))[:6]
    layers = draw(st.integers(1, 3))
    if draw(st.sampled_from(["gpt2", "llama", "mistral"])) == "gpt2":
        return {
            "model_type": "gpt2",
            "vocab_size": vocabulary,
            "n_positions": draw(st.integers(18, 40)),
            "n_embd": heads * width,
            "n_layer": layers,
            "n_head": heads,
            "activation_function": draw(st.sampled_from(["gelu_new", "gelu", "relu"])),
            "layer_norm_epsilon": 1e-3,
            "scale_attn_by_inverse_layer_idx": draw(st.booleans()),
        } | draw(st.sampled_from([{}, {"n_inner": ff}, {"n_inner": None}]))
    raw = {
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": draw(st.sampled_from([31, 37, 41])),
        "num_hidden_layers": layers,
        "num_attention_heads": groups * heads,
        "num_key_value_heads": heads,
        "head_dim": 2 * width,
        "intermediate_size": ff,
        "rms_norm_eps": 1e-3,
        "rope_theta": 97.0,
        "tie_word_embeddings": draw(st.booleans()),
    }
    if draw(st.booleans()):
        return raw | {"model_type": "mistral", "sliding_window": draw(st.none() | st.sampled_from(PRIMES[:6]))}
    return raw | draw(
        st.fixed_dictionaries(
            {"attention_bias": st.booleans(), "mlp_bias": st.booleans()},
            optional={"rope_scaling": st.just({"type": "linear", "factor": 3.0})},
        )
    )
