"""Makes docs/assets/vendor/stix-two-math.woff2, by hand: `python tests/vendor/math_font.py FILE`, from the repository.

FILE is files/stix-two-math-latin-400-normal.woff2 of the npm package @fontsource/stix-two-math, with the digest below.
Needs fonttools and brotli, which nothing else here does. Keeps the characters that formulas may use: a test holds the
pages against them, and the file against the digest that this program writes beside it.
"""

import re
import sys
from hashlib import sha256
from pathlib import Path

SOURCE = "8b2a6834cfe1f4e0f3724ffa59fe92000013fc5a4c41e6a3f438006c26c60f0d"
FOLDER = Path(__file__).parents[2] / "docs/assets/vendor"
FONT, ABOUT = FOLDER / "stix-two-math.woff2", FOLDER / "stix-two-math.txt"

LATIN = "".join(map(chr, range(0x20, 0x7F)))
GREEK = "".join(map(chr, (*range(0x3B1, 0x3CA), 0x3D5, 0x3F5))) + "ΓΔΘΛΞΠΣΦΨΩ"
SIGNS = "\u00a0·×÷±−⋅⋯…′‖‾\u2061\u2062\u2063\u2064ℝ→∂∈∑∏∘√∞∣≈≠≡≤≥≪≫⊕⊗⊙⊤⌈⌉⌊⌋⏟⟨⟩"
# What a browser writes for the one letter of an <mi>: the letters of mathematics in italics.
ITALIC = {"h": "ℎ", "ϵ": "𝜖", "ϕ": "𝜙"}
ITALIC |= {chr(0x61 + n): chr(0x1D44E + n) for n in range(26) if n != 7}
ITALIC |= {chr(0x41 + n): chr(0x1D434 + n) for n in range(26)}
ITALIC |= {chr(0x3B1 + n): chr(0x1D6FC + n) for n in range(25)}
CHARACTERS = frozenset(LATIN + GREEK + SIGNS) | frozenset(ITALIC.values())


def main(file: str) -> None:
    from fontTools.subset import Options, Subsetter, load_font, save_font

    if (digest := sha256(Path(file).read_bytes()).hexdigest()) != SOURCE:
        sys.exit(f"{file} has the digest {digest}, not {SOURCE}")
    options = Options(layout_features=[], flavor="woff2", hinting=False, notdef_outline=True)
    options.name_IDs = [0, 1, 2, 13, 14]  # copyright, names, licence
    options.drop_tables += ["GDEF", "GPOS", "GSUB", "gasp"]
    font = load_font(file, options)
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=map(ord, CHARACTERS))
    subsetter.subset(font)
    save_font(font, str(FONT), options)
    digest = sha256(FONT.read_bytes()).hexdigest()
    ABOUT.write_text(re.sub(r"(?<=SHA-256 )[0-9a-f]{64}", digest, ABOUT.read_text("utf-8")), "utf-8")
    print(f"{FONT.stat().st_size:,} bytes, SHA-256 {digest}")


if __name__ == "__main__":
    main(*sys.argv[1:])
