"""Each figure of a log next to the computed one: equal, inside a range, explained, or different."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from .deployments import PROVED, Deployment, Figure, decimal, written
from .engine_options import Value
from .log_forms import BYTES, Found
from .log_reader import Log
from .serving import GIB


class State(StrEnum):
    """How a printed figure compares with the computed one."""

    EQUAL = "equal"
    INSIDE = "inside"
    EXPLAINED = "explained"
    DIFFERENT = "different"
    GIVEN = "given"
    MEASURED = "measured"
    ALONE = "not counted"


# Figures that no shape determines.
MEASURED = {
    "graphs": "CUDA graphs: the engine measures them; the same for every context",
    "outside": "CUDA context and libraries: the engine measures them",
    "activations": "the peak of a trial step, which the engine measures",
    "estimate": "Ollama’s own estimate before it loads",
    "graph": "Ollama’s own estimate before it loads",
    "total": "the sum of its own terms",
    "projector compute": "the buffers of the projector of images",
    "draft loaded": "the draft’s own weights",
    "draft checkpoint": "the draft’s own file",
    "draft keys": "the draft’s own cache",
    "draft values": "the draft’s own cache",
}
NAMES = {"memory": "memory of the device"}
# Figures that a log states, and from which the others follow.
GIVEN = {
    "vllm": ("room", "memory"),
    "sglang": ("tokens", "pool tokens", "slots", "draft pool tokens"),
    "llama.cpp": (),
    "ollama": (),
}
ABOVE = Fraction(3, 100)  # by how much loaded weights may exceed the computed ones: buffers of kernels
FIFTH = Fraction(1, 5)  # by how much llama.cpp's compute buffers may differ from their estimate
WORKSPACES = GIB // 2  # by how much less SGLang's free memory may be: what libraries and the allocator take
DEFAULT_SHARES = (Fraction(90, 100), Fraction(92, 100))  # of vLLM, by version
OTHER_TYPE = 2  # by how much a single table may differ: 16 bits instead of 8
OF_WEIGHTS = ("file", "bits", "model", "projected", "weights", "repeating", "nonrepeating", "all weights")
# Figures that follow from the rows of the cache.
OF_CACHE = (
    *("tokens", "old tokens", "concurrency", "blocks", "longest", "block", "padding", "layers"),
    *("cache", "keys", "values", "cache size", "cache K", "cache V", "windows", "index", "draft keys", "draft values"),
)
OF_RANKS = ("tokens", "old tokens", "concurrency", "blocks", "longest")  # that each rank may print for its own memory
PREDICTION = "the layers of multi-token prediction"  # the name of such a part
ROUGHLY = Fraction(1, 100)  # for a billion elements: the last digit of a printed number
_PARTS = ("", "_", "-")  # CUDA0, CUDA0_Split, HTP0-REPACK, and not CUDA01
OWN_MIX = "a format of its own"  # in a model's name
OTHER_MIX = Fraction(1, 3)  # by how much a maker's own mix may differ from llama-quantize's


@dataclass(frozen=True)
class Row:
    """A figure of a log: its line, its label, the printed value, the computed value (empty if there is none), how they
    compare, and the rule or the cause."""

    line: int
    what: str
    printed: str
    counted: str
    state: State
    why: str


@dataclass(frozen=True)
class Beside:
    """What a log is compared with: the deployment, the change that led to it (`why`), the weights in 16 bits if a log
    does not say how many of them are quantized, bytes of parts that an engine loads in addition to the text part, each
    with its name, the method of the quantization, what the other ranks have room for, whether the format of the weights
    is known, and why the cache differs from the computed one (empty if nothing says that it does)."""

    deployment: Deployment
    why: str = ""
    whole: Deployment | None = None
    parts: tuple[tuple[str, int], ...] = ()
    method: str = ""
    ranks: tuple[Deployment, ...] = ()
    has_format: bool = True
    unknown: str = ""


def rows_of(log: Log, beside: Beside, values: Mapping[str, Value]) -> list[Row]:
    """Each figure of a log next to the computed one."""
    given = GIVEN.get(log.engine, ())
    own = _own_figures(log, values)
    more = replace(beside, deployment=replace(beside.deployment, more=(*beside.deployment.more, *own)))
    rows: list[Row] = []
    for one in log.found:
        if one.key in given:
            figures = _figures(more.deployment, one)
            what = figures[0].what if figures else NAMES.get(one.key, one.key)
            rows.append(Row(one.line, what, one.text, "", State.GIVEN, "as the log says: the others follow from it"))
            continue
        row = _row(one, log, more)
        if row.state == State.DIFFERENT and beside.unknown and one.key in OF_CACHE:
            row = replace(row, state=State.ALONE, why=beside.unknown)
        if log.fork and row.state == State.DIFFERENT:
            row = replace(row, state=State.ALONE, why=f"by {log.fork}’s own rules, which are not known here")
        rows.append(row)
    return rows


def _own_figures(log: Log, values: Mapping[str, Value]) -> list[Figure]:
    """Figures that follow from others in the same log: the part of the memory that vLLM may take."""
    memory, share = last_of(log, "memory"), values.get("share")
    if log.engine != "vllm" or memory is None:
        return []
    half = Fraction(1, 2 * 10**memory.digits)
    found: list[Figure] = []
    for part in [share] if isinstance(share, Fraction) else DEFAULT_SHARES:
        ends = [(memory.number + one) * part * GIB for one in (-half, half, Fraction(0))]
        what = f"{decimal(part)} of the memory of the device"
        rule = "its total by --gpu-memory-utilization"
        found.append(Figure("desired", what, ends[0], ends[1], "GiB", 2, rule, PROVED, "", ends[2]))
    return found


def last_of(log: Log, key: str) -> Found | None:
    """The last figure with this key."""
    found = [one for one in log.found if one.key == key]
    return found[-1] if found else None


def _figures(deployment: Deployment, one: Found) -> list[Figure]:
    """The computed figures for a printed one: those of the same device, if it belongs to one."""
    key = "draft" if one.key in ("draft keys", "draft values", "draft cache") else one.key
    same = [f for f in (*deployment.figures, *deployment.more) if f.key == key]
    if is_host(one.place):
        return [f for f in same if is_host(f.place)]
    own = [f for f in same if f.place and one.place.startswith(f.place) and one.place[len(f.place) :][:1] in _PARTS]
    if own:
        return own
    return same if not one.place or not any(f.place for f in same) else []


def is_host(place: str) -> bool:
    """Whether a buffer is in the host's memory."""
    return place.endswith("_Host") or place.startswith(("CPU", "Host", "BLAS"))


