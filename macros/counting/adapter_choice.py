"""Which modules and parameters PEFT adapts, given an adapter's options: names, suffixes, regular expressions,
layers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .module_tree import Module
from .patterns import Expression, is_expression

ALL_LINEAR = "all-linear"
RANK = 8  # the default, as in PEFT
EXCLUDED, UNMATCHED, CHOSEN = "excluded", "unmatched", "chosen"


@dataclass(frozen=True)
class Adapter:
    """The options of an adapter. `targets` None: PEFT's default for the model type."""

    rank: int = RANK
    targets: tuple[str, ...] | str | None = None
    dora: bool = False
    bias: str = "none"
    saved: tuple[str, ...] = ()  # modules that are trained in full, in addition to the adapters
    excluded: tuple[str, ...] | str = ()  # modules that are never adapted, even if targeted
    layers: tuple[int, ...] | None = None  # layers to adapt; all of them if None or empty
    layers_pattern: tuple[str, ...] = ()  # what the layers are called, before their number; any name if empty
    ranks: tuple[tuple[str, int], ...] = ()  # ranks of modules, by the end of the name or an expression
    parameters: tuple[str, ...] = ()  # suffixes of parameter names to adapt, such as experts.gate_up_proj
    alphas: tuple[tuple[str, int], ...] = ()  # scales of modules; they train nothing


class Names:
    """Endings of module names, or an expression for whole names."""

    def __init__(self, named: tuple[str, ...] | str):
        self.names: dict[str, bool] = {} if isinstance(named, str) else dict.fromkeys(named, True)
        self.endings = tuple([f".{name}" for name in self.names])
        self.expression = Expression(named) if isinstance(named, str) else None

    def have(self, name: str) -> bool:
        """Whether a module matches."""
        if self.expression is not None:
            return self.expression.spells(name)
        return name in self.names or name.endswith(self.endings)


class Pieces:
    """Names, each of which may be an expression for the end of a module's name, matched part by part as in PEFT."""

    def __init__(self, names: Iterable[str], after: str = ""):
        """`after`: an expression for whatever may follow."""
        self.names = tuple(names)
        self.expressions = {
            name: Expression(f"{name}{after}" if name.startswith("^") else f"(.*\\.)?({name}){after}")
            for name in self.names
            if is_expression(name)
        }
        self.is_open = after != ""

    def first(self, name: str) -> str | None:
        """The first one that matches a name."""
        for one in self.names:
            expression = self.expressions.get(one)
            if expression is not None:
                fits = expression.spells(name)
            elif self.is_open:
                fits = f".{one}." in f".{name}."
            else:
                fits = name == one or name.endswith(f".{one}")
            if fits:
                return one
        return None


def _has_digits(*options: Iterable[str]) -> bool:
    return any(character.isdigit() for names in options for name in names for character in name)


class Tree:
    """A model's modules by name: those of each layer, and those that contain others."""

    def __init__(self, known: tuple[Module, ...], weightless: tuple[str, ...]):
        """`weightless`: the last two parts of the names of modules without parameters."""
        self.known = known
        self.holders: dict[str, dict[int, bool]] = {}  # of parameters, and of modules with parameters; their layers
        for m in known:
            parts = m.holder.split(".")
            for n in range(1, len(parts) + 1):
                self.holders.setdefault(".".join(parts[:n]), {}).update(dict.fromkeys(m.layers, True))
        for m in known:
            if m.is_weight:
                for layer in m.layers:
                    self.holders[m.name].pop(layer, None)
        for parent, _, name in [pattern.partition(".") for pattern in weightless]:
            if parent == "":
                self.holders[name] = {0: True}
            for holder, layers in list(self.holders.items()):
                last = holder.rpartition(".")[2]
                if last == parent or (parent == "*" and (last == "{i}" or last.isdecimal())):
                    self.holders.setdefault(f"{holder}.{name}", {}).update(layers)

    def containers(self) -> Iterator[tuple[str, int]]:
        """The modules without weights of their own, in each layer."""
        for name, layers in self.holders.items():
            for layer in layers if "{i}" in name else list(layers)[:1]:
                yield name, layer


def written(name: str, layer: int, member: int = 0) -> str:
    """A name in one layer, of one expert."""
    return name.replace("{i}", str(layer)).replace("{e}", str(member))


def is_every(targets: tuple[str, ...] | str | None) -> bool:
    return isinstance(targets, str) and targets.lower() == ALL_LINEAR


class Choice:
    """The rule by which PEFT selects modules by name (`check_target_module_exists`)."""

    def __init__(self, adapter: Adapter):
        self.excluded = Names(adapter.excluded)
        self.saved = Pieces(adapter.saved, "(\\..*)?")
        self.is_every = is_every(adapter.targets)
        targets = () if self.is_every or adapter.targets is None else adapter.targets
        self.targets = Names(targets)
        self.layers = frozenset(adapter.layers or ())
        self.layer_names = Pieces(adapter.layers_pattern)
        # whether it treats all layers alike
        self.is_by_layer = (
            len(self.layers) > 0
            or isinstance(targets, str)
            or isinstance(adapter.excluded, str)
            or _has_digits(targets, adapter.excluded, adapter.saved, [name for name, _ in adapter.ranks])
            or any(is_expression(name) for name in (*adapter.saved, *[name for name, _ in adapter.ranks]))
        )

    def of(self, name: str, is_linear: bool = False) -> str:
        """EXCLUDED, UNMATCHED or CHOSEN."""
        if self.excluded.have(name) or self.saved.first(name) is not None:
            return EXCLUDED
        if self.is_every:
            return CHOSEN if is_linear else UNMATCHED
        if not self.targets.have(name):
            return UNMATCHED
        return CHOSEN if self._is_in_layers(name) else UNMATCHED

    def _is_in_layers(self, name: str) -> bool:
        """Whether a module is in one of the requested layers, judging by the first number in its name or by the one
        after the layers' name. A target that is a full name is in all of them."""
        if not self.layers or name in self.targets.names:
            return True
        parts = name.split(".")
        patterns = self.layer_names.names
        for pattern in patterns or ("",):
            for at in range(1, len(parts) - 1):
                if parts[at].isdecimal() and (at >= 2 or pattern != ""):
                    before = ".".join(parts[:at])
                    if pattern == "" or Pieces((pattern,)).first(before) is not None:
                        return int(parts[at]) in self.layers
        return False
