"""Each tool shows, at an address with its choices, the approved fields, tables, sentences and labels."""

import difflib
import os
from urllib.parse import urljoin

import pytest
from approved.in_browser import ADDRESSES, TOOLS, approved_at, shown_at, write_at

pytestmark = pytest.mark.browser
MEND = "if the new lines are what readers should see: APPROVE=yes python -m pytest tests/browser/test_approved_tools.py"


@pytest.mark.every_case
@pytest.mark.parametrize("name", ADDRESSES)
def test_a_tool_shows_what_was_approved(name, open_page, site):
    said, was = shown_at(open_page(urljoin(site, ADDRESSES[name])), name), approved_at(name)
    if os.environ.get("APPROVE"):
        return write_at(TOOLS, name, said)
    lines = difflib.unified_diff(was.splitlines(), said.splitlines(), "approved", "now", lineterm="", n=0)
    assert said == was, "\n".join([MEND, *list(lines)[:60]])


def test_each_text_has_its_address():
    assert {path.stem for path in TOOLS.glob("*.txt")} == ADDRESSES.keys()
