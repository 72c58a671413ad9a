"""Types of remote code that transformers does not have: they compute what the type does that they equal."""

import pytest
from reference import close, golden
from reference.configs import REMOTE, configs, remote

from macros.catalogue.presets import make
from macros.engine.forward import logits
from macros.engine.loaded import Arrays

# What the equal type's small config says otherwise, so that both say the same.
SAME = {
    "deepseek": {"routed_scaling_factor": 1.0},
    "exaone": {},
    "minicpm": {"attention_multiplier": 8**-0.5, "residual_multiplier": 1.4 / 3**0.5, "logits_scaling": 48 / 12},
}


@pytest.mark.parametrize("model_type", REMOTE)
def test_it_computes_what_its_equal_does(model_type):
    like = REMOTE[model_type][0]
    g, ours, other = golden(like), make("it", remote(model_type)), make("it", configs()[like] | SAME[model_type])
    assert dict(ours.counts.tensors()) == dict(other.counts.tensors()) and ours.unknown == ()
    here, there = (logits(m.architecture, m.config, Arrays(g.tensors), g.ids)[0] for m in (ours, other))
    close(here, there)
    if not SAME[model_type]:
        close(here, g.logits)


def test_exaone_in_its_makers_names():
    """Each of the maker's names is one of ours."""
    from macros.engine.layouts import Layout

    ours = make("it", remote("exaone"))
    theirs = {
        "transformer.wte.weight": None,
        "transformer.h.1.attn.attention.q_proj.weight": None,
        "transformer.h.1.attn.attention.out_proj.weight": None,
        "transformer.h.1.mlp.c_fc_0.weight": None,
        "transformer.h.1.mlp.c_fc_1.weight": None,
        "transformer.h.1.mlp.c_proj.weight": None,
        "transformer.h.1.ln_2.weight": None,
        "transformer.ln_f.weight": None,
    }
    called = set(Layout(ours.architecture, theirs).called)
    assert called & dict(ours.counts.tensors()).keys() == called and len(called) == len(theirs)
