"""What a published model answered: the recording, its figures, and, where its file is at hand, the model itself."""

import os
import re
import tomllib
from math import exp
from pathlib import Path

import numpy as np
import pytest

from macros.catalogue.recordings import FILE, TEMPERATURES, recorded
from macros.engine.errors import Problem
from macros.views.guide import recorded as views

ROUNDED = 1e-5  # of six decimals
GGUF = os.environ.get("SMOLLM2_GGUF")


def test_the_recording_agrees_with_itself():
    """The shares of the last layer are those of the next token; the arrows of the map are as parallel as it says."""
    of = recorded()
    token, logit = of.next.top[0]
    share = exp(logit - of.next.log_sums[TEMPERATURES.index(1.0)])
    last = of.layers.rows[-1]
    assert (last.token, last.layers) == (token, len(of.layers.rows) - 1)
    assert last.share == last.of_answer == pytest.approx(share, abs=ROUNDED)
    assert [logit for _, logit in of.next.top] == sorted((logit for _, logit in of.next.top), reverse=True)
    for temperature, total in zip(TEMPERATURES, of.next.log_sums, strict=True):
        assert sum(exp(logit / temperature - total) for _, logit in of.next.top) < 1 + ROUNDED
    places = {word: np.array(at) for word, *at in of.map.words}
    arrows = np.array([places[b] - places[a] for a, b in views._arrows().items()])
    arrows /= np.linalg.norm(arrows, axis=1, keepdims=True)
    mean = (arrows @ arrows.T)[np.triu_indices(len(arrows), 1)].mean()
    assert mean == pytest.approx(of.map.cosine_in_plane, abs=2e-3)
    assert {word for near in of.map.nearest for word in near} <= places.keys()


def test_two_engines_and_the_browser_agree():
    """On the first tokens of every text, on all of at least eight; the same rounding here moves scores by as much."""
    of = recorded().engines
    assert len(of.rows) == 10 and len({one.text for one in of.rows}) == 10
    assert all(one.same_in_browser == of.first and one.same_unpacked >= of.first for one in of.rows)
    assert sum(one.same_unpacked == of.tokens for one in of.rows) >= 8
    for one in of.rows:
        assert one.far_unpacked < 0.1 < one.far_shipped and 0.5 < one.far_rounded / one.far_shipped < 2
    first = next(one for one in of.rows if one.text == recorded().next.text)
    assert first.answer.startswith(recorded().next.top[0][0])
    shown = re.sub("<[^>]+>", " ", str(views.recorded_engines()))
    assert all(f"{one.same_shipped}" in shown for one in of.rows) and "SHA-256" in shown
    assert views.recorded_engine("alike") == str(sum(one.same_unpacked == of.tokens for one in of.rows))
    assert views.recorded_engine("far") == views.significant(max(one.far_unpacked for one in of.rows), 2)


def test_a_hotter_model_is_less_sure():
    shares = [views.share_at("Paris", t) for t in TEMPERATURES]
    assert shares == sorted(shares, reverse=True) and len(set(shares)) == len(TEMPERATURES)
    assert views.recorded_share("Paris") == f"{100 * recorded().layers.rows[-1].share:.1f}%"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: views.recorded_share("Rome"), "Rome"),
        (lambda: views.recorded_share("Paris", 3), "0.25, 0.5"),
        (lambda: views.recorded_near("Pariss"), "Paris"),
        (lambda: views.recorded_map_figure("word"), "words"),
        (lambda: views.recorded_engine("alik"), "alike"),
    ],
)
def test_what_was_not_recorded_is_one_line(call, said):
    with pytest.raises(Problem, match=said):
        call()


def test_names_on_the_map_do_not_meet():
    """Each name stands free of the others, at both widths."""
    for drawing in re.findall("<svg.*?</svg>", views.embedding_map()):
        names = re.findall(r'<text x="([0-9.]+)" y="([0-9.]+)"[^>]*>([^<]+)</text>', drawing)
        assert len(names) >= 2 * views.ON_PHONES
        boxes = [(float(x), float(y), float(x) + 6 * len(name)) for x, y, name in names]
        for i, (left, base, right) in enumerate(boxes):
            for x, y, end in boxes[:i]:
                assert abs(y - base) > 10 or right < x or end < left


@pytest.mark.skipif(GGUF is None, reason="SMOLLM2_GGUF names the file")
def test_the_model_says_what_was_recorded():
    from reference.smollm2 import recorded as again

    found, kept = again(Path(GGUF)), tomllib.loads(FILE.read_text("utf-8"))
    assert found["source"] | {"date": ""} == kept["source"] | {"date": ""}
    for (token, logit), (known, before) in zip(found["next"]["top"], kept["next"]["top"], strict=True):
        assert token == known and logit == pytest.approx(before, abs=1e-3)
    assert [row[:2] for row in found["layers"]["rows"]] == [row[:2] for row in kept["layers"]["rows"]]
    assert found["map"]["nearest"] == kept["map"]["nearest"]
