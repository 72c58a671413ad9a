"""What every answer keeps to, as the objects of `--format json` say it: sums, signs, and what can only grow."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from macros.data.schema import model as model_schema

Answer = dict[str, Any]

# Bytes are missing; logarithms; the id of an image, which no text has.
BELOW_ZERO = ("left_bytes", "memory_left_bytes", "least_log_decay", "decay_bound", "image_token")
MOST_DIFFERENCE = 1e-9  # of floats that are rounded once


def strict(text: str) -> Any:
    """The value of a JSON text, which has no NaN and no infinity."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} in JSON")

    return json.loads(text, parse_constant=refuse)


def no_number_is_strange(value: Any, key: str = "") -> None:
    """No number is below 0 that counts something, and none is infinite; bytes are whole, expected ones aside."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in ("formulas", "sources"):  # where differences stand
                no_number_is_strange(inner, name)
    elif isinstance(value, list):
        for inner in value:
            no_number_is_strange(inner, key)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        assert math.isfinite(value), f"{key} = {value}"
        assert value >= 0 or key in BELOW_ZERO, f"{key} = {value}"
        is_expected = "sent_bytes" in key or "total_bytes" in key or "read_bytes" in key
        is_share = key == "item_bytes" or is_expected  # of a block
        assert isinstance(value, int) or is_share or not key.endswith("_bytes"), f"{key} = {value}"


def fits(said: Answer) -> None:
    """An answer of `fits` for one model."""
    on = said["conditions"]["memory_bytes"]
    assert sum(said["bytes"].values()) == said["total_bytes"], "terms do not add up"
    assert said["left_bytes"] == on - said["total_bytes"] and said["fits"] == (said["left_bytes"] >= 0)
    longest, context = said["longest_context"], said["conditions"]["context"]
    assert (longest is None or longest >= context) == said["fits"], f"longest context {longest}"
    assert math.prod(n for name, n in said["split"].items() if name != "expert") == said["conditions"]["devices"]
    if said["fits"] and said["split"]["pipeline"] == 1:  # without stages comes first
        assert said["enough_devices"] is not None and said["enough_devices"] <= said["conditions"]["devices"]


def adds_up(said: Answer) -> None:
    """The terms of a device are its bytes."""
    terms = [
        (t["least_bytes"], t["most_bytes"])
        if t["known"] == "range"
        else (n := t.get("bytes", t.get("estimated_bytes")), n)
        for t in said["terms"]
    ]
    assert all(least <= most for least, most in terms), "a range from more to less"
    assert sum(least for least, _ in terms) == said["least_bytes"] <= said["most_bytes"]
    assert sum(most for _, most in terms) == said["most_bytes"]


def deployed(said: Answer) -> None:
    """An answer of `fits --engine` by the engine's own options, device by device."""
    assert all(figure["least"] <= figure["most"] for figure in said["figures"]), "a range from more to less"
    for device in said["devices"]:
        adds_up(device)
    if said["devices"] and said["fits"]:
        assert said["may_fit"] and all(one["most_bytes"] <= one["limit_bytes"] for one in said["devices"])


def served(said: Answer) -> None:
    """An answer of `fits --engine`."""
    adds_up(said)
    assert said["fits"] == (said["most_bytes"] <= said["limit_bytes"]) and said["may_fit"] >= said["fits"]
    longest, context = said["longest_context"], said["conditions"]["context"]
    assert (longest is None or longest >= context) == said["fits"], f"longest context {longest}"
    most, batch = said["largest_batch"], said["conditions"]["batch"]
    assert (most is None or most >= batch) == said["fits"], f"largest batch {most}"
    if pool := said["pool"]:
        assert pool["least_bytes"] <= pool["most_bytes"] and pool["least_tokens"] <= pool["most_tokens"]
        assert pool["least_texts"] <= pool["most_texts"]


def offloaded(said: Answer) -> None:
    """An answer of `fits --host`."""
    device, host = sum(said["device_bytes"].values()), sum(said["host_bytes"].values())
    given = said["conditions"]
    assert said["fits"] == (device <= given["memory_bytes"] and host <= given["host_memory_bytes"])
    if said["computed_seconds"] is not None and said["moved_seconds"] is not None:
        assert said["host_read_bytes"] or said["moved_seconds"] >= 0


def splits(said: Answer) -> None:
    """An answer of `split`."""
    assert said["splits"], "no split"
    for one in said["splits"]:
        degrees = one["tensor"] * one["pipeline"] * one["data"]
        assert degrees == said["conditions"]["devices"], "not so many devices"
        assert one["weights_bytes"] + one["cache_bytes"] + one["activations_bytes"] == one["total_bytes"]
        assert one["fits"] == (one["total_bytes"] <= said["conditions"]["memory_bytes"])
        for step in ("decode", "prefill"):
            for what in ("sent_bytes", "total_bytes"):
                _are_near(sum(m[what] for m in one[f"{step}_messages"]), one[f"{step}_{what}"])
            assert one[f"{step}_sent_bytes"] <= one[f"{step}_total_bytes"] or degrees == 1
        assert one["decode_sent_bytes"] <= one["prefill_sent_bytes"]


