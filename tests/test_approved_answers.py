"""What each room of the package answers to many small questions is as it was approved: figures, texts and refusals."""

from __future__ import annotations

import difflib

import pytest
from approved import answers

PACKAGE = answers.ROOT / "macros"


@pytest.mark.every_case
@pytest.mark.parametrize("room", answers.ROOMS, ids="room:{}".format)
def test_a_room_answers_as_was_approved(room):
    """Mend: if the new lines are right, python -m tests.approved answers; read the difference."""
    said = answers.answers(room)
    wrong = [
        line[:400]
        for expression, was in answers.expected(room).items()
        for line in difflib.unified_diff(was.splitlines(), said[expression].splitlines(), expression, "now", "", "", 0)
        if was != said[expression] and not line.startswith("@@")
    ]
    assert not wrong, "\n".join(wrong[:60])


def test_each_file_is_of_a_room_and_small():
    for name in answers.ROOMS:
        assert (PACKAGE / name.partition("_")[0] / "__init__.py").is_file(), name
        assert (answers.FOLDER / f"{name}.txt").stat().st_size < 250_000, name


def test_an_answer_has_every_property_and_what_refuses_it():
    class Sample:
        """Of a property and two methods."""

        size = property(lambda self: 3)

        def area(self, width: int) -> int:
            return self.size * width

        def unasked(self, other: int) -> int:
            return other

        def __repr__(self) -> str:
            return "a sample"

    assert answers.faces(Sample()) == {"": "a sample", "size": 3}
    assert answers.probe(Sample(), {"width": 2}, {"width": 5}) == {"size": 3, "area 0": 6, "area 1": 15}
    assert answers.answer("1 // 0", {}).startswith("ZeroDivisionError: ")
    assert answers.answer("'x' * 20", {"most": 4}).startswith("xxxx\n… 16 more characters: ")
