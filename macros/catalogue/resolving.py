"""Names of models, resolved in one module: a slug, a name, a hub's name or address, an Ollama tag, a conversion.

    Qwen/Qwen3-8B                                        qwen3-8b
    https://huggingface.co/Qwen/Qwen3-8B/blob/main/x     qwen3-8b
    unsloth/Qwen3-8B-GGUF:Q4_K_M                         qwen3-8b in Q4_K_M
    mlx-community/Qwen3-8B-4bit                          qwen3-8b in mlx-4bit
    qwen3:8b                                             qwen3-8b
    llama3.2-vision:90b                                  llama3.2-90b-vision
    mistral:7b                                           asked back: mistral-7b-v0.1, mistral-7b-v0.2 or mistral-7b-v0.3

Names are compared word by word, never by similarity: an unknown name is not answered with a neighbor's figures. Imports
nothing from the catalog, so that the command line, programs, search and tools all resolve names the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class Known(NamedTuple):
    """The names of a model: its title, its hub name, models with the same shapes, and the maker's own size."""

    title: str
    hub: str
    aliases: tuple[str, ...]
    headline: str


Names = Mapping[str, Known]  # by slug


class Reference(NamedTuple):
    """The parts of a name: `organization/name:tag`, and the revision, folder or file that an address ends in."""

    organization: str
    name: str
    tag: str = ""
    place: str = ""


class Meant(NamedTuple):
    """The model that a name refers to, the weight format that it names, and the assumptions made.

    Without a slug, `candidates` are the models that it could refer to, and `why` says which of its parts disagree.
    """

    slug: str
    format: str = ""
    why: str = ""
    candidates: tuple[str, ...] = ()


# Between organization/name and a file in a hub URL.
_VIEWS = ("blob", "resolve", "tree", "raw", "blame", "commits", "commit", "discussions", "edit", "files", "summary")
_BEFORE_NAMES = ("api", "models", "model", "library")  # in an address before organization/name
_FILES = (".gguf", ".json", ".safetensors")
_PROGRAMS = ("hf", "huggingface-cli", "ollama", "vllm")  # programs whose commands end in a name

# Accounts that publish other makers' models, converted or unchanged.
CONVERTERS = frozenset(
    """
    ai-modelscope amd bartowski casperhansen cpatonn cyankiwi ggml-org hugging-quants intel ise-uiuc jinaai-mlx kaitchup
    library llm-research lmstudio-community lonestriker maziyarpanahi mistral-community mlx-community modelcloud
    modelscope mradermacher neuralmagic neuralmagic-ent nousresearch nvidia prince-canuma pytorch qualcomm quantfactory
    quanttrio redhatai second-state solidrust stelterlab tensorblock thebloke turboderp unsloth unslothai waldwebstudio
    """.split()
)
# Accounts by their former names, which the hub redirects.
_RENAMED = {"cohereforai": "coherelabs", "thudm": "zai-org"}
# What accounts mean by a bare FP8: a scale for each block of 128 × 128 weights, or one per matrix.
_FP8 = {"deepseek-ai": "fp8-block", "qwen": "fp8-block", "pytorch": "torchao-float8"} | dict.fromkeys(
    ("amd", "neuralmagic", "nvidia", "redhatai"), "fp8-tensor"
)
# Words after a model's name that change no shape: `-Instruct` has the same shapes as the base.
_VARIANTS = frozenset("base chat hf instruct it latest pt sft".split())
# Words of conversions that do not name the format.
_FILLERS = frozenset(
    "actorder ct dwq false gguf i1 imat imatrix kv mlx qat quant quantized static true unquantized unsloth".split()
)
_COUNTED = frozenset("awq block bnb dynamic fp4 fp8 gptq mxfp4 nf4 nvfp4 nvfp4a16 w4a16 w8a8".split())
# Words of formats that are not supported; `ud` marks Unsloth's own mixes.
_UNCOUNTED = frozenset("aqlm autoround exl2 exl3 ggml hqq marlin mxfp8 onnx ov ud w4a4 w4a8 w8a16".split())
_AFTER_FORMATS = frozenset("preview v2".split())  # another release of the same conversion
_OF_MIXES = frozenset("0 1 k l m nl s xl xs xxl xxs".split())
_SHORTENED = frozenset("bf16 chat hf instruct it pt".split())
_WIDTHS = {f"{n}bit": n for n in range(2, 9)} | {"int4": 4, "int8": 8}
_WHOLE = {"bf16": "bfloat16", "fp16": "float16", "f16": "float16", "fp32": "float32", "f32": "float32"}
_OF_GGUF = {"f32": "F32", "f16": "F16", "fp16": "F16", "bf16": "BF16", "mxfp4": "MXFP4_MOE"}
MOST_CANDIDATES = 8


