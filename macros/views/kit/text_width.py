"""The width of text in the site's own font, so that the build can draw a box around it."""

from __future__ import annotations

from functools import cache
from itertools import repeat

# Widths of characters in thousandths of the font's size, by weight, as Chromium measures the vendored Source Sans 3; a
# browser test checks them. Kerning makes text a little narrower than their sum.
_CHARACTERS = "".join(map(chr, range(32, 127))) + "·×’“”–—…−"
_WIDTHS = {
    400: """
        200 289 426 497 497 824 609 249 303 303 418 497 249 311 249 350 497 497 497 497 497 497 497 497 497 497 249 249
        497 497 497 425 847 543 588 571 615 527 494 617 652 263 479 579 486 727 647 664 566 664 569 534 536 645 515 786
        513 476 539 303 350 303 497 500 542 504 553 456 555 496 292 504 544 246 247 495 255 829 547 542 555 555 347 419
        338 544 467 719 446 467 425 303 241 303 497 249 497 249 426 426 480 800 948 497
    """,
    600: """
        200 315 482 513 513 841 639 275 324 324 438 513 275 322 275 344 513 513 513 513 513 513 513 513 513 513 275 275
        513 513 513 444 875 558 597 576 625 538 510 628 663 282 494 597 502 745 657 674 582 674 592 545 546 655 536 800
        541 501 540 324 344 324 513 500 549 516 563 462 564 507 317 520 558 262 263 522 271 843 560 549 564 564 373 431
        361 556 495 748 481 495 443 324 255 324 513 275 513 275 482 482 480 800 964 513
    """,
}
WIDTHS = {weight: dict(zip(_CHARACTERS, map(int, widths.split()), strict=True)) for weight, widths in _WIDTHS.items()}
_ANY_OTHER, _USUAL = 1000, 600  # of any other font: at most, and about
WIDER = 1.4  # the widest common proportional font, relative to ours
MONOSPACE = 0.62  # character width of the widest common monospaced font, in em


@cache
def text_width(text: str, size: float, weight: int = 400) -> float:
    """The maximum width of a line of text in px."""
    widths = WIDTHS[weight]
    return size * sum(map(widths.get, text, repeat(_ANY_OTHER))) / 1000


@cache
def held(text: str, size: float, weight: int, room: float) -> dict[str, object]:
    """The attributes that fix the width of text in any font, if another font could overflow its space."""
    if max(text_width(text, size, weight) * WIDER, size * len(text) * MONOSPACE) <= room:
        return {}
    widths = WIDTHS[weight]
    own = size * sum(map(widths.get, text, repeat(_USUAL))) / 1000
    return dict(textLength=f"{own:.1f}", lengthAdjust="spacingAndGlyphs")
