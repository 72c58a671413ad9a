"""Memory against the context: the figure of the guide, which the browser draws with the same functions."""

import pytest

from macros.catalogue import presets
from macros.counting.capacity import Capacity, longest_context
from macros.counting.conditions import Conditions
from macros.data.capacity import capacity
from macros.engine.errors import Problem
from macros.views.charts import memory_areas as areas
from macros.views.models import memory_figure

MODELS = "llama3.1-8b", "gemma3-27b", "deepseek-v3"


@pytest.mark.parametrize("slug", MODELS)
@pytest.mark.parametrize("users", [1, 7])
def test_the_longest_context_is_that_of_the_tools(slug, users):
    model, sized = presets.model(slug), Capacity(capacity(slug))
    for name, weights in sized.weights.items():
        device = areas.device_for(weights.total, memory_figure.devices())
        if device is None:
            continue
        data, longest = capacity(slug), model.longest_context[0]
        most = longest_context(data["kept"], data["operations"], device.memory - weights.total, users, 2, longest)
        given = Conditions(context=1, batch=users, format=name)
        expected = sized.largest_context(device.memory, given)
        assert most == (longest if expected is None else min(expected, longest))


def test_the_figure_says_what_the_command_says():
    """`every-parameter fits llama3.1-8b --on rtx-4090` answers 60,513 tokens."""
    assert "20.4 GB" in memory_figure.sum_said(presets.model("llama3.1-8b"), 1, 32768)
    assert "GeForce RTX 4090 holds 60,513 tokens" in memory_figure.memory_figure(["llama3.1-8b"])


def test_a_panel_is_to_scale():
    """The cursor stands at weights and cache, a device's line at its memory; one far above has no line."""
    kept = [[0, [[65536, 1]]]]
    device, huge = areas.Device("a card", 24 * areas.GB), areas.Device("a rack", 640 * areas.GB)
    (panel,) = areas.panels(kept, [16 * areas.GB], 2, 2**17, 2**15, [device, huge])
    high = 16 * areas.GB + 2 * 2 * 65536 * 2**17

    def up(size):
        return areas.BOTTOM - (areas.BOTTOM - areas.TOP) * size / high

    assert panel.total == pytest.approx(up(16 * areas.GB + 2 * 2 * 65536 * 2**15))
    assert [(m.said, m.at) for m in panel.devices] == [("a card", pytest.approx(up(device.memory)))]
    assert panel.cursor == pytest.approx(areas.LEFT + (areas.RIGHT - areas.LEFT) / 4)
    assert panel.cache[0] == pytest.approx((areas.LEFT, up(16 * areas.GB)))
    assert panel.cache[areas.STEPS] == pytest.approx((areas.RIGHT, areas.TOP))
    assert [m.said for m in panel.across] == ["0", "64K", "128K tokens"]
    assert 3 <= len(panel.up) <= 6


@pytest.mark.parametrize("at", [0, 2**13, 2**15, 2**16, 2**17])
def test_the_cursor_crosses_no_name(at):
    """Neither its line nor its point, wherever a reader moves it."""
    kept, card = [[0, [[131072, 1]]]], areas.Device("GeForce RTX 4090", 24 * areas.GB)
    for panel in areas.panels(kept, [16 * areas.GB, 22 * areas.GB], 1, 2**17, at, [card]):
        (line,) = panel.devices
        end = line.start + areas.LETTER * len(line.said)
        assert areas.LEFT < line.start and end < areas.WIDTH
        assert panel.total > line.at or not line.start - 4 < panel.cursor < end + 4


@pytest.mark.parametrize("weights", range(18, 33))
def test_no_edge_crosses_the_name_of_a_device(weights):
    """Neither that of the weights nor that of the cache: its name stands below its line where one would cross it."""
    kept, card = [[0, [[65536, 1]]]], areas.Device("GeForce RTX 4090", 24 * areas.GB)
    (panel,) = areas.panels(kept, [weights * areas.GB], 1, 2**17, 0, [card])
    (line,) = panel.devices
    assert line.base in (line.at + areas.ABOVE, line.at + areas.BELOW)
    end = line.start + areas.LETTER * len(line.said)
    for y in (panel.weights[1], *(y for x, y in panel.cache[:-1] if line.start < x < end)):
        assert not line.base - areas.TALL < y < line.base


@pytest.mark.parametrize("size", [areas.GB // 2, 16 * areas.GB, 1500 * areas.GB])
def test_an_axis_has_at_least_two_numbers_above_0(size):
    (panel,) = areas.panels([[0, [[65536, 1]]]], [size], 1, 2**10, 0, [])
    assert 3 <= len(panel.up) <= 6 and len({mark.said for mark in panel.up}) == len(panel.up)


def test_one_model_is_a_list_of_one():
    assert memory_figure.memory_figure("llama3.1-8b") == memory_figure.memory_figure(["llama3.1-8b"])
    assert "has not disclosed" in memory_figure.memory_figure("claude-3-opus")
    with pytest.raises(Problem, match="list of models"):
        memory_figure.memory_figure([])


def test_a_model_without_a_cache_has_one_too():
    made = memory_figure.memory_figure("bert-base")
    assert "holds all 512 tokens" in made and "512 tokens" in made
