"""Every forward pass on real weights: against reference logits and hidden states, and in parts through the cache."""

from __future__ import annotations

import numpy as np
import pytest
from reference import (
    BOTH_WAYS,
    DYNAMIC,
    ENCODERS,
    IN_ONE,
    WITH_ENCODER,
    Blocks,
    close,
    golden,
    goldens,
    in_double,
)
from small import random_weights

from macros.catalogue import presets
from macros.engine.architectures import find
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.loaded import Arrays, Cache
from macros.engine.steps import OF_SOURCE

REQUIRED = {"gpt2", "llama", "llama3_rope", "mistral"}


def test_the_first_architectures_are_among_the_golden_checkpoints():
    assert set(goldens()) >= REQUIRED


@pytest.mark.parametrize("name", goldens())
def test_logits(name):
    g = golden(name)
    g.close(logits(g.architecture, g.config, g.weights(), g.ids, g.start())[0])


@pytest.mark.parametrize("name", [n for n in goldens() if golden(n).blocks])
def test_hidden_states(name):
    """The input of every block and of the head, each residual stream where there are several."""
    g, watch = golden(name), Blocks()
    with in_double():
        logits(g.architecture, g.config, g.weights(watch), g.ids, g.start())
    assert len(watch.seen) == (len(g.blocks) if g.source is not None else g.config.n_layers + 1)
    assert len(g.blocks) >= len(watch.seen) - 1
    for n, (ours, reference) in enumerate(zip(watch.seen, g.blocks)):
        close(ours, reference, what=f"{name}: after {n} blocks, the first difference: ")


@pytest.mark.parametrize("name", goldens())
def test_every_key_of_the_small_config_is_read(name):
    g = golden(name)
    unread = g.architecture.config.read(g.raw)[1]
    assert not unread, f"{name}: {', '.join(unread)}: {g.architecture.name} does not read it; remove it from the config"


@pytest.mark.parametrize("name", goldens())
def test_the_last_row_alone_is_the_last_row_of_all(name):
    g = golden(name)
    with in_double():
        ours, _ = logits(g.architecture, g.config, g.weights(), g.ids, g.start(), last=True)
    close(ours, g.logits[-1:])


@pytest.mark.share(3)
@pytest.mark.parametrize("cuts", [(3,), (1,), (2, 5), (1, 2, 3, 4, 5, 6)], ids=str)
@pytest.mark.parametrize("name", [name for name in goldens() if name not in (DYNAMIC, *BOTH_WAYS, *IN_ONE)])
def test_a_text_in_parts_is_the_text(name, cuts):
    """In double precision, where both agree to 13 digits."""
    g, rows = golden(name), []
    with in_double():
        whole, _ = logits(g.architecture, g.config, g.weights(), g.ids, g.start())
        cache = g.start()
        for part in np.split(g.ids, cuts):
            out, cache = logits(g.architecture, g.config, g.weights(), part, cache)
            rows.append(out)
    assert cache.length == len(g.ids)
    close(np.concatenate(rows), whole, 1e-12)


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_keeps_nothing_and_sees_what_follows(name):
    g = golden(name)
    whole, cache = logits(g.architecture, g.config, g.weights(), g.ids)
    assert not cache.kept
    other = np.concatenate([g.ids[:-1], [(g.ids[-1] + 1) % g.raw["vocab_size"]]])
    changed, _ = logits(g.architecture, g.config, g.weights(), other)
    assert np.abs(changed[0] - whole[0]).max() > 1e-4


@pytest.mark.parametrize("name", WITH_ENCODER)
def test_an_encoder_runs_in_the_first_step_alone(name):
    """What is made of the text that it reads is kept as it is, and each of its tokens is seen by the first that is
    written.
    """
    g = golden(name)
    first, cache = logits(g.architecture, g.config, g.weights(), g.ids[:4], g.start())
    of_source = {place: rows for place, rows in cache.kept.items() if place[1] in OF_SOURCE}
    assert {len(rows) for rows in of_source.values()} == {int(g.config.n_source)}
    assert cache.read is None
    _, after = logits(g.architecture, g.config, g.weights(), g.ids[4:], cache)
    assert all(after.kept[place] is rows for place, rows in of_source.items())
    for end in (0, -1):
        other = g.source.copy()
        other[end] = (other[end] + 1) % int(g.config.vocab_size)
        changed, _ = logits(g.architecture, g.config, g.weights(), g.ids[:4], Cache(read=other))
        assert np.abs(changed[0] - first[0]).max() > 1e-5


def test_without_a_text_to_read_there_is_an_error():
    g = golden("t5")
    with pytest.raises(Problem, match="the input of the encoder is missing"):
        logits(g.architecture, g.config, g.weights(), g.ids)


def test_a_text_that_outgrows_dynamic_scaling_is_the_text_only_while_it_fits():
    g = golden(DYNAMIC)
    trained = g.raw["max_position_embeddings"]

    def in_two(length: int) -> tuple[np.ndarray, np.ndarray]:
        whole, _ = logits(g.architecture, g.config, g.weights(), g.ids[:length])
        first, cache = logits(g.architecture, g.config, g.weights(), g.ids[: length - 1])
        last, _ = logits(g.architecture, g.config, g.weights(), g.ids[length - 1 : length], cache)
        return np.concatenate([first, last]), whole

    close(*in_two(trained))
    with pytest.raises(AssertionError):
        close(*in_two(trained + 1))


