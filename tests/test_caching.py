"""Three kinds of cache and no fourth: functools' for what is pure, `memoized` and `Latest` for what comes from presets,
`cached_on_disk` for what outlives the process. Every module is read, and none is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "macros"
PURE = {"cache", "cached_method", "cached_property", "lru_cache"}
ROOM = {"memoized", "cached_on_disk"}
LIKE_A_CACHE = ("cache", "memo", "once", "remember", "kept", "keep")

# In these rooms nothing knows presets: tests/test_rooms.py.
WITHOUT_PRESETS = {"cache", "engine", "counting", "browser"}

# What is pure besides: a function of plain values, or of files that the preview takes in by building anew.
OF_PLAIN_VALUES = set(
    """
    catalogue/gguf_checkpoint:compared site/shared_pictures:_font
    catalogue/merges:contents catalogue/merges:merges catalogue/merges:vocabularies
    site/page_checks/__init__:_of_text site/page_checks/blocks:languages site/page_checks/tables:rows
    site/page_checks/numbers:_names site/page_checks/numbers:_texts site/page_checks/numbers:exceptions
    site/page_checks/numbers:of_configs site/page_checks/numbers:of_names
    catalogue/recordings:recorded catalogue/second_sources:lists catalogue/second_sources:reasons
    catalogue/capitals:countries catalogue/capitals:log catalogue/capitals:sentences
    catalogue/independent:comparison catalogue/presets:goldens catalogue/published_costs:claims
    catalogue/engine_records:of_each_architecture catalogue/engine_records:recorded
    catalogue/measurements:published catalogue/perplexities:published
    catalogue/served_runs:published catalogue/training_runs:stated
    catalogue/small_configs:small_configs catalogue/transformers_types:mappings
    catalogue/transformers_types:vllm_classes
    catalogue/transformers_types:vllm_recipes catalogue/watch:last_look catalogue/watch:watch_reasons
    catalogue/asked:all_topics catalogue/asked:asked catalogue/unread_there:_rows
    site/extensions/glossary:_anchors site/links:_sources site/links:files_below site/links:page_address
    site/links:relative_link
    site/mkdocs/pages:literals site/page_macros:linked_terms site/plain_markdown:_formula
    site/plain_markdown:_written site/search/words:forms
    catalogue/names:family_slug views/diagrams/drawing:_around views/kit/text_boxes:_ems
    views/diagrams/drawing:_line views/diagrams/drawing:_lines views/diagrams/drawing:_number
    views/diagrams/drawing:_rect views/diagrams/drawing:_texts views/diagrams/drawing:wrapped_lines
    views/diagrams/layout:_across views/diagrams/layout:_level views/diagrams/layout:_ordered
    views/diagrams/layout:lay_out views/diagrams/model_diagrams:_in_text
    views/diagrams/model_diagrams:_wrapped views/diagrams/model_diagrams:inert
    views/diagrams/model_diagrams:to_section views/diagrams/outline:drawn views/diagrams/pen:_tip
    views/diagrams/pen:_written
    views/guide/matmul:drawing views/kit/equations:math
    views/kit/html:_beside views/kit/html:_head views/kit/html:_inert views/kit/html:attribute_name
    views/kit/mathml:_terms
    views/kit/rounding:binary_bytes views/kit/rounding:decimal_bytes views/kit/rounding:flops views/kit/rounding:short
    views/kit/shapes:expression views/kit/shapes:of_expressions views/kit/shapes:tensor_name views/kit/shapes:var
    views/kit/svg:_escaped views/kit/svg:_log
    views/kit/text_width:held views/kit/text_width:text_width views/kit/values:_parsed views/kit/values:date
    views/kit/values:short_name
    views/reference/benchmarks:runs views/reference/claims:claims views/reference/claims:formulas
    views/reference/notation_tables:notation_table views/reference/notation_tables:terms_table
    views/models/catalogue:iso_date views/models/cited_numbers:_version views/tables/parameters:_purpose
    views/reference/rooms:_rooms views/reference/style:style
    views/trace/layers:_range views/trace/operations:_orders views/trace/operations:_words
    views/trace/walkthrough:_title views/trace/walkthrough:_why
    views/trace/walkthrough:_translate_equations
    views/words/descriptions:_step_tables views/words/descriptions:_terms_beside views/words/descriptions:_with_term
    views/words/descriptions:_of_kind views/words/descriptions:calls
    views/words/descriptions:kinds views/words/descriptions:of_weight views/words/descriptions:steps
    views/words/descriptions:weights views/words/notation:_keys_of_fields views/words/notation:config_sizes
    """.split()
)

# What looks like a cache and is none, or is one of the three by other means.
BY_HAND = {
    "api/tables:self._length": "pure: how many rows a table has that makes them one by one",
    "cache/disk:self.states": "what a store compares, for as long as it is open",
    "catalogue/presets:also": "a setting",
    "catalogue/question:said.context": "the reading itself: what follows where no context is given",
    "cli/commands:sys.stderr": "a stream that was closed, of the process",
    "cli/commands:sys.stdin": "a stream that was closed, of the process",
    "cli/commands:sys.stdout": "a stream that was closed, of the process",
    "counting/accelerators:self._peaks": "pure: the peak for some types, of the machine itself",
    "counting/capacity:self._bytes_at": "pure: what each context and type come to, of the model itself",
    "counting/links:_MESSAGES": "pure: of costs that do not change, and goes with them",
    "counting/links:_PARTS": "pure: of costs that do not change, and goes with them",
    "counting/serving:_STEPS": "pure: of costs that do not change, and goes with them",
    "counting/weight_formats:self._for_lists": "pure: the weights that quantizers treat alike, of the model itself",
    "counting/weight_formats:self._names": "pure: the names in files of the model's own weights",
    "counting/weight_formats:self._sizes": "pure: the sizes in one format, of the model itself",
    "counting/weight_formats:self._quantizers": "pure: what each quantizer comes to, of the model itself",
    "counting/divided:self._sizes_at": "pure: the size of each entry at a context, of the model itself",
    "counting/gguf:self._kept": "pure: what each format comes to, of the file itself",
    "counting/gguf:self._made": "pure: what each weight becomes in each format, of the file itself",
    "counting/gguf:self._of_matrix": "pure: the kinds of a file's tensors, which all formats ask for",
    "counting/gguf:self._terms": "pure: what decides the types of a file's tensors, which all formats ask for",
    "engine/architectures/__init__:_registered": "what `@architecture` lists",
    "engine/towers/__init__:_registered": "what `@tower` lists",
    "engine/architectures/tasks:NONE": "a constant: no tasks",
    "engine/array:self._flops": "pure: with slots there is no cached_property",
    "engine/array:self._walked": "pure: with slots there is no cached_property",
    "engine/array:self._weights": "pure: with slots there is no cached_property",
    "engine/terms:node.term": "pure: of a call that has ended, and goes with it",
    "engine/dims:self._hash": "pure: with slots there is no cached_property",
    "engine/dims:self._is_free": "pure: with slots there is no cached_property",
    "engine/dims:self._symbols": "pure: with slots there is no cached_property",
    "engine/dims:self._text": "pure: with slots there is no cached_property",
    "engine/trace:here.weights": "the trace itself: the weights that a call has asked for",
    "site/mkdocs/other_sites:_tools": "of the build under way",
    "site/mkdocs/markdown:checked": "of the build under way",
    "site/mkdocs/markdown:errors": "of the build under way",
    "site/mkdocs/markdown:excluded": "of the build under way",
    "site/mkdocs/markdown:glossary": "of the build under way",
    "site/mkdocs/markdown:lines": "of the page under way",
    "site/mkdocs/output:under_way": "of the build under way",
    "site/mkdocs/pages:counted": "the models of the last pages, which are released together",
    "site/mkdocs/pages:whole": "of the page under way",
    "site/mkdocs/published:listed": "of the build under way",
    "site/mkdocs/published:navigation": "of the build under way",
    "site/mkdocs/published:places": "of the build under way",
    "site/mkdocs/published:waiting": "of the build under way",
    "site/mkdocs/published:writing": "of the build under way",
    "site/mkdocs/search:entries": "of the build under way",
    "site/mkdocs/shared:there": "of the build under way",
    "site/page_errors:told": "of the build under way",
    "site/page_frames:self.rendered": "of the build under way",
    "site/shared_pictures:seconds": "of the build under way",
    "views/diagrams/dataflow:self.outside": "the drawing itself: an item is drawn in one place",
    "views/diagrams/dataflow:self.states": "the drawing itself: an item is drawn in one place",
    "views/diagrams/model_diagrams:item.written": "of a drawing, which goes with its page",
    "views/kit/mathml:_prepared": "pure: which formulas were translated together",
    "views/kit/mathml:_translated": "pure: what each formula is in MathML",
}


@cache
def modules() -> dict[str, ast.Module]:
    """Each module by its path in the package, without its ending."""
    return {
        path.relative_to(PACKAGE).with_suffix("").as_posix(): ast.parse(path.read_text("utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def decorators(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(what is decorated, by what)."""
    for node in ast.walk(tree):
        for decorator in getattr(node, "decorator_list", ()):
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            yield node.name, called.attr if isinstance(called, ast.Attribute) else ast.unparse(called)


