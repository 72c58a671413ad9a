"""A compiler from Python to JavaScript, in one module, for the constructs that the engine and the counting use.

The build compiles each module's own source, so the browser runs the same forward passes and counts, and no formula is
written twice.

A whole number becomes a BigInt and a float a number, so every count is exact. Python's other semantics (a dict keyed by
value, an operator of a class, a keyword argument) are in `python.mjs`, called `py` in the output. Annotations are left
out, except for a class's fields, which the configs read. A tuple becomes an array like a list: a module must not tell
the two apart. An unknown construct stops the build with its place.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_RESERVED = frozenset(
    """
    arguments await break case catch class const continue debugger default delete do else enum eval export extends false
    finally for function if implements import in instanceof interface let new null package private protected public
    return static super switch this throw true try typeof undefined var void while with yield py M
    """.split()
)
_BINARY = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "bitand",
    ast.BitOr: "bitor",
    ast.BitXor: "bitxor",
    ast.LShift: "lshift",
}
_COMPARE = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne", ast.In: "has"}
_EAGER = frozenset("sum tuple list sorted set frozenset min max dict sorted zip enumerate map".split())


# Methods of str, list, dict and set, which are dispatched on the type of their object.
_BUILT_IN = frozenset(
    """
    join split strip replace startswith endswith partition rpartition removesuffix removeprefix isascii isalpha isalnum
    isdigit isdecimal isupper lower upper count encode bit_length append extend insert remove pop index reverse sort get
    items keys values setdefault update copy add union intersection isdisjoint issubset issuperset fromkeys
    """.split()
)
# Attributes without a property on the JavaScript object.
_SPECIAL = frozenset("numerator denominator __name__ __doc__ __module__ __class__ name length".split())
_TRUE_OR_FALSE = frozenset("isinstance any all hasattr callable bool".split())
_OF_CLASSES = frozenset("property cached_property cached_method classmethod staticmethod".split())


class Unknown(Exception):
    """A construct without a counterpart: names the file and the line."""


def compile_module(
    tree: ast.Module,
    name: str,
    methods: Collection[str],
    keywords: Collection[str] | None = None,
    asked: Collection[str] | None = None,
) -> str:
    """The body of a JavaScript function that runs a module and returns its names. `name` is the module's dotted name
    within the package; its imports from the package are read from `M`, the modules that have run. `methods` are the
    names of methods in all modules; any other attribute is plain data. `keywords` are the names used as keyword
    arguments anywhere; other parameter names are omitted, or none if it is None. `asked` are the qualified names that
    any module imports: of its own imports, this module re-exports those among them, or all if it is None.
    """
    return _Module(name, methods, keywords, asked).text(tree)


def keywords_of(tree: ast.Module) -> set[str]:
    """The names of keyword arguments in a module's calls."""
    found: set[str] = set()
    nodes: list[ast.AST] = [tree]
    while nodes:  # like ast.walk, five times as fast
        node = nodes.pop()
        if type(node) is ast.Call:
            found.update([keyword.arg for keyword in node.keywords if keyword.arg])
        nodes += _inner(node, _LEAVES)
    return found


_NAMELESS = frozenset({ast.Constant, ast.arg, ast.Load, ast.Store, str, int, type(None)}.union(_BINARY, _COMPARE))
_LEAVES = _NAMELESS | {ast.Name, ast.alias}


def _inner(node: ast.AST, leaves: frozenset[type]) -> list[ast.AST]:
    """The child nodes in order, without leaves."""
    found: list[ast.AST] = []
    for value in node.__dict__.values():
        kind = type(value)
        if kind is list:
            found += [one for one in value if type(one) not in leaves]
        elif kind not in leaves:
            found.append(value)
    return found


def methods_of(tree: ast.Module) -> set[str]:
    """The names of the methods of a module's classes, properties excluded."""
    return {
        child.name
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for child in node.body
        if isinstance(child, ast.FunctionDef)
        and not any(isinstance(d, ast.Name) and d.id.endswith("property") for d in child.decorator_list)
    }