@pytest.mark.parametrize("name", goldens())
def test_every_tensor_of_the_checkpoint_is_used(name):
    """A weight that nothing asks for would be missing from every count."""
    g = golden(name)

    asked = set()

    class Watched(dict):
        def __getitem__(self, key):
            asked.add(key)
            return super().__getitem__(key)

    logits(g.architecture, g.config, Arrays(Watched(g.tensors)), g.ids, g.start())
    assert asked == set(g.tensors)


def test_a_wrong_shape_names_the_tensor():
    g = golden("gpt2")
    tensors = dict(g.tensors)
    tensors["transformer.h.1.mlp.c_fc.weight"] = tensors["transformer.h.1.mlp.c_fc.weight"].T
    with pytest.raises(Problem, match=r"transformer\.h\.1\.mlp\.c_fc\.weight is \[\d+, \d+\] in the file"):
        logits(g.architecture, g.config, Arrays(tensors), g.ids)


def test_a_missing_tensor_is_named():
    g = golden("llama")
    tensors = {k: v for k, v in g.tensors.items() if k != "model.norm.weight"}
    with pytest.raises(Problem, match=r"no tensor model\.norm\.weight"):
        logits(g.architecture, g.config, Arrays(tensors), g.ids)


# --- what no golden checkpoint covers: a second Llama, one number at a time ------------------------------------------

SIZES = dict(
    model_type="llama",
    vocab_size=31,
    hidden_size=14,
    num_hidden_layers=2,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=10,
    intermediate_size=17,
    rms_norm_eps=3e-4,
    rope_theta=53.0,
    max_position_embeddings=64,
)


