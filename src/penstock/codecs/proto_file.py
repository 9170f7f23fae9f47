"""Reads which messages a ``.proto`` file defines, in their order. Records name their message by its indexes there."""

import re

Messages = list[tuple[str, "Messages"]]
"""The name of each message, and the messages inside it."""

_WORD = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[A-Za-z_][\w.]*|[{}]|\S", re.DOTALL)


def read_messages(text: str) -> Messages:
    """Return the messages of a file. Skips everything else (enums, services, options)."""
    top: Messages = []
    around: list[Messages] = [top]
    before, two_before = "", ""
    for word in (found[0] for found in _WORD.finditer(text)):
        if word.startswith(("//", "/*")):
            continue
        if word == "{":
            inner: Messages = []
            if two_before == "message":
                around[-1].append((before, inner))
            around.append(inner)
        elif word == "}" and len(around) > 1:
            around.pop()
        before, two_before = word, before
    return top


def name_at(messages: Messages, indexes: list[int]) -> str | None:
    """Return the name of the message at these indexes, such as ``Order.Item``; None if there is none."""
    names = []
    for index in indexes:
        if not 0 <= index < len(messages):
            return None
        name, messages = messages[index]
        names.append(name)
    return ".".join(names)


def find_indexes(messages: Messages, name: str) -> list[int] | None:
    """Return the indexes of the message with this name; None if there is none."""
    first, _, rest = name.partition(".")
    for index, (found, inner) in enumerate(messages):
        if found == first:
            below = find_indexes(inner, rest) if rest else []
            return None if below is None else [index, *below]
    return None