def _row(one: Found, log: Log, beside: Beside) -> Row:
    """One figure of a log."""
    figures = _candidates(one, beside.deployment)
    for other in beside.ranks:
        figures += [f for f in _candidates(one, other) if f.key in OF_RANKS]
    if not figures:
        what = f"{one.key} {one.place}".strip()
        if one.key in MEASURED:
            return Row(one.line, what, one.text, "", State.MEASURED, MEASURED[one.key])
        return Row(one.line, what, one.text, "", State.ALONE, "no rule is known for it here")
    for figure in figures:
        if is_near(figure, one):
            return _near(one, figure, beside.why)
    figure = figures[0]
    said = _explained(one, figure, log, beside)
    if said is not None:
        state, cause = said
        return Row(one.line, figure.what, one.text, shown(figure, one), state, cause)
    if one.key in MEASURED:
        return Row(one.line, figure.what, one.text, shown(figure, one), State.MEASURED, MEASURED[one.key])
    printed, counted = bytes_of(one), figure.most
    share = written(Fraction(abs(printed - counted), counted) * 100, 1) if counted else ""
    sign = "−" if printed < counted else ""
    apart = f"printed {sign}{share}% apart" if share else ""
    cause = "; ".join([one for one in (apart, figure.rule) if one])
    return Row(one.line, figure.what, one.text, shown(figure, one), State.DIFFERENT, cause)


def _candidates(one: Found, deployment: Deployment) -> list[Figure]:
    """The figures that a printed one may be, most likely first."""
    found = _figures(deployment, one)
    if one.key == "tokens":
        found += [f for f in deployment.figures if f.key == "old tokens"]
    if one.key in ("keys", "values", "pool tokens"):
        found += [f for f in deployment.figures if f.key in (f"{one.key} of windows", "draft")]
    return found


