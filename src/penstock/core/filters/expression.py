"""Filters that an operator writes in a small part of Python, such as ``value["amount"] > 100 and key.startswith("a")``.

Python only parses the text and never runs it. Before any record is read, ``checked`` walks the syntax tree and rejects
every element that is not explicitly allowed; ``evaluation.py`` then evaluates the tree, with limits on steps and sizes.
The only attributes are a few methods of text, bytes and dicts. There are no powers or shifts, no formatting, and no way
to define a function. So it is safe to run an expression that someone else wrote.
"""

import ast
from collections.abc import Mapping
from typing import Any

from penstock.core.filters.evaluation import BINARY, COMPARISONS, FUNCTIONS, KEYWORDS, METHODS, UNARY, Evaluation
from penstock.errors import ConfigError

NAMES = ("key", "value", "headers", "topic", "partition", "offset", "timestamp", "reason", "message", "source", "group")

# A filter is one line on a terminal. The limits protect Python's parser, which needs much memory and stack.
MAX_LENGTH = 2_000
MAX_NODES = 400
MAX_DEPTH = 40

_PLAIN = (
    ast.BoolOp, ast.And, ast.Or, ast.IfExp, ast.Compare, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Slice, ast.Load,
    ast.Store, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Starred,
)  # fmt: skip
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_OPERATORS: tuple[type[ast.AST], ...] = (*BINARY, *UNARY, *COMPARISONS)
_CONSTANTS = (str, bytes, bool, int, float, type(None))
# Python syntax that people may try, under the names that they know.
_WORDS: dict[type[ast.AST], str] = {
    ast.Lambda: "lambda",
    ast.NamedExpr: ":=",
    ast.JoinedStr: "an f-string",
    ast.Await: "await",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.Invert: "~",
    ast.MatMult: "@",
}


class Expression:
    """A filter, checked once. If it fails for a record, the record does not match; ``misses`` counts such records."""

    def __init__(self, text: str, *, option: str = "--where") -> None:
        self.misses = 0
        self.example = ""
        self._tree = checked(text, option=option)

    def matches(self, values: Mapping[str, Any]) -> bool:
        try:
            return bool(Evaluation(values).of(self._tree))
        except Exception as error:  # noqa: BLE001 - whatever an expression meets in a record
            self.misses += 1
            self.example = self.example or f"{type(error).__name__}: {error}"
            return False


def checked(text: str, *, option: str) -> ast.expr:
    """The syntax tree of an expression that contains only what ``Evaluation`` supports; otherwise ConfigError."""
    if len(text) > MAX_LENGTH:
        raise ConfigError(f"{option} has {len(text):,} characters.", hint=f"Write at most {MAX_LENGTH:,}.")
    try:
        tree = ast.parse(text.strip(), option, "eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConfigError(
            f"{option} is not an expression: {getattr(error, 'msg', None) or type(error).__name__}.",
            hint='Write Python, such as value["amount"] > 100. The variables are ' + ", ".join(NAMES) + ".",
        ) from None
    _Check(option).look_at(tree, frozenset(NAMES), depth=0)
    return tree


class _Check:
    def __init__(self, option: str) -> None:
        self._option = option
        self._nodes = 0

    def look_at(self, node: ast.AST, names: frozenset[str], *, depth: int) -> None:
        """Check a node and its children; ``names`` are the variables that have a value there."""
        self._nodes += 1
        if self._nodes > MAX_NODES or depth > MAX_DEPTH:
            raise ConfigError(f"{self._option} is too long or too deeply nested.", hint="Write a shorter expression.")
        if isinstance(node, ast.Name):
            self._require_name(node.id, names)
        elif isinstance(node, ast.Constant):
            if type(node.value) not in _CONSTANTS:
                self._refuse(repr(node.value))
        elif isinstance(node, ast.Call):
            self._look_at_call(node, names, depth)
        elif isinstance(node, _COMPREHENSIONS):
            self._look_at_comprehension(node, names, depth)
        elif isinstance(node, ast.Attribute):
            self._refuse(f".{node.attr}", hint='Fields are looked up as in value["amount"].')
        else:
            self._look_at_parts(node, names, depth)

    def _look_at_parts(self, node: ast.AST, names: frozenset[str], depth: int) -> None:
        if not isinstance(node, (*_PLAIN, *_OPERATORS)):
            self._refuse(_WORDS.get(type(node), type(node).__name__))
        if isinstance(node, ast.Dict) and None in node.keys:
            self._refuse("** in {}")
        for child in ast.iter_child_nodes(node):
            self.look_at(child, names, depth=depth + 1)

    def _look_at_call(self, node: ast.Call, names: frozenset[str], depth: int) -> None:
        match node.func:
            case ast.Name(id=name):
                if name not in FUNCTIONS:
                    raise ConfigError(f"{self._option} has no function {name!r}.", hint=f"Use {', '.join(FUNCTIONS)}.")
                allowed = KEYWORDS.get(name, frozenset())
            case ast.Attribute(value=of, attr=name):
                if name not in METHODS:
                    self._refuse(f".{name}()", hint=f"The methods are {', '.join(METHODS)}.")
                self.look_at(of, names, depth=depth + 1)
                allowed = frozenset()
            case _:
                self._refuse("a call of anything but a function or a method by its name")
        if any(isinstance(each, ast.Starred) for each in node.args) or any(
            each.arg not in allowed for each in node.keywords
        ):
            self._refuse(f"these arguments of {name}")
        for each in (*node.args, *(keyword.value for keyword in node.keywords)):
            self.look_at(each, names, depth=depth + 1)

    def _look_at_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, names: frozenset[str], depth: int
    ) -> None:
        for each in node.generators:
            if each.is_async:
                self._refuse("async for")
            self.look_at(each.iter, names, depth=depth + 1)
            names |= self._targets(each.target)
            for condition in each.ifs:
                self.look_at(condition, names, depth=depth + 1)
        made = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        for part in made:
            self.look_at(part, names, depth=depth + 1)

    def _targets(self, target: ast.expr) -> frozenset[str]:
        parts = target.elts if isinstance(target, ast.Tuple) else [target]
        self._nodes += len(parts)
        names = [each.id for each in parts if isinstance(each, ast.Name)]
        if len(names) < len(parts) or any(name in FUNCTIONS or name.startswith("_") for name in names):
            self._refuse(f"for {ast.unparse(target)}")
        return frozenset(names)

    def _require_name(self, name: str, names: frozenset[str]) -> None:
        if name not in names:
            raise ConfigError(f"{self._option} has no variable {name!r}.", hint=f"Use {', '.join(NAMES)}.")

    def _refuse(self, what: str, hint: str = "") -> None:
        raise ConfigError(
            f"{self._option} cannot use {what}.",
            hint=hint or "Use comparisons, and, or, not, in, + - * / // %, [...], for ... in, and some functions.",
        )