def by_hand(raw: dict, w: dict[str, np.ndarray], ids, bend=lambda position, i: 0.0) -> np.ndarray:
    """Llama's logits in float64, token by token and head by head; complex numbers turn pairs by `bend(position, i)`."""
    N, K, H, eps = raw["num_attention_heads"], raw["num_key_value_heads"], raw["head_dim"], raw["rms_norm_eps"]
    w = {k: v.astype(np.float64) for k, v in w.items()}

    def norm(x, name):
        return np.stack([row / np.sqrt(np.mean(row**2) + eps) for row in x]) * w[name]

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0.0)

    def turn(rows, heads):
        out = rows.reshape(len(rows), heads, H).copy()
        for t in range(len(rows)):
            for n in range(heads):
                for i in range(H // 2):
                    z = complex(out[t, n, i], out[t, n, i + H // 2]) * np.exp(1j * bend(t, i))
                    out[t, n, i], out[t, n, i + H // 2] = z.real, z.imag
        return out

    x = w["model.embed_tokens.weight"][ids]
    for layer in range(raw["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        a = norm(x, at + "input_layernorm.weight")
        q, k = turn(linear(a, at + "self_attn.q_proj"), N), turn(linear(a, at + "self_attn.k_proj"), K)
        v = linear(a, at + "self_attn.v_proj").reshape(len(ids), K, H)
        mixed = np.zeros((len(ids), N, H))
        for t in range(len(ids)):
            for n in range(N):
                kv = n // (N // K)
                score = np.array([q[t, n] @ k[s, kv] for s in range(t + 1)]) / np.sqrt(H)
                share = np.exp(score - score.max())
                mixed[t, n] = share / share.sum() @ v[: t + 1, kv]
        x = x + linear(mixed.reshape(len(ids), N * H), at + "self_attn.o_proj")
        a = norm(x, at + "post_attention_layernorm.weight")
        gate = linear(a, at + "mlp.gate_proj")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(a, at + "mlp.up_proj"), at + "mlp.down_proj")
    x = norm(x, "model.norm.weight")
    return x @ w["model.embed_tokens.weight" if raw.get("tie_word_embeddings") else "lm_head.weight"].T


def angle(theta: float, factor: float = 1.0):
    return lambda position, i: position / factor * theta ** (-2 * i / SIZES["head_dim"])


@pytest.mark.parametrize(
    "more, bend",
    [
        ({}, angle(53.0)),
        ({"attention_bias": True}, angle(53.0)),
        ({"mlp_bias": True}, angle(53.0)),
        ({"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}, angle(53.0)),
        ({"rope_scaling": {"type": "linear", "factor": 3.0}}, angle(53.0, 3.0)),
        ({"rope_scaling": {"rope_type": "linear", "factor": 3.0}}, angle(53.0, 3.0)),
        ({"rope_scaling": None}, angle(53.0)),
        ({"rope_theta": None, "rope_parameters": {"rope_type": "default", "rope_theta": 71.0}}, angle(71.0)),
        (
            {"rope_theta": None, "rope_parameters": {"rope_type": "linear", "rope_theta": 71.0, "factor": 5.0}},
            angle(71.0, 5.0),
        ),
    ],
    ids=lambda value: None if callable(value) else str(value),
)
def test_llama_by_hand(more, bend):
    raw = SIZES | more
    w = random_weights(raw)
    architecture = find("llama")
    ids = np.array([3, 30, 0, 7, 7, 19, 2])
    ours, _ = logits(architecture, architecture.config.read(raw)[0], Arrays(w), ids)
    close(ours, by_hand(raw, w, ids, bend))


def test_the_angles_matter():
    """The check above would see a wrong scaling: the second derivation without it is another result."""
    raw = SIZES | {"rope_scaling": {"type": "linear", "factor": 3.0}}
    w, ids, architecture = random_weights(raw), np.array([3, 30, 0, 7]), find("llama")
    ours, _ = logits(architecture, architecture.config.read(raw)[0], Arrays(w), ids)
    with pytest.raises(AssertionError):
        close(ours, by_hand(raw, w, ids, angle(53.0)))


def test_biases_are_asked_for_only_where_the_config_has_them():
    assert not any(n.endswith("bias") for n in random_weights(SIZES))
    assert sum(n.endswith("bias") for n in random_weights(SIZES | {"attention_bias": True})) == 4 * 2
    assert sum(n.endswith("bias") for n in random_weights(SIZES | {"mlp_bias": True})) == 3 * 2


@pytest.mark.parametrize("cuts", [(5,), (1, 2, 6), (3, 4), tuple(range(1, 11))], ids=str)
@pytest.mark.parametrize("window", [1, 2, 3, 5, 11])
def test_a_sliding_window_in_parts(window, cuts):
    """A window of W: with W+1 tokens the first is forgotten, wherever the text is cut."""
    raw = SIZES | {"model_type": "mistral", "sliding_window": window}
    w, architecture = random_weights(raw), find("mistral")
    config, ids = architecture.config.read(raw)[0], np.arange(11) * 3 % 31
    whole, _ = logits(architecture, config, Arrays(w), ids)
    cache, rows = None, []
    for part in np.split(ids, cuts):
        out, cache = logits(architecture, config, Arrays(w), part, cache)
        rows.append(out)
        assert all(len(kept) == min(window, cache.length) for kept in cache.kept.values())
    close(np.concatenate(rows), whole)
    full, _ = logits(find("llama"), find("llama").config.read(SIZES)[0], Arrays(w), ids)
    assert (np.abs(full - whole).max() > 1e-3) == (window < len(ids))


BUFFERS = (
    "e_score_correction_bias",
    "expert_bias",
    "rotary_emb.alpha",
    "gate.tid2eid",
    "layer_multipliers",
    "heads_vocab_sizes",
    "heads_offsets",
    "ssmax_s",
)
# transformers makes one shared expert of these, whatever the key says (of Nemotron-H, where there is a width for it).
# Inkling's shared experts take their share of the chosen ones', and Cohere's are averaged with them, so that none is
# not the same as silent ones; K2 Horizon has no matrices of none, and Hunyuan V3 makes one as wide as a dense
# layer's network of 0. mlx-vlm's DeepSeek V4.1 has one as well, and another number is refused.
OTHERWISE = {"deepseek_v4", "deepseek_v41_text", "inkling_text", "nemotron_h", "cohere2_moe", "k2_horizon", "hy_v3"}
SHARED = ("n_shared_experts", "num_shared_experts", "shared_expert_intermediate_size", "share_expert_dim")


@pytest.mark.parametrize(
    "name, key",
    [(n, k) for n in goldens() for k in SHARED if golden(n).raw.get(k) and golden(n).model_type not in OTHERWISE],
)
def test_no_shared_expert_is_one_that_adds_nothing(name, key):
    """A size of 0 is legal: transformers makes matrices that hold nothing. The rest of such a layer stays as it is."""
    whole = golden(name)
    silent, empty = dict(whole.tensors), dict(whole.tensors)
    for tensor, array in whole.tensors.items():
        if any(f".{part}." in tensor for part in ("shared_experts", "shared_expert", "share_expert")):
            silent[tensor] = np.zeros_like(array) if "down_proj" in tensor else array
            empty[tensor] = array[:, :0] if "down_proj" in tensor else array[:0]
    assert any(array.size == 0 for array in empty.values())
    config, _ = whole.architecture.config.read(whole.raw | {key: 0})
    without, _ = logits(whole.architecture, config, Arrays(empty), whole.ids)
    with_zeros, _ = logits(whole.architecture, whole.config, Arrays(silent), whole.ids)
    close(np.asarray(without), np.asarray(with_zeros))
    assert np.abs(np.asarray(without) - whole.logits).max() > 1e-3
    counts = presets.make("zero", whole.raw | {key: 0}).counts
    assert counts.total == counts.total_poly.at(counts.trace.symbols)
    counted = {tensor for tensor, _ in counts.tensors()}
    assert counts.total == sum(a.size for n, a in empty.items() if n in counted)
    assert all(tensor.endswith(BUFFERS) for tensor in empty.keys() - counted)