def _near(one: Found, figure: Figure, why: str) -> Row:
    """A printed number that is the figure, or lies between its ends."""
    exact = figure.least == figure.most or figure.middle is not None and is_near(_at(figure, figure.middle), one)
    state = State.EXPLAINED if exact and why else State.EQUAL if exact else State.INSIDE
    cause = figure.rule if exact else f"inside the rounding of what was given, or inside a range: {figure.rule}"
    said = f"{why}; {cause}" if exact and why else cause
    return Row(one.line, figure.what, one.text, shown(figure, one), state, said)


def _explained(one: Found, figure: Figure, log: Log, beside: Beside) -> tuple[State, str] | None:
    """The state and the cause of a figure that differs from the computed one, if the cause is known."""
    printed, counted = bytes_of(one), figure.most
    if one.key in ("loaded", "checkpoint"):
        return _loaded(printed, figure, beside, WORKSPACES if log.engine == "sglang" else 0, one.key == "checkpoint")
    if one.key == "weights" and not is_host(one.place):
        for name, size in beside.parts[:1]:
            if abs(printed - counted - size) <= counted * ABOVE:
                return State.EXPLAINED, f"{decimal(Fraction(printed - counted, 2**20))} MiB more: with {name}"
    if one.key in ("model", "projected", "context") and figure.least <= printed <= counted:
        return State.INSIDE, figure.rule
    if one.key in ("offloaded", "parameters") and (said := _with_prediction(printed, counted, beside, one)):
        return State.EXPLAINED, said
    if one.key == "outputs" and _is_row_more(one, figure, log):
        return State.EXPLAINED, "one row more: servers before October 2024 kept a sequence for the system prompt"
    if not beside.has_format and one.key in OF_WEIGHTS and log.engine in ("llama.cpp", "ollama"):
        return State.ALONE, "the log does not say the format of the weights: name it with --weights"
    file = next((f for f in beside.deployment.figures if f.key == "file"), None)
    is_mapped = one.key == "model" and (one.place.endswith("_Mapped") or one.place.startswith(("Metal", "MTL")))
    if is_mapped and file is not None and counted <= printed <= file.most:
        return State.INSIDE, "with mmap, the part of the file from the first to the last of its tensors"
    if one.key == "compute" and figure.least * (1 - FIFTH) <= printed <= counted * (1 + FIFTH):
        return State.INSIDE, figure.rule
    if one.key == "compute" and log.engine == "ollama" and one.digits == 1:
        return State.MEASURED, MEASURED["estimate"]
    if log.engine not in ("llama.cpp", "ollama"):
        return None
    if (said := _of_mix(one, printed, counted, log, beside.deployment)) is not None:
        return said
    if log.quantization == OWN_MIX and one.key in OF_WEIGHTS:
        return State.MEASURED, "a mix of types of its maker’s own, of which the log does not print all"
    return None


def _with_prediction(printed: Fraction, counted: Fraction, beside: Beside, one: Found) -> str:
    """Why a file has an additional layer, or more elements: its layer of multi-token prediction; "" if that is not the
    cause."""
    for name, size in beside.parts:
        if name == PREDICTION and (
            printed == counted + 1 if one.unit == "" else abs(printed - counted - Fraction(size, 2 * 10**9)) < ROUGHLY
        ):
            return f"with {name}"
    return ""


def _is_row_more(one: Found, figure: Figure, log: Log) -> bool:
    """Whether a buffer of logits has a row for one more sequence than a log without `n_seq_max` shows."""
    return "--parallel" not in log.words and is_near(_at(figure, figure.most * 2), one)


