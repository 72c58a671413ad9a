"""Links from the numbers of a static page to the same numbers in the form that derives each of them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from html import escape
from typing import NamedTuple
from urllib.parse import quote, urlencode

from ...engine.architectures.gpt2 import GPT2
from ..kit.html import Html, Link

PAGE = "real-numbers/step-by-step.md"
FOLDER, TEXT = "capitals", "The capital of France is"  # the form's default

Place = Callable[[int, int], str | None]  # from a row and a column to the number's name in the form


class Live(NamedTuple):
    """The URL of the form with a text, up to the number."""

    address: str

    def number(self, said: str, place: str | None, is_first: bool = False) -> Html | str:
        """A number as a link to its place in the form; Tab reaches the first one of a table."""
        if place is None:
            return said
        last = "" if is_first else ' tabindex="-1"'
        return Html(f'<a href="{escape(self.address)}number={quote(place)}"{last}>{escape(said)}</a>')


def live(
    page_link: Link | None, folder: str = FOLDER, text: str = TEXT, without: str = "", **fields: object
) -> Live | None:
    """The form for a text of the small model; None for another checkpoint, and if the site has no such page."""
    page = page_link(PAGE) if page_link and folder == FOLDER else None
    if page is None:
        return None
    left_out = "ln_1|ln_2|ln_f" if without == "norms" else without  # listed one by one in the form
    given = {"text": "" if text == TEXT else text, "without": left_out, **fields}
    values = urlencode({name: value for name, value in given.items() if value not in ("", None)})
    return Live(f"{page}?{values}&" if values else f"{page}?")


def places(names: Collection[str], layer: int | None, head: int | None, c: GPT2, is_masked: bool = True) -> Place:
    """The names of a station's numbers in the form, by the station's names; masked later words have no score."""
    where, width, head_width = layer or 0, int(c.d_model), int(c.d_head)
    known = {
        "embed": "token",
        "embed_positions": "position",
        "add_embed_positions": "stream/0",
        "ln_1": f"norm/{2 * where}",
        "ln_2": f"norm/{2 * where + 1}",
        "ln_f": f"norm/{2 * int(c.n_layers)}",
        "c_attn": f"map/{where}/c_attn",
        "q, k, v": f"map/{where}/c_attn",
        "scores": f"score/{where}/{head}",
        "causal_mask": f"score/{where}/{head}",
        "softmax": f"share/{where}/{head}",
        "weighted_sum": f"mixed/{where}/{head}",
        "attn.c_proj": f"map/{where}/out",
        "add_attention": f"stream/{2 * where + 1}",
        "c_fc": f"map/{where}/c_fc",
        "gelu_tanh": f"active/{where}",
        "mlp.c_proj": f"map/{where}/down",
        "add_feed_forward": f"stream/{2 * where + 2}",
    }
    station = next((name for name in known if name in names), "")
    is_of_pairs = station in ("scores", "causal_mask", "softmax")
    part = next((i for i, name in enumerate("qkv") if name in names), None)

    def place(i: int, j: int) -> str | None:
        if "unembed" in names:
            return f"logit/{j}"
        if "merge" in names:
            return f"mixed/{where}/{j // head_width}/{i}/{j % head_width}"
        if part is not None:
            return f"map/{where}/c_attn/{i}/{part * width + (head or 0) * head_width + j}"
        return f"{known[station]}/{i}/{j}" if station and not (is_of_pairs and is_masked and j > i) else None

    return place
