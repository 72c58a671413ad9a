"""Forward passes without one of their designs: by the config where it has a key for it, else by a GPT-2 written out."""

from __future__ import annotations

import numpy as np
import pytest
from reference import close, golden

import macros as ep
from macros.catalogue import presets
from macros.catalogue.checkpoints import checkpoint
from macros.engine import forward, numbers
from macros.engine.ablations import adds_its_branches
from macros.engine.errors import Problem
from macros.engine.steps import FEED_FORWARDS, Role

TEXT = "People in Japan pay with the"
SMALL = checkpoint("capitals")


def without(*names, given=None):
    """The logits of all tokens, and the attention weights of each layer."""
    run, _ = given or numbers.trace(
        SMALL.model.architecture, SMALL.model.config, SMALL.weights(), SMALL.tokenizer.encode(TEXT), without=names
    )
    shares = [run.of(node.outputs[0]) for node in run.root.walk() if node.role is Role.SOFTMAX]
    return run.of(run.root.outputs[0]), shares


def written_out(names):
    """The small model in a few lines, with a switch for each design: (logits, attention weights)."""
    c, tensors = SMALL.model.config, SMALL.weights().tensors
    w = {name.removeprefix("transformer."): np.array(tensors[name], np.float64) for name in tensors}

    def norm(x, name):
        if "norms" in names or name.rpartition(".")[2] in names or name in names:
            return x
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + c.norm_eps) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    def add(x, branch):
        return branch if "residual_stream" in names else x + branch

    ids = SMALL.tokenizer.encode(TEXT)
    x, all_shares = w["wte.weight"][ids] + w["wpe.weight"][: len(ids)], []
    for i in range(c.n_layers):
        found, of_layer = [], []
        qkv = np.split(linear(norm(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn"), 3, axis=-1)
        for q, k, v in zip(*(np.split(one, c.n_heads, axis=-1) for one in qkv)):
            fit = q @ k.T * (1 if "scaling" in names else c.d_head**-0.5)
            if "causal_mask" not in names:
                fit = np.where(np.tri(len(ids), dtype=bool), fit, -np.inf)
            powers = np.exp(fit - fit.max(-1, keepdims=True))
            of_layer.append(powers / powers.sum(-1, keepdims=True))
            found.append(of_layer[-1] @ v)
        all_shares.append(np.array(of_layer))
        x = add(x, linear(np.concatenate(found, -1), f"h.{i}.attn.c_proj"))
        hidden = linear(norm(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc")
        hidden = hidden / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden**3)))
        x = add(x, linear(hidden, f"h.{i}.mlp.c_proj"))
    return norm(x, "ln_f") @ w["wte.weight"].T, all_shares


@pytest.mark.parametrize(
    "names",
    [
        *((), ("scaling",), ("causal_mask",), ("norms",), ("residual_stream",)),
        *(("ln_1",), ("h.1.ln_2", "ln_f"), ("scaling", "causal_mask", "norms", "residual_stream")),
    ],
    ids="|".join,
)
def test_what_is_left_out(names):
    logits, shares = without(*names)
    expected, expected_shares = written_out(names)
    close(logits, expected)
    for ours, theirs in zip(shares, expected_shares, strict=True):
        close(ours, theirs)


def test_scaling_is_also_a_key_of_the_config():
    """Which the reference of GPT-2 has, too."""
    g = golden("gpt2")
    unscaled = g.architecture.config.read(type(g.raw)({**g.raw, "scale_attn_weights": False}))[0]
    by_key, _ = forward.logits(g.architecture, unscaled, g.weights(), g.ids)
    run = numbers.trace(g.architecture, g.config, g.weights(), g.ids, without=("scaling",))
    scores, _ = without(given=run)
    close(scores, by_key)
    as_it_is, _ = forward.logits(g.architecture, g.config, g.weights(), g.ids)
    assert np.abs(scores - as_it_is).max() > 1e-3


def test_the_branches_of_a_layer_are_seen_from_its_trace():
    """One after the other, each of a norm; not in parallel (GPT-J), and not with norms behind them (Gemma 2)."""

    def of(slug):
        model = presets.model(slug)
        nodes = forward.trace(model.architecture, model.config).root.walk()
        return {adds_its_branches(node) for node in nodes if node.role is Role.LAYER}

    assert [of(slug) for slug in ("gpt2", "llama3-8b", "mixtral-8x7b", "deepseek-v3")] == [{True}] * 4
    assert [of(slug) for slug in ("gpt-j-6b", "gemma2-9b", "olmo2-7b")] == [{False}] * 3


@pytest.mark.parametrize(
    "names, said",
    [
        ("scalling", "without = 'scalling': no step has it; did you mean \"scaling\"?"),
        (["norms", "ln_7"], "without = 'ln_7': no step has it; known: scaling, causal_mask, norms, residual_stream"),
    ],
)
def test_what_no_step_has_is_one_line(names, said):
    with pytest.raises(Problem) as problem:
        ep.run("capitals", TEXT, without=names)
    assert str(problem.value) == f"capitals: {said}"


def test_another_residual_stream_is_refused():
    g = golden("gptj")
    with pytest.raises(Problem, match="its layers add up in another way"):
        numbers.trace(g.architecture, g.config, g.weights(), g.ids, without=("residual_stream",))


def test_a_branch_that_gives_more_than_its_vectors_and_attention_without_a_scale():
    """DeepSeek-V3.2's attention also gives what it picked; BigBird's blocks hold scores and values in one step."""
    g = golden("deepseek_v32")
    run, _ = numbers.trace(g.architecture, g.config, g.weights(), g.ids, without=("residual_stream",))
    layer = [node for node in run.root.walk() if node.role is Role.LAYER][-1]
    last = [node for node in layer.children if node.role in FEED_FORWARDS][-1]
    close(run.of(layer.outputs[0]), run.of(last.outputs[0]))
    g = golden("big_bird")
    with pytest.raises(Problem, match="no step has it"):
        numbers.trace(g.architecture, g.config, g.weights(), g.ids, without=("scaling",))


def test_run_leaves_out_what_it_is_told():
    answer = ep.run("capitals", TEXT, without="norms", all_logits=True)
    close(answer.logits, written_out(("norms",))[0])
    assert ep.run("capitals", TEXT, without=["scaling"]).logits.shape == (1, 590)