def _loaded(printed: Fraction, figure: Figure, beside: Beside, spare: int, is_file: bool) -> tuple[State, str] | None:
    """Why more weights are loaded, or in a file, than computed: other parts of the model, buffers of kernels, or layers
    that a quantized file leaves in 16 bits."""
    rotary = max([f.most for f in beside.deployment.more if f.key == "rotary"], default=Fraction(0))
    if figure.least - rotary <= printed < figure.least:
        return State.EXPLAINED, "a shorter rotary table than that of the longest context in the catalog"
    sums: list[tuple[str, int]] = [("", 0)]
    for name, size in beside.parts:
        sums += [(f"{said} and {name}" if said else name, more + size) for said, more in sums]
    close = [
        (abs(printed - figure.most - more), said)
        for said, more in sums
        if figure.least < printed <= figure.most + more + max((figure.most + more) * ABOVE, Fraction(spare))
    ]
    if close:
        said = min(close)[1]
        over = decimal(Fraction(printed - figure.most, 2**20))
        rest = f"with {said}" if said else "buffers of kernels" + (" and workspaces of libraries" if spare else "")
        return State.EXPLAINED, f"{over} MiB more: {'other tensors of the file' if is_file and not said else rest}"
    if beside.whole is not None:
        method = f"quantized by {beside.method}" if beside.method else "quantized"
        wide = [f.most for f in (*beside.whole.figures, *beside.whole.more) if f.key == figure.key]
        most = max(wide, default=Fraction(0))
        most += max(more for _, more in sums)
        if figure.least < printed <= most * (1 + ABOVE):
            return State.INSIDE, f"{method}, some layers of it: less than if none were, more than if all were"
        if printed < most:
            return State.MEASURED, f"{method}, by a mix that the log does not have"
    return None


def _of_mix(
    one: Found, printed: Fraction, counted: Fraction, log: Log, deployment: Deployment
) -> tuple[State, str] | None:
    """Explain a file quantized with the maker's own mix: its size shows it, and its buffers differ in proportion."""
    if one.key not in OF_WEIGHTS or not counted:
        return None
    share = Fraction(printed, counted)
    file = last_of(log, "file")
    own = next((f.most for f in deployment.figures if f.key == "file"), Fraction(0))
    if file is None or not own:
        return None
    of_file = Fraction(bytes_of(file), own)
    if is_same_mix(of_file) or abs(of_file - 1) > OTHER_MIX:
        return None
    most = OTHER_TYPE if is_host(one.place) else OTHER_MIX
    if one.key in ("file", "bits") or abs(share - 1) <= most:
        percent = written(of_file * 100, 1)
        return State.EXPLAINED, f"a mix of types of its maker’s own: the file has {percent}% of llama-quantize’s size"
    return None


def is_same_mix(share: Fraction) -> bool:
    """Whether a file's size is that of llama-quantize's mix, to the digits that a log has."""
    return abs(share - 1) < Fraction(1, 1000)


def bytes_of(one: Found) -> Fraction:
    """A figure in bytes, or its number if its unit is another."""
    return one.number * BYTES.get(one.unit, 1)


def shown(figure: Figure, one: Found) -> str:
    """A figure in the unit and with the digits of the printed one."""
    if one.unit in ("GiB", "MiB", "GB", "MB") and figure.unit in ("GiB", "MiB", "GB", "MB", "bytes"):
        is_cut = one.unit == "MiB" and not one.digits
        return replace(figure, unit=one.unit, digits=2 if is_cut else one.digits).text
    return figure.text


def _at(figure: Figure, value: Fraction) -> Figure:
    return replace(figure, least=value, most=value, middle=None)


def is_near(figure: Figure, one: Found) -> bool:
    """Whether a printed number is a figure, to its last digit, in any unit of bytes it may be printed in."""
    scale = BYTES.get(one.unit)
    half = Fraction(1, 2 * 10**one.digits)
    if one.unit == "MiB" and not one.digits:  # llama.cpp cuts these off
        return int(Fraction(figure.least) / BYTES["MiB"]) <= one.number <= int(Fraction(figure.most) / BYTES["MiB"])
    if scale is None or figure.unit not in BYTES and figure.unit != "bytes":
        low, high = figure.value(figure.least), figure.value(figure.most)
    else:
        low, high = Fraction(figure.least) / scale, Fraction(figure.most) / scale
    return low - half <= one.number <= high + half


def is_counted(state: State) -> bool:
    """Whether a row has a computed figure that agrees with it."""
    return state in (State.EQUAL, State.INSIDE, State.EXPLAINED)


def number_of(rows: Sequence[Row], state: State) -> int:
    """The number of rows in this state."""
    return len([row for row in rows if row.state == state])
