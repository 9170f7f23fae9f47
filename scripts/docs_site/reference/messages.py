"""The page about errors: the classes, the exit codes, and every message with what to do about it, from the source."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import penstock
from docs_site.reference.docstrings import cell, summary
from penstock import errors

_SOURCE = Path(penstock.__file__).parent
# Functions that make an error from a problem and a hint, besides the classes themselves.
_MAKERS = frozenset({"wrong", "_wrong"})
_PARTS = {
    "app": "Declaring an app",
    "assign": "Assignors",
    "cli": "The command line",
    "codecs": "Schemas and the registry",
    "core": "Options, settings and rules",
    "devkit": "The embedded Kafka",
    "engine": "The local engine",
    "jvm": "Java and jars",
    "kafka": "Kafka",
    "lifecycle": "Running an app",
    "ops": "Operating",
    "serde": "Decoding and encoding",
    "spark": "Spark",
    "stores": "Progress in a store",
    "testing": "The testing kit",
    "demo": "The demo",
}


@dataclass(frozen=True)
class Message:
    problem: str
    hint: str
    part: str


def error_classes() -> list[type[errors.PenstockError]]:
    found = [each for each in vars(errors).values() if isinstance(each, type)]
    return [each for each in found if issubclass(each, errors.PenstockError)]


def errors_page() -> str:
    lines = [
        "# Errors",
        "",
        "Search this page for the words of an error that you have seen. `…` stands for a part that differs. Each error",
        "says what is wrong and what to do. The [questions by error message](../faq.md) explain the frequent ones.",
        "",
        "## Exit codes",
        "",
        "| class of the error | exit code | what happened |",
        "|---|---|---|",
        *(f"| `{each.__name__}` | {each.exit_code} | {cell(summary(each))} |" for each in error_classes()),
        "",
        "A command that succeeds exits with 0, and one that Ctrl+C or SIGINT ended with 130.",
        "",
    ]
    found = messages()
    for part, title in sorted(_PARTS.items(), key=lambda each: each[1]):
        rows = sorted({(each.problem, each.hint) for each in found if each.part == part})
        if rows:
            lines += [f"## {title}", "", "| message | what to do |", "|---|---|"]
            lines += [f"| {_cell(problem)} | {_cell(hint.removeprefix('…'))} |" for problem, hint in rows]
            lines += [""]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    # As text: a message may hold characters that mean something in Markdown.
    escaped = "".join(f"\\{each}" if each in "`*_[]<>$#" else each for each in text)
    return cell(escaped)


def messages() -> list[Message]:
    """Every message of the source whose problem is written where the error is made."""
    return [
        Message(problem, hint, path.relative_to(_SOURCE).parts[0].removesuffix(".py"))
        for path in sorted(_SOURCE.rglob("*.py"))
        for problem, hint in _in(ast.parse(path.read_text("utf-8")))
    ]


def _in(tree: ast.Module) -> Iterator[tuple[str, str]]:
    makers = _MAKERS | {each.__name__ for each in error_classes()}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _name(node.func) not in makers or not node.args:
            continue
        problem = _text(node.args[0])
        hint = next((_text(each.value) for each in node.keywords if each.arg == "hint"), "")
        if not hint and len(node.args) > 1 and _name(node.func) in _MAKERS:
            hint = _text(node.args[1])
        if any(each.isalpha() for each in problem.replace("…", "")):
            yield problem, hint


def _name(function: ast.expr) -> str:
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _text(node: ast.expr) -> str:
    """The text that an expression makes, with ``…`` for what is only known at run time."""
    match node:
        case ast.Constant(value=str() as value):
            return value
        case ast.JoinedStr(values=values):
            return "".join(_text(each) for each in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left) + _text(right)
    return "…"
