"""A model's counts of parameters for programs, each with its convention."""

from __future__ import annotations

import math

from ..catalogue import presets
from ..catalogue.headlines import named_counts
from ..counting.figures import FIGURES, PARAMETERS
from ..data.model import check_number
from .tables import Quantity, Row, Table, Tabular, Value, weights_table


class Parameters(Tabular):
    """The number of parameters of a model. Exact whole numbers; each property states its convention."""

    def __init__(self, inner: presets.Model):
        self._model = inner

    @property
    def total(self) -> Quantity:
        """Unique and trainable; a tied table counts once. Its rows are the parts of the model."""
        return self._by_part("total", lambda w: int(w.count))

    @property
    def active(self) -> Quantity:
        """The total without the routed experts that a token does not choose; embeddings and head count in full."""
        return self._by_part("active", lambda w: int(w.active))

    @property
    def active_excluding_input_embedding(self) -> int:
        """`active` without the tables of n-grams and the input table, unless that is also the head."""
        return self._model.counts.active_excluding_input_embedding

    @property
    def embedding(self) -> int:
        """Token and position tables and the head; a tied table counts once."""
        return self._model.counts.embedding

    @property
    def non_embedding(self) -> int:
        """The total without the tables and an untied head."""
        return self._model.counts.non_embedding

    @property
    def active_non_embedding(self) -> int:
        """`active` without the input and position tables, the tables of n-grams and the head."""
        return self._model.counts.active_non_embedding

    @property
    def excluding_ngram_tables(self) -> int:
        """The total without the tables of n-grams."""
        return self._model.counts.excluding_ngram_tables

    @property
    def with_components(self) -> int:
        """The total with the towers for images and sounds."""
        return self._model.with_components

    @property
    def with_prediction(self) -> int:
        """The total with the modules for multi-token prediction."""
        return self._model.with_prediction

    @property
    def by_count(self) -> dict[str, int]:
        """Every count that a published size may refer to, by its name: `total`, `with_components_and_prediction`, …"""
        return named_counts(self._model)

    @property
    def stored(self) -> int:
        """The values in the published file, including scales; without a known file, parameters and buffers."""
        return self._model.stored

    @property
    def stored_is_computed(self) -> bool:
        """Whether `stored` is parameters and buffers, because no published file is known."""
        return self._model.is_stored_computed

    @property
    def tensors(self) -> Table:
        """Every trained tensor under its name in the file, with every layer and expert listed: shape, parameters.

        The rows are generated during iteration. Raises `Problem` if there are too many to list; use `patterns` then.
        """
        check_number(self._model)
        counts = self._model.counts
        return Table(
            ("tensor", "shape", "parameters"),
            lambda: (
                {"tensor": name, "shape": list(shape), "parameters": math.prod(shape)}
                for name, shape in counts.tensors()
            ),
            length=sum(int(w.copies) for w in counts.weights),
        )

    @property
    def patterns(self) -> Table:
        """The trained tensors by name pattern, with `{i}` for a layer and `{e}` for an expert: shape, copies, and their
        total parameters, also as a formula."""
        return weights_table(self._model.counts)

    @property
    def table(self) -> Table:
        names = [name for name, f in FIGURES.items() if f.key == f"parameters.{name}"]
        rows: list[Row] = [
            {"figure": name, "parameters": int(getattr(self, name)), "convention": FIGURES[name].convention}
            for name in names
        ]
        beside = {
            "with_components": "the total with the towers for images and sounds",
            "with_prediction": "the total with the modules for multi-token prediction",
        }
        rows += [
            {"figure": name, "parameters": n, "convention": said}
            for name, said in beside.items()
            if (n := int(getattr(self, name))) != self.total
        ]
        where = "computed: parameters and buffers" if self.stored_is_computed else "values in the published file"
        rows.append({"figure": "stored", "parameters": self.stored, "convention": where})
        return Table(("figure", "parameters", "convention"), rows, caption=self._model.name)

    def __repr__(self) -> str:
        return repr(self.table.select("figure", "parameters"))

    def _by_part(self, name: str, count) -> Quantity:
        sums: dict[tuple[Value, Value, Value], int] = {}
        for part in self._model.counts.parts:
            layers = len(part.layers) if part.layers else None
            key = part.name, str(part.kind) if layers else None, layers
            sums[key] = sums.get(key, 0) + sum(count(w) for w in part.weights)
        columns = "part", "kind", "layers", "parameters"
        rows: list[Row] = [dict(zip(columns, (*key, n))) for key, n in sums.items()]
        value = getattr(self._model.counts, name)
        return Quantity(value, PARAMETERS, FIGURES[name].convention, Table(columns, rows))