def pieces_of(name: str) -> list[str]:
    """The lowercase parts of a name between hyphens, underscores, colons, spaces, and points outside numbers:
    `Qwen3-1.7B_AWQ` -> `qwen3`, `1.7b`, `awq`."""
    found, piece, text = [], "", name.lower()
    for i, c in enumerate(text):
        is_number = c == "." and text[i - 1 : i].isdigit() and text[i + 1 : i + 2].isdigit()
        if c.isalnum() or is_number:
            piece += c
        elif piece:
            found.append(piece)
            piece = ""
    return [*found, piece] if piece else found


def words_of(pieces: Iterable[str]) -> tuple[str, ...]:
    """Pieces split between letters and digits: `qwen3`, `1.7b` -> `qwen`, `3`, `1.7`, `b`."""
    found: list[str] = []
    for piece in pieces:
        word = ""
        for c in piece:
            if word and (word[-1].isalpha() if not c.isalpha() else not word[-1].isalpha()):
                found.append(word)
                word = ""
            word += c
        found.append(word)
    return tuple(found)


def reference(text: str) -> Reference:
    """Parse a name or an address, also after the words of a command: `ollama run qwen3:8b`."""
    words = text.split()
    text = words[-1] if len(words) > 2 and words[0].lower() in _PROGRAMS else text
    text = text.strip().partition("?")[0].partition("#")[0]
    text = text[3:] if text.lower().startswith("hf:") else text
    _, scheme, rest = text.partition("://")
    path = [part for part in (rest if scheme else text).split("/") if part]
    if len(path) > 1 and (scheme or "." in path[0]) and "." in path[0] and " " not in path[0]:
        path = path[1:]  # the host
    while len(path) > 1 and path[0].lower() in _BEFORE_NAMES:
        path = path[1:]
    place = ""
    for n in (2, 1):  # organization/name, or a bare name, as old models have
        if len(path) > n and path[n].lower() in (*_VIEWS, "-"):
            place = path[-1] if len(path) > n + 1 else ""
            path = path[:n]
    if len(path) > 2 and path[-1].lower().endswith(_FILES):
        place, path = path[-1], path[:2]
    if len(path) == 1 and path[0].lower().startswith("models--"):  # a folder of the hub's cache
        path = path[0][8:].split("--", 1)
    if not 1 <= len(path) <= 2:
        return Reference("", "")
    name, _, tag = path[-1].partition("@")[0].partition(":")
    return Reference(path[0] if len(path) == 2 else "", name.removesuffix(".git"), tag, place)


def _without_maker(name: str, names: Names) -> str:
    """A name such as `Qwen_Qwen3-32B`, which some converters write, without its account."""
    maker, _, rest = name.partition("_")
    makers = {maker for known in names.values() for maker in _makers(known)}
    return rest if rest and _account(maker) in makers else name


def _makers(known: Known) -> set[str]:
    """The accounts that publish a model under its own name."""
    return {_account(name.partition("/")[0]) for name in (known.hub, *known.aliases) if "/" in name}


def _account(name: str) -> str:
    """An account's current name, in lowercase."""
    return _RENAMED.get(name.lower(), name.lower())


Table = Mapping[tuple[str, ...], str]  # a slug by the words of each of its names


