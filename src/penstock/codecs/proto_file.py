"""Which messages a ``.proto`` file defines, in their order: all that a record refers to by number."""

import re

Messages = list[tuple[str, "Messages"]]

_WORD = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[A-Za-z_][\w.]*|[{}]|\S", re.DOTALL)


def read_messages(text: str) -> Messages:
    """The messages of a file, each with those inside of it. All else (enums, services, options) is passed over."""
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
    """The name of a message within its file, such as ``Order.Item``, or None where there is none."""
    names = []
    for index in indexes:
        if not 0 <= index < len(messages):
            return None
        name, messages = messages[index]
        names.append(name)
    return ".".join(names)


def place_of(messages: Messages, name: str) -> list[int] | None:
    """The other way round."""
    first, _, rest = name.partition(".")
    for index, (found, inner) in enumerate(messages):
        if found == first:
            below = place_of(inner, rest) if rest else []
            return None if below is None else [index, *below]
    return None