def speculative(said: Answer) -> None:
    """An answer of `speculative`."""
    drafted, acceptance = said["conditions"]["draft_tokens"], said["conditions"]["acceptance"]
    assert 0 <= acceptance <= 1 and 1 <= said["tokens_per_step"] <= drafted + 1
    _are_near(said["draft_seconds"] + said["verify_seconds"], said["step_seconds"])
    _are_near(said["step_seconds"] / said["tokens_per_step"], said["seconds_per_token"])
    _are_near(said["plain_seconds_per_token"] / said["seconds_per_token"], said["speedup"])
    assert said["verify_seconds"] >= said["plain_seconds_per_token"] * (1 - MOST_DIFFERENCE)


def train(said: Answer) -> None:
    """An answer of `train`."""
    assert sum(said["bytes"].values()) == said["total_bytes"], "terms do not add up"
    setup, adapters = said["setup"], said["adapters"]
    assert setup["tensor"] * setup["pipeline"] * setup["data"] == setup["devices"]
    if said["memory_bytes"] is not None:
        assert said["left_bytes"] == said["memory_bytes"] - said["total_bytes"]
        assert said["fits"] == (said["left_bytes"] >= 0)
        assert (said["largest_micro_batch"] is None) or said["fits"] == (
            said["largest_micro_batch"] >= setup["micro_batch"]
        )
    if adapters is None:
        assert said["trainable_parameters"] == said["parameters"]
        return
    low_rank = sum(m["parameters"] for m in adapters["modules"])
    assert low_rank == adapters["low_rank"] + adapters["magnitudes"], "modules do not add up"
    whole = low_rank + adapters["biases"] + adapters["saved"]
    assert whole == said["trainable_parameters"], "what is trained does not add up"


def prefix(said: Answer) -> None:
    """What a shared prefix saves: the rest is what is needed with it."""
    for figure in ("cache_bytes", "prefill_flops"):
        numbers = said[figure]
        assert numbers["each"] - numbers["shared"] == numbers["saved"] >= 0
        assert numbers["saved"] * said["conditions"]["batch"] <= numbers["each"] * (said["conditions"]["batch"] - 1)


def choices(said: Answer) -> None:
    """A list of `fits`: of models, or of machines."""
    rows = said["models" if "models" in said else "machines"]
    for row in rows:
        if row["fits"]:
            memory = row["memory_bytes"] if "memory_bytes" in row else said["conditions"]["memory_bytes"]
            terms = row["weights_bytes"] + row["cache_bytes"] + row["activations_bytes"]
            assert terms == row["total_bytes"] and row["left_bytes"] == memory - terms >= 0
            longest = row["longest_context"]
            assert longest is None or longest >= said["conditions"]["context"]
            assert row["largest_batch"] >= said["conditions"]["batch"], row
    names = [row.get("model", row.get("machine")) for row in rows]
    assert len(set(names)) == len(names)
    if "models" in said:
        others = *said["made_for_shorter_contexts"], *said["too_large"]
        assert not {*names} & {*others} and all(row["fits"] for row in rows)


@cache
def _of_a_model() -> Draft202012Validator:
    return Draft202012Validator(model_schema())


def described(said: Answer) -> None:
    """An answer of `describe`: as its schema says, its weights as many bytes as its tensors."""
    _of_a_model().validate(said)
    weights = said["weights"]
    assert sum(size for _, _, size in weights["tensors"]) == weights["bytes"], "tensors do not add up"


KINDS: dict[str, Callable[[Answer], None]] = {
    "describe": described,
    "split": splits,
    "speculative": speculative,
    "prefix": prefix,
    "train": train,
}


def holds(command: str, said: Answer) -> None:
    """Raise where an answer of a command contradicts itself."""
    no_number_is_strange(said)
    kind = KINDS.get(command)
    if command == "fits":
        kind = (
            choices
            if "models" in said or "machines" in said
            else served
            if "terms" in said
            else deployed
            if "figures" in said
            else offloaded
            if "host_bytes" in said
            else fits
        )
    if kind:
        kind(said)


def needed(command: str, said: Answer) -> int | None:
    """The bytes that an answer says are needed on the fullest device, or on accelerator and host together."""
    if command in ("fits", "train"):
        if "total_bytes" in said:
            return said["total_bytes"]
        if "least_bytes" in said:
            return said["least_bytes"]
        if "host_bytes" in said:
            return sum(said["device_bytes"].values()) + sum(said["host_bytes"].values())
    return min(one["total_bytes"] for one in said["splits"]) if command == "split" else None


def _are_near(a: float, b: float) -> None:
    assert math.isclose(a, b, rel_tol=MOST_DIFFERENCE), f"{a} and {b}"