def resolve(text: str, names: Names, formats: Sequence[str], known: Table | None = None) -> Meant:
    """The model that a name refers to, among `names`, and its format, one of `formats`. `known` is `by_words(names)`,
    if already available."""
    if text in names:
        return Meant(text)
    called = reference(text)
    table = by_words(names) if known is None else known
    pieces, tag = _with_bits(pieces_of_file(called.name)), pieces_of(called.tag)
    if not called.organization:
        tag = _of_ollama(tag)
    if not pieces:
        return Meant("")
    taken = "the same shapes"
    slug, behind = _longest([*pieces, *tag], table, formats)
    if not slug and "_" in called.name:
        pieces = _with_bits(pieces_of_file(_without_maker(called.name, names)))
        slug, behind = _longest([*pieces, *tag], table, formats)
    if not slug and tag:
        taken = "the one of this size"
        slug, behind, candidates = _of_size(pieces, tag, table, names, formats)
        if candidates:
            return Meant("", candidates=candidates)
    if not slug:
        found = _beginning_with(words_of(_without_variants([*pieces, *tag], formats)), table)
        if not found and called.place.lower().endswith(".gguf"):
            found = tuple(filter(None, [resolve(_without_maker(called.place, names), names, formats, table).slug]))
        return Meant("", candidates=found)
    behind = [*_format_in(slug, pieces, behind, names, formats), *behind]
    organization, makers = _account(called.organization), _makers(names[slug])
    is_converted = any(_is_of_conversion(piece) for piece in behind) or _format_at_end(behind, formats) != ""
    if organization and organization not in makers and organization not in CONVERTERS and not is_converted:
        return Meant("", candidates=(slug,))
    of_place = pieces_of_file(called.place)
    if called.place.lower().endswith(".gguf") and not _is_file_of(slug, called.place, table, names, formats):
        other = resolve(_without_maker(called.place, names), names, formats, table)
        its = f"is {names[other.slug].title}’s" if other.slug else "is not named after it"
        why = f"the repository is {names[slug].title}’s, and the file {its}"
        return Meant("", why=why, candidates=(slug, *([other.slug] if other.slug else [])))
    said, is_uncounted = _format([*behind, *of_place], organization, formats)
    tags = [name for name in names[slug].aliases if ":" in name]
    own = [words_of(pieces_of(name)) for name in (slug, names[slug].title, names[slug].hub.rpartition("/")[2], *tags)]
    begun = words_of([*pieces, *tag])
    is_alias = not any(begun[: len(words)] == words or begun[1 : len(words) + 1] == words for words in own if words)
    why = _why(organization not in ("", *makers), is_alias and taken, behind)
    if is_uncounted:
        why.append("its own format is not counted")
    elif not said and "gguf" in behind:
        why.append("no format named, such as :Q4_K_M")
    elif said[:3] in ("awq", "gpt") and not any(map(_group, (*behind, *of_place))):
        why.append("groups of 128 assumed")
    return Meant(slug, said, ", ".join(why))


def _of_ollama(tag: list[str]) -> list[str]:
    """A tag of Ollama's library, whose base models are called `text` or `code`, whose files are all GGUF, and whose
    `cloud` runs a model elsewhere."""
    tag = [piece for piece in tag if piece not in ("cloud", "code", "text")]
    return [*tag, "gguf"] if any(piece in _WHOLE for piece in tag) else tag


def _with_bits(pieces: list[str]) -> list[str]:
    """`gptq-4b`, meaning four bits, rewritten as others spell it: `gptq-4bit`."""
    bits = {"3b": "3bit", "4b": "4bit", "8b": "8bit"}
    return [bits.get(p, p) if n and pieces[n - 1] in ("awq", "gptq") else p for n, p in enumerate(pieces)]


def pieces_of_file(name: str) -> list[str]:
    """The pieces of a name that may be a file's, without its part number: `-00001-of-00009`."""
    pieces = pieces_of(name.lower().removesuffix(".gguf"))
    is_part = len(pieces) > 3 and pieces[-2] == "of" and pieces[-1].isdigit() and pieces[-3].isdigit()
    pieces = pieces[:-3] if is_part else pieces
    return [*pieces, "gguf"] if name.lower().endswith(".gguf") else pieces


def _is_file_of(slug: str, place: str, table: Table, names: Names, formats: Sequence[str]) -> bool:
    """Whether a file in a model's repository has the model's name, or only words of conversions, unlike a projector or
    the file of another model."""
    for name in (place, _without_maker(place, names)):
        pieces = pieces_of_file(name)
        plain = [piece for piece in pieces if piece not in ("ggml", "model")]
        if _longest(pieces, table, formats)[0] == slug or _may_follow(plain, formats):
            return True
    return False


