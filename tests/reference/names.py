"""The names that transformers still takes: `python -m tests.reference.names`, from the repository.

Written to `macros/engine/names_there.json`: older names of types, those of layers; other spellings of keys, which go
before the key itself (`attribute_map`, and what a class reads besides its keys); the type of a whole's text model where
its table says none, or whatever it says; wholes that read the text model's keys beside the other parts, too; the
covered types that it has; those of them whose plain rotary embedding turns a share of a head; the sizes that a whole's
text model has where its table says none; by types, keys beside the table of a rotary embedding that its class does not
read; encoders that a key makes decoders, and what it calls those; types that a key gives attention to what an encoder
read.
"""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import fields
from functools import cache
from importlib.metadata import version
from pathlib import Path

import transformers
from transformers import CONFIG_MAPPING, MODEL_MAPPING, AutoConfig, PreTrainedConfig
from transformers.configuration_utils import _LEGACY_LAYER_TYPE_REMAP

from macros.engine.architectures import find, is_known
from macros.engine.architectures.config import REQUIRED, fields_of
from macros.engine.keys import OF_TWO_MODELS
from macros.engine.names_there import FILE

from . import ENCODERS, WITH_ENCODER
from .models import DECODERS

MODELS = Path(transformers.__file__).parent / "models"
# In the code of a config: a type, perhaps beside a key, that becomes another.
RENAMED = re.compile(r'\["model_type"\] == "(\w+)"(?: and "(\w+)" in \w+)?[^=]*?\["model_type"\] = "(\w+)"', re.S)
# transformers leaves their share of a turned head unread, and vLLM, with which they are compared, reads it.
READ_ELSEWHERE = {"dory"}
# In the code of a config's class: a key that goes before one of its own, (the key, the other) or (the other, the key).
ASIDE = (
    re.compile(r'self\.(\w+) = kwargs\.pop\(\s*"(\w+)",\s*self\.\1\b'),
    re.compile(r'self\.(\w+) = \(?\s*kwargs\.pop\("(\w+)"\) if "\2" in kwargs else self\.\1\b'),
    re.compile(r'\(\w+ := kwargs\.get\("(?P<other>\w+)"\)\) is not None:\s*self\.(?P<key>\w+) = \w+\n'),
    re.compile(r'kwargs\.pop\("(?P<other>\w+)", None\)\s*self\.(?P<key>\w+) = self\.\w+ if (?P=other) is None else'),
)
# A spelling that a class reads after it has counted by the key: the type's own config here reads both.
READ_LATER = {("switch_transformers", "num_hidden_layers")}


def classes() -> dict[str, type[PreTrainedConfig]]:
    """The config class of each type; not of one whose library is not there."""
    found = {}
    for name in CONFIG_MAPPING:
        try:
            found[name] = CONFIG_MAPPING[name]
        except (AttributeError, ImportError):
            continue
    return found


@cache
def code(cls: type[PreTrainedConfig]) -> str:
    """The code of the model of a config; of that in its folder where no class is told."""
    try:
        model = MODEL_MAPPING[cls]
        path = Path(inspect.getfile(model[0] if isinstance(model, tuple) else model))
        return path.read_text("utf-8")
    except (KeyError, ValueError):
        folder = Path(inspect.getfile(cls)).parent
        return "".join(path.read_text("utf-8") for path in sorted(folder.glob("modeling_*.py")))


def renamed() -> tuple[dict[str, str], dict[str, list[str]]]:
    """Types that are read as others: always, and beside a key."""
    always, beside = {}, {}
    for path in sorted(MODELS.glob("*/configuration_*.py")):
        for old, key, new in RENAMED.findall(path.read_text("utf-8")):
            if not is_known(new) or is_known(old) != bool(key):
                continue  # a tower's
            if key:
                beside[old] = [key, new]
            else:
                always[old] = new
    return always, beside


def unread_beside(cls: type[PreTrainedConfig]) -> list[str]:
    """The keys beside a table of a rotary embedding that a class with an own reader of it takes no notice of."""
    reader = inspect.getsource(cls.convert_rope_params_to_dict)
    if "convert_rope_params_to_dict" not in vars(cls) or "super()" in reader:
        return []
    own = {f.name for f in fields(cls)}
    text = "".join(inspect.getsource(one) for one in cls.__mro__ if one in PreTrainedConfig.__subclasses__())
    text += inspect.getsource(cls)
    return [
        name
        for name in ("partial_rotary_factor", "rope_theta")
        if name not in own and not re.search(rf'kwargs\.(?:pop|get|setdefault)\(\s*"{name}"', text)
    ]


