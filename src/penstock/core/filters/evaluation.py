"""Evaluates an expression by walking its syntax tree. Input and output are plain values: those of JSON, and bytes.

Every step is counted, and operations on larger values cost more steps, so no expression keeps a process busy for long;
this matters because Python handles no signal during a single long operation. The user's text never reaches ``eval``,
``getattr`` or string formatting.
"""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from types import GeneratorType, MappingProxyType
from typing import Any

# The limit for one record. A step is a node of the tree, an item of an iterated list, or _CHARACTERS_A_STEP characters.
MAX_STEPS = 100_000
_CHARACTERS_A_STEP = 100
# The limit for the length of a text or of a list.
MAX_SIZE = 10_000_000
# The limit for an integer, large enough for every float as an integer. Floats have a limit of their own.
MAX_BITS = 4_096

_NUMBERS = (bool, int, float)
_TEXTS = (str, bytes)
_SCALARS = (*_NUMBERS, *_TEXTS, type(None))
_LISTS = (list, tuple)
_VALUES = (*_SCALARS, *_LISTS, dict, set)

BINARY: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = MappingProxyType(
    {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.Div: operator.truediv,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: operator.mod,
    }
)
UNARY: Mapping[type[ast.AST], Callable[[Any], Any]] = MappingProxyType(
    {ast.Not: operator.not_, ast.USub: operator.neg, ast.UAdd: operator.pos}
)
KEYWORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {"max": frozenset({"default"}), "min": frozenset({"default"}), "sorted": frozenset({"reverse"})}
)
_OF_TEXT: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        name: getattr(str, name)
        for name in (
            "startswith", "endswith", "lower", "upper", "casefold", "strip", "lstrip", "rstrip", "split", "count",
            "find", "isdigit", "isdecimal", "isalpha", "isalnum", "isspace",
        )
    }
)  # fmt: skip
_OF_BYTES: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {name: getattr(bytes, name) for name in ("startswith", "endswith", "count", "find", "hex")}
)
_OF_DICT: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {name: getattr(dict, name) for name in ("get", "keys", "values", "items")}
)
_METHODS: Mapping[type, Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {str: _OF_TEXT, bytes: _OF_BYTES, dict: _OF_DICT}
)
METHODS = tuple(dict.fromkeys([*_OF_TEXT, *_OF_BYTES, *_OF_DICT]))


class TooMuchError(Exception):
    """The expression takes too many steps for this record, or produces a value that is too large."""