def _format_in(
    slug: str, pieces: Sequence[str], behind: Sequence[str], names: Names, formats: Sequence[str]
) -> list[str]:
    """The format that an alias's name ends in, such as `GLM-5-FP8`, unless that is the name of the model's own file."""
    begun = list(pieces[: len(pieces) - len(behind)])
    if begun == pieces_of(names[slug].hub.rpartition("/")[2]):
        return []
    found: list[str] = []
    while begun and begun[-1] not in _VARIANTS and _may_follow(begun[-1:], formats):
        found.insert(0, begun.pop())
    return found


def contained(text: str, names: Names, formats: Sequence[str], known: Table) -> list[Meant]:
    """The models whose name, with a number, occurs inside another name, longest first: `Qwen3-32B` in
    `Qwen3-32B-abliterated`, and `Qwen3-VL-2B` in `Qwen3-VL-Embedding-2B`. No other size may be next to it."""
    pieces = pieces_of(reference(text).name)[:24]
    found: list[Meant] = []
    for inner, outer in _parts_of(pieces):
        plain = [piece for piece in inner if piece not in _VARIANTS]
        slug = known.get(words_of(inner), "") or known.get(words_of(plain), "")
        has_number = any(c.isdigit() for piece in inner for c in piece)
        if slug and has_number and not any(map(_is_size, outer)) and all(slug != one.slug for one in found):
            why = f"taken for {names[slug].title}, whose name it holds"
            found.append(Meant(slug, _format(outer, "", formats)[0], why))
    return found


def _parts_of(pieces: list[str]) -> list[tuple[list[str], list[str]]]:
    """The pieces that are adjacent, longest first, then the same without one of them, and the other pieces."""
    found: list[tuple[list[str], list[str]]] = []
    for length in range(len(pieces), 0, -1):
        for start in range(len(pieces) - length + 1):
            inner, outer = pieces[start : start + length], [*pieces[:start], *pieces[start + length :]]
            found.append((inner, outer))
            found += [([*inner[:at], *inner[at + 1 :]], [*outer, inner[at]]) for at in range(1, length - 1)]
    return found


def by_words(names: Names) -> dict[tuple[str, ...], str]:
    """A slug by the words of each of its names; for a hub name with a size, also without the words of its variant and
    its format, if no other model has that name."""
    found: dict[tuple[str, ...], str] = {}
    shorter: dict[tuple[str, ...], str] = {}
    for slug, others in names.items():
        for name in (slug, others.title, others.hub, *others.aliases):
            if words := words_of(pieces_of(name.rpartition("/")[2])):
                found[words] = slug
        plain = [piece for piece in pieces_of(others.hub.rpartition("/")[2]) if piece not in _SHORTENED]
        if any(map(_is_size, plain)):
            shorter[words_of(plain)] = slug
    return shorter | found


def _is_size(piece: str) -> bool:
    """Whether a piece gives the size of a model: `8b`, `1.7b`, `8x7b`, `a3b`, `135m`, `e4b`."""
    return len(piece) > 1 and piece[-1] in "bmt" and piece[-2].isdigit()


def _longest(pieces: list[str], table: Mapping[tuple[str, ...], str], formats: Sequence[str]) -> tuple[str, list[str]]:
    """The slug whose name these pieces start with, longest first, and the remaining pieces: only words of variants and
    conversions may follow.
    """
    for start in (0, 1) if pieces[0] == "meta" else (0,):
        for cut in range(len(pieces), start, -1):
            rest = pieces[cut:]
            if not _may_follow(rest, formats):
                continue
            head = pieces[start:cut]
            plain = [piece for piece in head if piece not in _VARIANTS]
            if slug := table.get(words_of(head), "") or (start and table.get(words_of(pieces[:cut]), "")):
                return slug, rest
            if slug := table.get(words_of(plain), ""):
                return slug, [*(piece for piece in head if piece in _VARIANTS), *rest]
    return "", []