def assigned(node: ast.stmt) -> list[ast.expr]:
    """What a statement gives a value to."""
    return node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []


def keeps(function: ast.FunctionDef) -> bool:
    """Whether something is put under a key."""
    return any(isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) for node in ast.walk(function))


EMPTY = {"{}", "[]", "dict()", "list()", "set()", "OrderedDict()", "WeakKeyDictionary()", "WeakValueDictionary()"}


def by_hand(tree: ast.Module) -> set[str]:
    """What is looked up before it is computed and then kept, and what is empty when a module begins."""
    found = {
        ast.unparse(target)
        for node in tree.body
        if getattr(node, "value", None) is not None
        and (ast.unparse(node.value).removeprefix("weakref.") in EMPTY or "defaultdict(" in ast.unparse(node.value))
        for target in assigned(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "__missing__" and keeps(node):
            found.add("__missing__")
        if isinstance(node, ast.If):
            asked = {
                ast.unparse(test.comparators[0] if isinstance(test.ops[0], ast.NotIn) else test.left)
                for test in ast.walk(node.test)
                if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotIn | ast.Is)
            }
            kept = [target for inside in node.body for target in assigned(inside)]
            places = [one.value if isinstance(one, ast.Subscript) else one for one in kept]
            found |= {ast.unparse(place) for place in places if isinstance(place, ast.Attribute)} & asked
    return found


def wrong(name: str, tree: ast.Module) -> set[str]:
    """The decorators of a module that are caches by their name, and none of the three."""
    return {
        f"{name}:{function} @{decorator}"
        for function, decorator in decorators(tree)
        if decorator not in PURE | ROOM and any(word in decorator.lower() for word in LIKE_A_CACHE)
    }


@pytest.mark.exhaustive
def test_there_are_three_kinds_of_cache():
    found = {name: by_hand(tree) for name, tree in modules().items() if name != "cache/memory"}
    found["cache/disk"] -= {"_wholes", "_stores", "_unused"}  # of the build under way
    found["cache/second_process"] -= {"_under_way"}
    assert {f"{name}:{place}" for name, places in found.items() for place in places} == BY_HAND.keys()
    assert not [one for name, tree in modules().items() for one in wrong(name, tree)]


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("known = {}", "known"),
        ("known: dict[str, int] = {}", "known"),
        ("known = weakref.WeakKeyDictionary()", "known"),
        ("known = collections.defaultdict(list)", "known"),
        ("def f(self, x):\n  if x not in self.known:\n    self.known[x] = g(x)\n  return self.known[x]", "self.known"),
        ("def f(self):\n  if self.known is None:\n    self.known = g()\n  return self.known", "self.known"),
        ("class K(dict):\n  def __missing__(self, x):\n    self[x] = g(x)", "__missing__"),
    ],
)
def test_a_fourth_kind_is_seen(source, place):
    assert by_hand(ast.parse(source)) == {place}


def test_a_decorator_of_a_fourth_kind_is_seen():
    source = "@once\ndef f(): ...\n@kit.remembered(5)\ndef g(): ...\n@functools.lru_cache(5)\ndef h(): ..."
    assert wrong("m", ast.parse(source)) == {"m:f @once", "m:g @remembered"}


def test_what_depends_on_presets_is_memoized():
    """functools' caches would hide from the preview what a result was made from: they are for functions of plain
    values. A property lives as long as its object.
    """
    found = {
        f"{name}:{function}"
        for name, tree in modules().items()
        if name.partition("/")[0] not in WITHOUT_PRESETS
        for function, decorator in decorators(tree)
        if decorator in PURE - {"cached_property"}
    }
    assert found == OF_PLAIN_VALUES