def read_aside(cls: type[PreTrainedConfig]) -> dict[str, str]:
    """Other spellings of a class's keys, older files' mostly, that its code reads before the keys."""
    found: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        if one.__module__.startswith("transformers.models."):
            text = inspect.getsource(one)
            for pattern in ASIDE:
                for match in pattern.finditer(text):
                    named = match.groupdict()
                    key, other = (named["key"], named["other"]) if named else (match[1], match[2])
                    found[other] = key
    return found


def sizes_unless_said(parts: dict[str, str], fixed: dict[str, str]) -> list[list[object]]:
    """Wholes, and the sizes of their text model where its table says nothing, which have no default here: transformers
    saves a table without the values that are its class's own. Of a whole that takes any text model, each type's."""
    found: dict[str, list[str]] = {}
    for name, kind in sorted({**{kind: kind for kind in parts.values()}, **parts, **fixed}.items()):
        try:
            cls = CONFIG_MAPPING[name]
            table = cls() if name == kind else cls(text_config={"model_type": kind}).text_config
        except Exception:  # of many kinds: a check of a class
            continue
        usual, spelt = table.to_dict(), table.attribute_map
        sizes = [one.key for one in fields_of(find(kind).config) if one.key and one.default is REQUIRED]
        keys = [spelt.get(key, key) for key in sizes]
        said = {key: usual[key] for key in keys if type(usual.get(key)) is int}
        found.setdefault(json.dumps(said), []).append(name)
    return [[names, json.loads(said)] for said, names in found.items()]


def reads_beside(cls: type[PreTrainedConfig]) -> bool:
    """Whether a whole without a table for its text model takes that one's keys from beside the other parts."""
    try:
        return cls(vocab_size=77).text_config.vocab_size == 77
    except Exception:  # of many kinds: a check of a class
        return False


def main() -> None:
    found = classes()
    always, beside = renamed()
    always |= {
        name: cls.model_type for name, cls in found.items() if cls.model_type != name and is_known(cls.model_type)
    }
    keys: dict[str, list[str]] = {}
    parts, fixed, shares, decoding, looking, flat = {}, {}, [], [], [], []
    for name, cls in found.items():
        spec = cls.sub_configs_defaults.get("text_config")
        if spec is not None and is_known(spec.model_type) and name not in OF_TWO_MODELS:
            (parts if spec.config_class is AutoConfig else fixed)[name] = spec.model_type
            if reads_beside(cls):
                flat.append(name)
        if not is_known(name):
            continue
        own = {f.name for f in fields(cls)}
        said = {
            other: key
            for other, key in [*sorted(read_aside(cls).items()), *sorted(cls.attribute_map.items())]
            if other not in own and other != key and (name, other) not in READ_LATER
        }
        if said:
            keys.setdefault(json.dumps(said), []).append(name)
        if name in READ_ELSEWHERE or "partial_rotary_factor" in code(cls):
            shares.append(name)
    spellings = [[names, json.loads(said)] for said, names in sorted(keys.items(), key=lambda one: one[1])]
    for name, cls in found.items():
        if not is_known(name) or name in WITH_ENCODER or getattr(cls, "add_cross_attention", False):
            continue
        if "config.add_cross_attention" in code(cls):
            looking.append(name)
        if name in ENCODERS and "config.is_decoder" in code(cls):
            decoding.append(name)
    rows = {
        "version": version("transformers"),
        "layer_types": dict(_LEGACY_LAYER_TYPE_REMAP),
        "types": dict(sorted(always.items())),
        "types_beside": beside,
        "text_types": dict(sorted(parts.items())),
        "only_text_types": dict(sorted(fixed.items())),
        "text_sizes": sizes_unless_said(parts, fixed),
        "flat": sorted(flat),
        "known": sorted(name for name in found if is_known(name)),
        "shares": sorted(shares),
        "unread": {
            name: unread for name, cls in sorted(found.items()) if is_known(name) and (unread := unread_beside(cls))
        },
        "decoders": DECODERS,
        "decoding": sorted(decoding),
        "looking": sorted(looking),
    }
    lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()]
    lines.append('"keys": [\n' + ",\n".join(map(json.dumps, spellings)) + "\n]")
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