def _of_size(
    pieces: list[str],
    tag: list[str],
    table: Mapping[tuple[str, ...], str],
    names: Names,
    formats: Sequence[str],
) -> tuple[str, list[str], tuple[str, ...]]:
    """The model of a family and a size, as in Ollama's tags, and the remaining pieces; otherwise the candidates.

    `deepseek-r1:671b`: the size of the headline; `llama3.2-vision:90b`: the size is elsewhere in the name;
    `qwen3-coder:30b`: only the active size is missing, and no other model has this size.
    """
    cut = next(n for n in range(1, len(tag) + 1) if _may_follow(tag[n:], formats))
    family, size, more = words_of(pieces), words_of(tag[:1]), _plain(words_of(tag[1:cut]))
    sure: dict[str, None] = {}
    could: dict[str, None] = {}
    for words, slug in table.items():
        if words[:1] != family[:1]:
            continue
        at = next((i for i in range(len(words)) if words[i : i + len(size)] == size), -1)
        headline = pieces_of(names[slug].headline)[:1]
        if at < 0 and headline != tag[:1]:
            continue
        left = words if at < 0 else words[:at] + words[at + len(size) :]
        rest = _plain(left[len(family) :])
        if left[: len(family)] != family or not set(more) <= set(rest):
            continue
        could[slug] = None
        if sorted(rest) == sorted(more) or (rest[:1] == ("a",) and rest[2:] in (("b",), ("m",)) and not more):
            sure[slug] = None
    exact = len(sure) == 1 and (more or len(could) == 1 or table.get(family) in sure)
    return (next(iter(sure)), tag[cut:], ()) if exact else ("", [], tuple(sorted(could)))


