"""Changes to the Markdown of a page on its way to the site: its comments go, and its links name pages of the site."""

import re
from collections.abc import Callable, Mapping
from posixpath import dirname, join, normpath, relpath

# A block of code, or a code span on one line.
_CODE = re.compile(r"^( *)(`{3,}).*?^ *\2 *$|``.+?``|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^ *<!--.*?-->\n?", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^][]|\[[^]]*\])*)\]\((?!https?:|mailto:)([^)#\s]*)(#[^)\s]+)?\)")
_PICTURES = (".svg", ".png")


def without_code(text: str, change: Callable[[str], str]) -> str:
    """Apply the change to everything but code."""
    kept: list[str] = []

    def keep(match: "re.Match[str]") -> str:
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    changed = change(_CODE.sub(keep, text))
    return re.sub(r"\0(\d+)\0", lambda match: kept[int(match[1])], changed)


def without_comments(text: str) -> str:
    """Without what only the checks of the docs read: hidden files and commands, and markers of tables."""
    # Comments hold blocks of code, and no block of code of a page holds such a comment at the start of a line.
    return re.sub(r"\n{3,}", "\n\n", _COMMENT.sub("", text))


def with_links(text: str, source: str, pages: Mapping[str, str], name: str) -> str:
    """The text with links to pages of the site.

    Args:
        text: The Markdown of a page of the repository.
        source: Where the page is in the repository, such as ``docs/running.md``.
        pages: The names on the site of all pages, by their paths in the repository.
        name: The name of this page on the site.
    """

    def replaced(match: "re.Match[str]") -> str:
        picture, label, target, anchor = match.groups()
        if not target:
            return match[0]
        path = normpath(join(dirname(source), target))
        if picture or target.endswith(_PICTURES):
            return f"{picture}[{label}]({relpath(path.removeprefix('docs/'), dirname(name) or '.')})"
        page = pages.get(path) or pages.get(join(path, "README.md"))
        if page is None:  # a file or folder of the repository that is no page
            return label
        return f"[{label}]({relpath(page, dirname(name) or '.')}.md{anchor or ''})"

    return without_code(text, lambda plain: _LINK.sub(replaced, plain))


def title_of(text: str) -> str:
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    return found[1].strip() if found else ""


def first_paragraph(text: str) -> str:
    """The first paragraph below the title, as plain text."""
    paragraphs = re.split(r"\n\s*\n", re.sub(r"^# .+$", "", without_comments(text), count=1, flags=re.MULTILINE))
    first = next((each.strip() for each in paragraphs if each.strip() and each.strip()[0] not in "#|`!"), "")
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(first.split())).replace("**", "")