def absolute(node: ast.ImportFrom, name: str) -> str:
    """The absolute name of the module that a relative import in the module `name` refers to."""
    parts = name.split(".")  # a package's name ends in `.__init__`, one more than its folder
    return ".".join([*parts[: -node.level], *([node.module] if node.module else [])])


def imports(tree: ast.Module, name: str) -> list[str]:
    """The modules of the package that a module imports, by their dotted names; some may be names in a package."""
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = absolute(node, name)
            found += [base, *(f"{base}.{alias.name}" if base else alias.name for alias in node.names)]
    return found


_quoted = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _name(name: str) -> str:
    return f"{name}$" if name in _RESERVED else name


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _short(i: int) -> str:
    """The ith short name: a, b, … z, a1, b1, …"""
    return _LETTERS[i % 26] + (str(i // 26) if i >= 26 else "")


class _Names:
    """The names that a block binds, without those of inner functions and comprehensions."""

    def __init__(self, body: Collection[ast.AST]):
        self.names: dict[str, None] = {}
        following: list[Any] = [*body][::-1]
        while following:
            node = following.pop()
            kind = type(node)
            if kind is ast.Name:
                if type(node.ctx) is ast.Store:
                    self.names[node.id] = None
                continue
            if kind is ast.FunctionDef or kind is ast.ClassDef:
                self.names[node.name] = None
                continue
            if kind is ast.Lambda:
                continue
            if kind is ast.alias:
                self.names[node.asname or node.name.partition(".")[0]] = None
                continue
            if kind is ast.comprehension:
                following += [node.iter, *node.ifs][::-1]
                continue
            if kind is ast.ExceptHandler and node.name:
                self.names[node.name] = None
            following += _inner(node, _NAMELESS)[::-1]
        for node in body:
            for name in node.names if isinstance(node, ast.Nonlocal) else ():
                self.names.pop(name, None)


class _Module:
    """One module during its compilation."""

    def __init__(
        self,
        name: str,
        methods: Collection[str],
        keywords: Collection[str] | None = None,
        asked: Collection[str] | None = None,
    ):
        self.full, self.name, self.methods = name, name.removesuffix(".__init__"), methods
        self.keywords, self.asked = keywords, asked
        self.top: dict[str, str] = {}  # the module's names by their spelling in the output
        self.names = self.top  # the names in the current and the enclosing scopes
        self.shortened = 0  # the number of names in enclosing functions
        self.class_scope: set[str] | None = None  # names of the current class body
        self.class_name: list[str] = []
        self.is_plain = False  # whether the field types of the current class are never read
        self.temporary = 0
        self.yields = False  # whether the current function is a generator

    def text(self, tree: ast.Module) -> str:
        run = [
            node for node in tree.body if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
        ]
        names = _Names(run).names
        self.top = self.names = {name: _name(name) for name in names}
        brought: dict[str, tuple[str, str]] = {}
        lines: list[str] = []
        for node in run:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                brought |= self.brought(node)
            else:
                lines += self.statement(node)
        body = "".join(lines)
        handed = [n for n in names if n not in brought or self.asked is None or f"{self.name}.{n}" in self.asked]
        used = {*handed, *re.findall(r"[\w$]+", body)}  # annotations are dropped, and so are imports that only they use
        names = [n for n in names if n not in brought or (brought[n][0] and _name(n) in used)]
        own = [_name(n) for n in names if n not in brought]
        declared = f"let {','.join(own)};" if own else ""
        taken: dict[str, list[str]] = {}  # the names imported from each module
        for n in names:
            if n in brought:
                module, name = brought[n]
                taken.setdefault(module, []).append(n if n == name == _name(n) else f"{name}:{_name(n)}")
        imported = "".join(f"let{{{','.join(parts)}}}={module};" for module, parts in taken.items())
        exported = ",".join(n if n == _name(n) else f"{n}:{_name(n)}" for n in handed if n in names)
        return f"{declared}{imported}{body}return{{{exported}}};"

    def brought(self, node: ast.Import | ast.ImportFrom) -> dict[str, tuple[str, str]]:
        """Each name that an import binds: its source module, and its name there."""
        if isinstance(node, ast.Import):
            tops = {a.asname or a.name.partition(".")[0]: a.name.partition(".")[0] for a in node.names}
            return {n: (f"{{{top}:py.module({_quoted(top)})}}", top) for n, top in tops.items()}
        source = (
            f"py.names(M,{_quoted(absolute(node, self.full))})" if node.level else f"py.module({_quoted(node.module)})"
        )
        return {a.asname or a.name: ("" if node.module == "__future__" else source, a.name) for a in node.names}

    def unknown(self, node: ast.AST) -> Unknown:
        return Unknown(f"{self.name}, line {getattr(node, 'lineno', '?')}: {type(node).__name__} is not compiled")

    @contextmanager
    def scope(self, names: Iterable[str]) -> Iterator[None]:
        """A function's local names, shortened because nothing outside uses them, and distinct from those of enclosing
        scopes."""
        before = self.shortened, self.names
        written: dict[str, str] = {}
        for name in names:
            while (short := _short(self.shortened)) in self.top or short in _RESERVED:
                self.shortened += 1
            written[name] = short
            self.shortened += 1
        self.names = {**self.names, **written}
        try:
            yield
        finally:
            self.shortened, self.names = before

    def written(self, name: str) -> str:
        """A name in the output."""
        return self.names.get(name) or _name(name)

    # statements

    def statement(self, node: ast.stmt) -> list[str]:
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None:
            raise self.unknown(node)
        return method(node)

    def block(self, body: Iterable[ast.stmt]) -> str:
        return "{" + "".join(line for node in body for line in self.statement(node)) + "}"

    def _Pass(self, node: ast.Pass) -> list[str]:
        return []

    def _ImportFrom(self, node: ast.ImportFrom) -> list[str]:
        """An import in a function: the names of a module that is loaded by the time of the call."""
        return [f"{self.written(n)}={source}.{name};" for n, (source, name) in self.brought(node).items()]

    def _Nonlocal(self, node: ast.Nonlocal) -> list[str]:
        return []

    def _Break(self, node: ast.Break) -> list[str]:
        return ["break;"]

    def _Continue(self, node: ast.Continue) -> list[str]:
        return ["continue;"]

    def _Expr(self, node: ast.Expr) -> list[str]:
        return [] if isinstance(node.value, ast.Constant) else [f"{self.expr(node.value)};"]

    def _Return(self, node: ast.Return) -> list[str]:
        return [f"return {self.expr(node.value) if node.value else 'null'};"]

    def _Assert(self, node: ast.Assert) -> list[str]:
        return []

    def _Raise(self, node: ast.Raise) -> list[str]:
        return [f"throw py.raised({self.expr(node.exc)});" if node.exc else "throw $error;"]

    def _If(self, node: ast.If) -> list[str]:
        text = f"if({self.test(node.test)}){self.block(node.body)}"
        return [text + (f"else{self.block(node.orelse)}" if node.orelse else "")]

    def _While(self, node: ast.While) -> list[str]:
        return [f"while({self.test(node.test)}){self.block(node.body)}"]

    def _For(self, node: ast.For) -> list[str]:
        if node.orelse:
            raise self.unknown(node)
        item = self.fresh()
        body = self.block(node.body)
        return [f"for(const {item} of {self.iterated(node)}){{{self.assign(node.target, item)}{body}}}"]

    def iterated(self, node: ast.For | ast.comprehension) -> str:
        """The iterable of a loop; pairs of a dict that are unpacked at once are not copied."""
        match node.target, node.iter:
            case ast.Tuple(), ast.Call(ast.Attribute(value, "items"), [], []):
                return f"py.pairs({self.expr(value)})"
        return self.expr(node.iter)

    def _Try(self, node: ast.Try) -> list[str]:
        text = f"try{self.block(node.body)}"
        if node.handlers:
            text += "catch($error){"
            tests: list[str] = []
            for handler in node.handlers:
                bind = f"{self.written(handler.name)}=$error;" if handler.name else ""
                kind = self.expr(handler.type) if handler.type else "py.Exception"
                tests.append(f"if(py.catches($error,{kind})){{{bind}{self.block(handler.body)}}}")
            text += "else ".join(tests) + "else throw $error;}"
        if node.finalbody:
            text += f"finally{self.block(node.finalbody)}"
        return [text]

    def _Assign(self, node: ast.Assign) -> list[str]:
        if len(node.targets) == 1 and not isinstance(node.targets[0], (ast.Tuple, ast.List)):
            return [self.assign(node.targets[0], self.expr(node.value))]
        [target, *others] = node.targets
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) and not others:
            if not any(isinstance(n, ast.Starred) for n in (*target.elts, *node.value.elts)):
                items = [self.fresh() for _ in target.elts]
                values = ",".join(f"{i}={self.expr(v)}" for i, v in zip(items, node.value.elts))
                return [f"{{const {values};{''.join(map(self.assign, target.elts, items))}}}"]
        item = self.fresh()
        return [f"{{const {item}={self.expr(node.value)};{''.join(self.assign(t, item) for t in node.targets)}}}"]

    def _AnnAssign(self, node: ast.AnnAssign) -> list[str]:
        if self.class_scope is not None:
            assert isinstance(node.target, ast.Name)
            field = _quoted(node.target.id)
            self.class_scope.add(node.target.id)
            value = f",{self.expr(node.value)}" if node.value else ""
            kind = "0" if self.is_plain else f"()=>{self.expr(node.annotation)}"
            return [f"$c.$annotate({field},{kind}{value});"]
        if node.value is None:
            return []
        if isinstance(node.annotation, ast.Name) and node.annotation.id == "TypeAlias":
            return [f"{self.target(node.target)}=py.alias(()=>{self.expr(node.value)});"]
        return [self.assign(node.target, self.expr(node.value))]

    def _AugAssign(self, node: ast.AugAssign) -> list[str]:
        value = f"py.i{_BINARY[type(node.op)]}({self.expr(node.target)},{self.expr(node.value)})"
        return [self.assign(node.target, value)]

    def _FunctionDef(self, node: ast.FunctionDef) -> list[str]:
        value = self.function(node)
        if self.class_scope is None:
            for decorator in reversed(node.decorator_list):
                value = f"{self.expr(decorator)}({value})"
        else:
            for decorator in reversed(node.decorator_list):
                of_class = isinstance(decorator, ast.Name) and decorator.id in _OF_CLASSES
                plain = value if of_class else f"py.unmethod({value})"
                decorated = f"{self.expr(decorator)}({plain})"
                value = decorated if of_class else f"py.method({decorated})"
            self.class_scope.add(node.name)
            return [f"$c.$set({_quoted(node.name)},{value});"]
        return [f"{self.written(node.name)}={value};"]

    def function(self, node: ast.FunctionDef) -> str:
        is_method, self_name = self.class_scope is not None, ""
        positional = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        if is_method and not any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list):
            self_name = positional[0]
        outer, self.class_scope = self.class_scope, None
        outer_yields, self.yields = self.yields, False
        above, self.temporary = self.temporary, 0  # repeated names compress better
        parameters = self.parameters(node.args, skip=bool(self_name))
        bound: dict[str, None] = dict.fromkeys([*parameters, *([self_name] if self_name else [])])
        names = [n for n in _Names(node.body).names if n not in bound]
        with self.scope([*bound, *names]):
            head = f"const {self.written(self_name)}=this;" if self_name else ""
            head += f"let {','.join(map(self.written, names))};" if names else ""
            written = self.declared(parameters)
            body = "".join(line for child in node.body for line in self.statement(child))
        star = "*" if self.yields else ""
        self.class_scope, self.temporary, self.yields = outer, above, outer_yields
        text = f"function{star}({written}){{{head}{body}{'' if star else self.end(node.body)}}}"
        return f"py.def({text},{_quoted(node.name)},{self.signature(node.args, bool(self_name))})"

    @staticmethod
    def end(body: list[ast.stmt]) -> str:
        return "" if isinstance(body[-1], (ast.Return, ast.Raise)) else "return null;"

    @staticmethod
    def parameters(args: ast.arguments, *, skip: bool) -> dict[str, ast.expr | None]:
        """A function's parameters with their defaults: positional, `*args`, keyword-only, `**kwargs`."""
        positional = [*args.posonlyargs, *args.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
        pairs: list[tuple[str, ast.expr | None]] = [(a.arg, d) for a, d in zip(positional, defaults)][int(skip) :]
        pairs += [(args.vararg.arg, None)] if args.vararg else []
        pairs += [(a.arg, d) for a, d in zip(args.kwonlyargs, args.kw_defaults)]
        pairs += [(args.kwarg.arg, None)] if args.kwarg else []
        return dict(pairs)

    def declared(self, parameters: dict[str, ast.expr | None], rest: str | None = None) -> str:
        """The parameters in the output; `rest` collects all others."""
        return ",".join(
            ("..." if name == rest else "") + self.written(name) + (f"={self.expr(default)}" if default else "")
            for name, default in parameters.items()
        )

    def signature(self, args: ast.arguments, skip: bool) -> str:
        given = [a.arg for a in (*args.posonlyargs, *args.args)][int(skip) :]
        positional = [name if self.keywords is None or name in self.keywords else 0 for name in given]
        keyword = [a.arg for a in args.kwonlyargs]
        flags = f",{int(args.vararg is not None)},{int(args.kwarg is not None)}" if args.vararg or args.kwarg else ""
        written = [_quoted(names) for names in (positional, keyword)]
        return f"{','.join(written)}{flags}" if keyword or flags else written[0]

    def _ClassDef(self, node: ast.ClassDef) -> list[str]:
        bases = ",".join(self.expr(b) for b in node.bases)
        outer, self.class_scope = self.class_scope, set()
        self.class_name.append(node.name)
        fill = self.filled(node)
        outside, self.is_plain = self.is_plain, bool(fill)
        body = ""
        for child in node.body:
            if isinstance(child, ast.Assign):
                [target] = child.targets
                assert isinstance(target, ast.Name)
                value = child.value
                if isinstance(value, ast.Tuple) and any(ast.unparse(base).endswith("Enum") for base in node.bases):
                    value = value.elts[0]  # for a member with more than a value, its value
                body += f"$c.$set({_quoted(target.id)},{self.expr(value)});"
                self.class_scope.add(target.id)
            elif isinstance(child, (ast.FunctionDef, ast.AnnAssign, ast.Expr, ast.Pass)):
                body += "".join(self.statement(child))
            else:
                raise self.unknown(child)
        self.class_name.pop()
        self.class_scope = outer
        self.is_plain = outside
        body += fill
        options = ",".join(f"{k.arg}:{self.expr(k.value)}" for k in node.keywords)
        value = f"py.class({_quoted(node.name)},[{bases}],{{{options}}},$c=>{{{body}}})"
        for decorator in reversed(node.decorator_list):
            value = f"{self.expr(decorator)}({value})"
        return [f"{self.written(node.name)}={value};"]

    @staticmethod
    def filled(node: ast.ClassDef) -> str:
        """The constructor of a class that defines all of its fields itself: it sets all of them at once."""
        fields = [child for child in node.body if isinstance(child, ast.AnnAssign)]
        is_alone = all(isinstance(base, ast.Name) and base.id in ("NamedTuple", "Struct") for base in node.bases)
        if not fields or not is_alone or any(isinstance(child.value, ast.Call) for child in fields):
            return ""
        names = [child.target.id for child in fields if isinstance(child.target, ast.Name)]
        parameters = ",".join(f"${i}" for i in range(len(names)))
        return f"$c.$fill=(self,{parameters})=>{{{''.join(f'self.{name}=${i};' for i, name in enumerate(names))}}};"

    # assignment

    def fresh(self) -> str:
        self.temporary += 1
        return f"$${self.temporary}"

    def target(self, node: ast.expr) -> str:
        assert isinstance(node, ast.Name)
        return self.written(node.id)

    def assign(self, target: ast.expr, value: str) -> str:
        """Statements that bind a target to a JavaScript expression."""
        if isinstance(target, ast.Name):
            return f"{self.written(target.id)}={value};"
        if isinstance(target, ast.Attribute):
            return f"{self.expr(target.value)}.{target.attr}={value};"
        if isinstance(target, ast.Subscript):
            return f"py.setitem({self.expr(target.value)},{self.expr(target.slice)},{value});"
        if isinstance(target, (ast.Tuple, ast.List)):
            items, count = self.fresh(), len(target.elts)
            star = next((i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)), None)
            more = "" if star is None else f",{star},{count - 1 - star}"
            text = f"const {items}=py.unpack({value},{count}{more});"
            for i, t in enumerate(target.elts):
                text += self.assign(t.value if isinstance(t, ast.Starred) else t, f"{items}[{i}]")
            return f"{{{text}}}"
        raise self.unknown(target)

    # expressions

    def expr(self, node: ast.expr) -> str:
        method = getattr(self, f"_{type(node).__name__}", None)
        if method is None:
            raise self.unknown(node)
        return method(node)

    def test(self, node: ast.expr) -> str:
        """An expression as a JavaScript condition."""
        if isinstance(node, ast.BoolOp):
            sign = "&&" if isinstance(node.op, ast.And) else "||"
            return f"({sign.join(map(self.test, node.values))})"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"!{self.test(node.operand)}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _TRUE_OR_FALSE:
            return self.expr(node)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
            return self.expr(node)
        return f"py.truth({self.expr(node)})"

    def _Constant(self, node: ast.Constant) -> str:
        value = node.value
        if value is None or isinstance(value, bool):
            return {None: "null", True: "true", False: "false"}[value]
        if value is ...:
            return "py.Ellipsis"
        if isinstance(value, int):
            return f"{value}n"
        if isinstance(value, float):
            return repr(value)
        if isinstance(value, str):
            return _quoted(value)
        raise self.unknown(node)

    def _Name(self, node: ast.Name) -> str:
        if self.class_scope is not None and node.id in self.class_scope:
            return f"$c.$get({_quoted(node.id)})"
        return self.names.get(node.id) or f"py.{node.id}"

    def me(self) -> str:
        """The name by which a method calls its object or class."""
        return self.written("self" if "self" in self.names else "cls")

    def _Attribute(self, node: ast.Attribute) -> str:
        value = node.value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super":
            return f"py.superGet({self.written(self.class_name[-1])},{self.me()},{_quoted(node.attr)})"
        if node.attr in self.methods or node.attr in _BUILT_IN or node.attr in _SPECIAL:
            return f"py.get({self.expr(node.value)},{_quoted(node.attr)})"
        return f"{self.expr(node.value)}.{node.attr}"

    def _BinOp(self, node: ast.BinOp) -> str:
        return f"py.{_BINARY[type(node.op)]}({self.expr(node.left)},{self.expr(node.right)})"

    def _UnaryOp(self, node: ast.UnaryOp) -> str:
        if isinstance(node.op, ast.Not):
            return f"(!{self.test(node.operand)})"
        if isinstance(node.op, ast.USub):
            return f"py.neg({self.expr(node.operand)})"
        raise self.unknown(node)

    def _BoolOp(self, node: ast.BoolOp) -> str:
        first, *rest = map(self.expr, node.values)
        return f"py.{'and' if isinstance(node.op, ast.And) else 'or'}({first},{','.join(f'()=>{x}' for x in rest)})"

    def _Compare(self, node: ast.Compare) -> str:
        if len(node.ops) > 1:
            names = ",".join(_quoted(_COMPARE[type(op)]) for op in node.ops)
            return f"py.chain([{names}],{','.join(map(self.expr, (node.left, *node.comparators)))})"
        [op], [right] = node.ops, node.comparators
        if isinstance(op, (ast.Is, ast.IsNot)):
            sign = "==" if isinstance(op, ast.Is) else "!="
            if isinstance(right, ast.Constant) and right.value is None:
                return f"({self.expr(node.left)}{sign}null)"
            return f"({self.expr(node.left)}{sign}={self.expr(right)})"
        if isinstance(op, ast.NotIn):
            return f"(!py.has({self.expr(node.left)},{self.expr(right)}))"
        return f"py.{_COMPARE[type(op)]}({self.expr(node.left)},{self.expr(right)})"

    def _IfExp(self, node: ast.IfExp) -> str:
        return f"({self.test(node.test)}?{self.expr(node.body)}:{self.expr(node.orelse)})"

    def _NamedExpr(self, node: ast.NamedExpr) -> str:
        return f"({self.written(node.target.id)}={self.expr(node.value)})"

    def _Lambda(self, node: ast.Lambda) -> str:
        outer, self.class_scope = self.class_scope, None
        parameters = self.parameters(node.args, skip=False)
        with self.scope(parameters):
            written = self.declared(parameters, node.args.vararg.arg if node.args.vararg else None)
            body = self.expr(node.body)
        self.class_scope = outer
        return f"(({written})=>({body}))"

    def _JoinedStr(self, node: ast.JoinedStr) -> str:
        return "(" + "+".join(['""', *map(self.expr, node.values)]) + ")"

    def _FormattedValue(self, node: ast.FormattedValue) -> str:
        spec = f",{self.expr(node.format_spec)}" if node.format_spec else ""
        conversion = {-1: "py.format", 114: "py.formatRepr", 115: "py.formatStr"}[node.conversion]
        return f"{conversion}({self.expr(node.value)}{spec})"

    def items(self, nodes: Iterable[ast.expr]) -> str:
        return ",".join(f"...{self.expr(n.value)}" if isinstance(n, ast.Starred) else self.expr(n) for n in nodes)

    def _List(self, node: ast.List) -> str:
        return f"[{self.items(node.elts)}]"

    def _Tuple(self, node: ast.Tuple) -> str:
        return f"[{self.items(node.elts)}]"

    def _Set(self, node: ast.Set) -> str:
        return f"py.set([{self.items(node.elts)}])"

    def _Dict(self, node: ast.Dict) -> str:
        pairs = (
            f"...py.entries({self.expr(v)})" if k is None else f"[{self.expr(k)},{self.expr(v)}]"
            for k, v in zip(node.keys, node.values)
        )
        return f"py.dictOf([{','.join(pairs)}])"

    def _Slice(self, node: ast.Slice) -> str:
        parts = (self.expr(p) if p else "null" for p in (node.lower, node.upper, node.step))
        return f"py.slice({','.join(parts)})"

    def _Subscript(self, node: ast.Subscript) -> str:
        return f"py.item({self.expr(node.value)},{self.expr(node.slice)})"

    def _Starred(self, node: ast.Starred) -> str:
        return f"...{self.expr(node.value)}"

    def _Yield(self, node: ast.Yield) -> str:
        self.yields = True
        return f"(yield {self.expr(node.value) if node.value else 'null'})"

    def _YieldFrom(self, node: ast.YieldFrom) -> str:
        self.yields = True
        return f"(yield* {self.expr(node.value)})"

    def comprehension(
        self,
        generators: list[ast.comprehension],
        inner: ast.expr | tuple[ast.expr, ast.expr],
        how: str,
        write: Callable[[ast.expr], str] | None = None,
    ) -> str:
        """Nested loops around a comprehension's result, which replaces the `@` in `how`."""
        if not generators:
            return how.replace("@", ",".join(map(write or self.expr, inner if isinstance(inner, tuple) else (inner,))))
        first, *rest = generators
        source = self.iterated(first)
        names = list(_Names([first.target]).names)
        with self.scope(names):
            if isinstance(first.target, ast.Name):
                item, bind = self.written(first.target.id), ""
            else:
                item = self.fresh()
                bind = f"let {','.join(map(self.written, names))};{self.assign(first.target, item)}"
            tests = "".join(f"if(!{self.test(t)})continue;" for t in first.ifs)
            body = self.comprehension(rest, inner, how, write)
        return f"for(const {item} of {source}){{{bind}{tests}{body}}}"

    def _ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> str:
        return f"(()=>{{const $r=[];{self.comprehension(node.generators, node.elt, '$r.push(@);')}return $r;}})()"

    def _SetComp(self, node: ast.SetComp) -> str:
        return f"(()=>{{const $r=py.set();{self.comprehension(node.generators, node.elt, '$r.add(@);')}return $r;}})()"

    def _DictComp(self, node: ast.DictComp) -> str:
        loops = self.comprehension(node.generators, (node.key, node.value), "$r.put(@);")
        return f"(()=>{{const $r=py.dict();{loops}return $r;}})()"

    def _GeneratorExp(self, node: ast.GeneratorExp) -> str:
        return f"(function*(){{{self.comprehension(node.generators, node.elt, 'yield @;')}}})()"

    def _Call(self, node: ast.Call) -> str:
        function = node.func
        if isinstance(function, ast.Subscript) and isinstance(function.value, ast.Name):
            if function.value.id not in self.names:  # frozenset[str]()
                function = function.value
        if isinstance(function, ast.Name) and function.id == "cast":
            return self.expr(node.args[1])
        if isinstance(function, ast.Name) and function.id == "super":
            raise self.unknown(node)
        if isinstance(function, ast.Attribute) and function.attr == "sort":
            if any(keyword.arg in ("key", "reverse") for keyword in node.keywords):
                mend = "write sorted(…, key=…)"
                raise Unknown(f"{self.name}, line {node.lineno}: list.sort(key=…) is not compiled; {mend}")
        eager = (isinstance(function, ast.Name) and function.id in _EAGER) or (
            isinstance(function, ast.Attribute) and function.attr in ("join", "prod", "union")
        )
        match function, node.args:
            case ast.Name("any" | "all" as name), [ast.GeneratorExp(inner, generators)]:
                how, end = ("if(@)return true;", "false") if name == "any" else ("if(!@)return false;", "true")
                return f"(()=>{{{self.comprehension(generators, inner, how, self.test)}return {end};}})()"
            case ast.Name("next"), [ast.GeneratorExp(inner, generators), otherwise]:
                loops = self.comprehension(generators, inner, "return @;")
                return f"(()=>{{{loops}return {self.expr(otherwise)};}})()"
        if eager and any(isinstance(a, ast.GeneratorExp) for a in node.args):
            args = ",".join(
                self._ListComp(a) if isinstance(a, ast.GeneratorExp) else self.items([a]) for a in node.args
            )
        else:
            args = self.items(node.args)
        keywords = ",".join(
            f"...py.keywords({self.expr(k.value)})" if k.arg is None else f"{k.arg}:{self.expr(k.value)}"
            for k in node.keywords
        )
        if isinstance(function, ast.Attribute):
            value, attribute = function.value, _quoted(function.attr)
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super":
                me = self.written("cls") if function.attr == "__new__" else self.me()
                return f"py.super({self.written(self.class_name[-1])},{me},{attribute},[{args}],{{{keywords}}})"
            if keywords:
                return f"py.callKeywords({self.expr(value)},{attribute},[{args}],{{{keywords}}})"
            if function.attr not in _BUILT_IN:
                return f"{self.expr(value)}.{function.attr}({args})"
            return f"py.call({self.expr(value)},{attribute}{',' + args if args else ''})"
        if keywords:
            return f"py.apply({self.expr(function)},[{args}],{{{keywords}}})"
        return f"{self.expr(function)}({args})"