class Evaluation:
    """The evaluation of one expression for one record; ``values`` are its variables."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._names = dict(values)
        self._left = MAX_STEPS

    def of(self, node: ast.AST) -> Any:
        self.spend(1)
        return _MEANINGS[type(node)](self, node)

    def name(self, node: ast.Name) -> Any:
        return _plain(self._names[node.id])

    def bool_op(self, node: ast.BoolOp) -> Any:
        ends_with, value = isinstance(node.op, ast.Or), None
        for each in node.values:
            value = self.of(each)
            if bool(value) is ends_with:
                break
        return value

    def unary(self, node: ast.UnaryOp) -> Any:
        value = self.of(node.operand)
        return UNARY[type(node.op)](value if isinstance(node.op, ast.Not) else _number(value))

    def binary(self, node: ast.BinOp) -> Any:
        left, right = self.of(node.left), self.of(node.right)
        if isinstance(node.op, ast.Add) and type(left) is type(right) and type(left) in (*_TEXTS, list):
            self.spend_size(len(left) + len(right))
            return left + right
        # Texts cannot be repeated (*) or formatted (%): a short expression could produce a huge text.
        return _bounded(BINARY[type(node.op)](_number(left), _number(right)))

    def compare(self, node: ast.Compare) -> bool:
        left = self.of(node.left)
        for how, each in zip(node.ops, node.comparators, strict=True):
            right = self.of(each)
            if not COMPARISONS[type(how)](self, left, right):
                return False
            left = right
        return True

    def if_else(self, node: ast.IfExp) -> Any:
        return self.of(node.body if self.of(node.test) else node.orelse)

    def part(self, node: ast.Subscript) -> Any:
        whole, at = self.of(node.value), node.slice
        if not isinstance(whole, (*_TEXTS, *_LISTS, dict)) or (isinstance(at, ast.Slice) and isinstance(whole, dict)):
            raise TypeError(f"{_kind(whole)} has no such parts")
        if isinstance(at, ast.Slice):
            self.spend_size(len(whole))
            bounds = (None if each is None else _scalar(self.of(each)) for each in (at.lower, at.upper, at.step))
            return whole[slice(*bounds)]
        return _plain(whole[_scalar(self.of(at))])

    def call(self, node: ast.Call) -> Any:
        keywords = {str(each.arg): self.of(each.value) for each in node.keywords}
        if isinstance(node.func, ast.Attribute):
            return self._method(self.of(node.func.value), node.func.attr, [self.of(each) for each in node.args])
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _OF_VALUE:
            (value,) = map(self.of, node.args)
            self._spend_text(value)
            return _bounded(_OF_VALUE[name](value))
        before = dict(self._names)
        items = self.items(self._lazily(node.args[0])) if len(node.args) == 1 else iter([*map(self.of, node.args)])
        result = _bounded(_OF_ITEMS[name](self, items, **keywords))
        self._names = before  # a comprehension that did not run to its end has left its variables behind
        return result

    def _method(self, of: Any, name: str, arguments: list[Any]) -> Any:
        methods = _METHODS.get(type(of), {})
        if name not in methods:
            raise TypeError(f"{_kind(of)} has no {name}")
        self.spend_size(len(of))
        result = methods[name](of, *map(_scalar, arguments))
        return list(map(list, result)) if name == "items" else list(result) if name in ("keys", "values") else result

    def list_(self, node: ast.List | ast.Tuple | ast.Set) -> list[Any]:
        made: list[Any] = []
        for each in node.elts:
            if isinstance(each, ast.Starred):
                made += self.items(self.of(each.value))
            else:
                made.append(self.of(each))
        return made

    def dict_(self, node: ast.Dict) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:  # `**`, which is refused
                made[_scalar(self.of(key))] = self.of(value)
        return made

    def made(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Iterator[Any]:
        return (self.of(node.elt) for _ in self._rounds(node.generators))

    def dict_comprehension(self, node: ast.DictComp) -> dict[Any, Any]:
        return {_scalar(self.of(node.key)): self.of(node.value) for _ in self._rounds(node.generators)}

    def _lazily(self, node: ast.expr) -> Any:
        """A generator stays lazy, because `any` stops at the first true item."""
        return self.made(node) if isinstance(node, ast.GeneratorExp) else self.of(node)

    def _rounds(self, generators: list[ast.comprehension]) -> Iterator[None]:
        """Yields once for each combination that passes the conditions, with the comprehension's variables set."""
        first, *others = generators
        before = dict(self._names)
        for item in self.items(self.of(first.iter)):
            self._assign(first.target, item)
            if all(self.of(each) for each in first.ifs):
                yield from self._rounds(others) if others else (None,)
        self._names = before

    def _assign(self, target: ast.expr, item: Any) -> None:
        if isinstance(target, ast.Name):
            self._names[target.id] = item
            return
        names = [each.id for each in target.elts if isinstance(each, ast.Name)] if isinstance(target, ast.Tuple) else []
        self._names.update(zip(names, self.items(item), strict=True))

    def items(self, whole: Any) -> Iterator[Any]:
        if not isinstance(whole, (*_TEXTS, *_LISTS, dict, set, GeneratorType)):
            raise TypeError(f"{_kind(whole)} has no items")
        for each in whole:
            self.spend(1)
            yield each

    def equal(self, left: Any, right: Any) -> bool:
        """Compares item by item and counts each: a list may contain the same list many times."""
        self.spend(1)
        if isinstance(left, _LISTS) and isinstance(right, _LISTS):
            return len(left) == len(right) and all(map(self.equal, left, right))
        if isinstance(left, dict) and isinstance(right, dict):
            self.spend(len(left))
            return left.keys() == right.keys() and all(self.equal(left[name], right[name]) for name in left)
        if isinstance(left, set) and isinstance(right, set):
            self.spend(len(left))
            return left == right
        self._spend_text(left)
        return bool(left == right) if _is_scalar(left) and _is_scalar(right) else False

    def contains(self, part: Any, whole: Any) -> bool:
        if isinstance(whole, _TEXTS):
            self._spend_text(whole)
            return _scalar(part) in whole
        if isinstance(whole, dict | set):
            return _scalar(part) in whole
        return any(self.equal(each, part) for each in self.items(whole))

    def in_order(self, how: Callable[[Any, Any], Any], left: Any, right: Any) -> bool:
        self._spend_text(left)
        return bool(how(_scalar(left), _scalar(right)))

    def sortable(self, items: Iterator[Any]) -> list[Any]:
        """The items as a list for sorting, which costs 4 steps per item: about enough for any list within the limit."""
        found = [_scalar(each) for each in items]
        self.spend(4 * len(found))
        for each in found:
            self._spend_text(each)
        return found

    def _spend_text(self, value: Any) -> None:
        if isinstance(value, _TEXTS):
            self.spend_size(len(value))

    def spend_size(self, size: int) -> None:
        if size > MAX_SIZE:
            raise TooMuchError("a text or a list is too large")
        self.spend(size // _CHARACTERS_A_STEP)

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise TooMuchError(f"it takes more than {MAX_STEPS:,} steps")


def _number(value: Any) -> Any:
    if type(value) not in _NUMBERS:
        raise TypeError(f"{_kind(value)} is not a number")
    return value


def _is_scalar(value: Any) -> bool:
    return type(value) in _SCALARS


def _scalar(value: Any) -> Any:
    if not _is_scalar(value):
        raise TypeError(f"{_kind(value)} is not a single value")
    return value


def _plain(value: Any) -> Any:
    if type(value) not in _VALUES:
        raise TypeError(f"{_kind(value)} cannot be used in an expression")
    return value


def _bounded(value: Any) -> Any:
    if type(value) is int and value.bit_length() > MAX_BITS:
        raise TooMuchError("a number is too large")
    return value


def _kind(value: Any) -> str:
    known = {dict: "an object", list: "a list", tuple: "a list", str: "a text", type(None): "null"}
    return known.get(type(value), f"a {type(value).__name__}")


_MEANINGS: Mapping[type[ast.AST], Callable[[Evaluation, Any], Any]] = MappingProxyType(
    {
        ast.Constant: lambda _, node: node.value,
        ast.Name: Evaluation.name,
        ast.BoolOp: Evaluation.bool_op,
        ast.UnaryOp: Evaluation.unary,
        ast.BinOp: Evaluation.binary,
        ast.Compare: Evaluation.compare,
        ast.IfExp: Evaluation.if_else,
        ast.Subscript: Evaluation.part,
        ast.Call: Evaluation.call,
        ast.List: Evaluation.list_,
        ast.Tuple: Evaluation.list_,
        ast.Set: lambda its, node: set(map(_scalar, its.list_(node))),
        ast.Dict: Evaluation.dict_,
        ast.ListComp: lambda its, node: list(its.made(node)),
        ast.GeneratorExp: lambda its, node: list(its.made(node)),
        ast.SetComp: lambda its, node: set(map(_scalar, its.made(node))),
        ast.DictComp: Evaluation.dict_comprehension,
    }
)
_Compare = Callable[[Evaluation, Any, Any], bool]
COMPARISONS: Mapping[type[ast.AST], _Compare] = MappingProxyType(
    {
        ast.Eq: Evaluation.equal,
        ast.NotEq: lambda its, left, right: not its.equal(left, right),
        ast.In: Evaluation.contains,
        ast.NotIn: lambda its, left, right: not its.contains(left, right),
        ast.Is: lambda _, left, right: left is right,
        ast.IsNot: lambda _, left, right: left is not right,
        ast.Lt: lambda its, left, right: its.in_order(operator.lt, left, right),
        ast.LtE: lambda its, left, right: its.in_order(operator.le, left, right),
        ast.Gt: lambda its, left, right: its.in_order(operator.gt, left, right),
        ast.GtE: lambda its, left, right: its.in_order(operator.ge, left, right),
    }
)
_OF_VALUE: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "abs": lambda value: abs(_number(value)),
        "bool": bool,
        "float": lambda value: float(_scalar(value)),
        "int": lambda value: int(_scalar(value)),
        "len": len,
        "str": lambda value: str(_scalar(value)),
    }
)
_OF_ITEMS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "all": lambda _, items: all(items),
        "any": lambda _, items: any(items),
        "list": lambda _, items: list(items),
        "max": lambda its, items, **keywords: max(its.sortable(items), **keywords),
        "min": lambda its, items, **keywords: min(its.sortable(items), **keywords),
        "set": lambda _, items: set(map(_scalar, items)),
        "sorted": lambda its, items, **keywords: sorted(its.sortable(items), **keywords),
        "sum": lambda _, items: sum(map(_number, items)),
    }
)
FUNCTIONS = tuple(sorted([*_OF_VALUE, *_OF_ITEMS]))