def _plain(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words without those of variants, and without the v of a version."""
    return tuple(word for word in words if word not in _VARIANTS and word != "v")


def _may_follow(rest: Sequence[str], formats: Sequence[str]) -> bool:
    """Whether only words of variants and conversions are left."""
    left = [piece for piece in rest if piece not in _VARIANTS]
    while left:
        said = _format_at_end(left, formats)
        if said:
            left = left[: len(left) - len(pieces_of(said))]
        elif _is_of_conversion(left[-1]) or (left[-1] in _AFTER_FORMATS and left[-2:-1] and left[-2] in _COUNTED):
            left = left[:-1]
        elif mix := _mix_at_end(left):
            left = left[:-mix]
        else:
            return False
    return True


def _is_of_conversion(piece: str) -> bool:
    return piece in _FILLERS or piece in _COUNTED or _is_uncounted(piece) or _is_number(piece) or _group(piece) != ""


def _is_number(piece: str) -> bool:
    """Whether a piece gives a number of bits."""
    return piece in _WIDTHS or piece in _WHOLE


def _is_uncounted(piece: str) -> bool:
    """Whether a piece belongs to a format that is not supported: `exl2`, `4.5bpw`, `int8mix`, `q4kxl`."""
    is_glued = piece[:1] == "q" and piece[1:2].isdigit() and piece[2:3] == "k" and piece[3:] in _OF_MIXES
    is_of_bits = piece[-3:] in ("bpw", "mix") and any(c.isdigit() for c in piece)
    return piece in _UNCOUNTED or is_glued or is_of_bits


def _group(piece: str) -> str:
    """The group size of weights: `g128`, `128g`; empty for any other piece."""
    found = piece[1:] if piece[:1] == "g" else piece[:-1] if piece[-1:] == "g" else ""
    return found if found.isdigit() else ""


def _mix_at_end(pieces: Sequence[str]) -> int:
    """The number of trailing pieces that name a converter's own mix: `q2`, `k`, `xl`."""
    for n in range(1, min(len(pieces), 4) + 1):
        first = pieces[-n]
        if first[-1:].isdigit() and first[:-1] in ("iq", "q", "tq"):
            return n
        if first not in _OF_MIXES:
            return 0
    return 0


def _format_at_end(pieces: Sequence[str], formats: Sequence[str]) -> str:
    """The GGUF format that pieces end in; `q4`, `k`, `xl`, a custom mix, is not one of them."""
    for name in formats:
        own = pieces_of(name)
        if name[:1].isupper() and "_" in name and list(pieces[len(pieces) - len(own) :]) == own:
            return name
    return ""


def _format(pieces: Sequence[str], organization: str, formats: Sequence[str]) -> tuple[str, bool]:
    """The format that a conversion's name states, empty if it states none that is supported, and whether it states an
    unsupported one."""
    left = [piece for piece in pieces if piece not in _VARIANTS]
    words = set(left)
    if "unquantized" in words:
        return "", False
    is_mlx = "mlx" in words or organization == "mlx-community"
    said = ""
    for end in range(len(left), 0, -1):
        said, mix = _format_at_end(left[:end], formats), _mix_at_end(left[:end])
        if said or mix:
            said = said if len(pieces_of(said)) >= mix and "ud" not in words and not is_mlx else ""
            return said, not said
    if any(map(_is_uncounted, left)):
        return "", True
    if "gguf" in words:
        said = next((_OF_GGUF[piece] for piece in left if piece in _OF_GGUF), "")
    elif is_mlx or organization == "pytorch":
        said = _of_library(left, is_mlx)
    else:
        said = _of_quantizer(left, organization)
    said = said if said in formats else ""
    states = [piece for piece in left if piece in _COUNTED or _is_number(piece)]
    return said, not said and len(states) > 0


def _of_library(left: Sequence[str], is_mlx: bool) -> str:
    """The format of a conversion by MLX, whose groups have 64 weights, or by torchao."""
    widths = [piece for piece in left if piece in _WIDTHS]
    whole = next((_WHOLE[piece] for piece in left if piece in _WHOLE), "")
    if is_mlx:
        is_other = "mxfp4" in left or "nvfp4" in left or any(_group(piece) not in ("", "64") for piece in left)
        return "" if is_other else f"mlx-{_WIDTHS[widths[0]]}bit" if widths else whole
    if "awq" in left or len(widths) > 1:
        return ""
    return f"torchao-{widths[0]}" if widths else _FP8["pytorch"] if "fp8" in left else whole


def _of_quantizer(left: Sequence[str], organization: str) -> str:
    """The format of any other conversion."""
    words = set(left)
    bits = next((_WIDTHS[piece] for piece in left if piece in _WIDTHS), None)
    group = next((_group(piece) for piece in left if _group(piece)), "128")
    if "awq" in words or "gptq" in words:
        return f"{'awq' if 'awq' in words else 'gptq'}-{bits or 4}bit-g{group}"
    if "nf4" in words:
        return "nf4"
    if "bnb" in words:
        return {8: "llm.int8", 4: "nf4-dq", None: "nf4-dq"}.get(bits, "")
    if "fp8" in words:
        layout = "fp8-channel" if "dynamic" in words else "fp8-block" if "block" in words else ""
        return layout or _FP8.get(organization, "fp8")
    if words & {"fp4", "mxfp4", "nvfp4", "nvfp4a16"}:
        return "mxfp4-linear" if "mxfp4" in words else "nvfp4-linear"
    if "w4a16" in words or "w8a8" in words:
        return "w4a16" if "w4a16" in words else "w8a8"
    return f"int{bits}" if bits else next((_WHOLE[piece] for piece in left if piece in _WHOLE), "")


def _why(is_of_another: bool, alias: str | bool, behind: Sequence[str]) -> list[str]:
    """The assumptions in words."""
    variant = next((piece for piece in behind if piece in _VARIANTS - {"latest", "hf"}), "")
    said = ["a conversion"] if is_of_another or any(map(_is_of_conversion, behind)) else []
    said += [str(alias)] if alias else []
    said += [f"“{variant}” taken to have the base’s shapes"] if variant and not alias else []
    return said


def _without_variants(pieces: Sequence[str], formats: Sequence[str]) -> list[str]:
    left = [piece for piece in pieces if piece not in _VARIANTS]
    while len(left) > 1 and _may_follow(left[-1:], formats):
        left = left[:-1]
    return left


def _beginning_with(words: tuple[str, ...], table: Mapping[tuple[str, ...], str]) -> tuple[str, ...]:
    """The models whose names start with these words, and those that have another word before the last ones."""
    found = [slug for known, slug in table.items() if words and known[: len(words)] == words]
    if not found and len(words) > 3:
        head, size = words[:-2], words[-2:]  # a size: `8`, `b`
        found = [slug for known, slug in table.items() if known[: len(head)] == head and known[-2:] == size]
    return tuple(sorted(dict.fromkeys(found)))


class Resolver:
    """Resolves names among these models: by slug the title, the other names with the hub's first, and the size."""

    def __init__(self, called: Mapping[str, tuple[str, Sequence[str], str]], formats: Sequence[str]) -> None:
        self.names: Names = {
            slug: Known(title, others[0], tuple(others[1:]), headline)
            for slug, (title, others, headline) in called.items()
        }
        self.formats, self.known = formats, by_words(self.names)

    def resolve(self, text: str) -> Meant:
        return resolve(text, self.names, self.formats, self.known)

    def contained(self, text: str) -> list[Meant]:
        return contained(text, self.names, self.formats, self.known)

    def reference(self, text: str) -> Reference:
        return reference(text)
