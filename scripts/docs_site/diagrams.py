"""Puts diagrams into the pages themselves, so that they take the colors of the page, light or dark.

A diagram is an SVG whose root has the class ``diagram``. Its own style serves where it is a picture; in a page,
``theme/static/penstock.css`` sets its colors.
"""

import re
from pathlib import Path
from urllib.parse import unquote

_PICTURE = re.compile(r'<img\b[^>]*?\bsrc="([^"]+\.svg)"[^>]*>')
_MARK = 'class="diagram"'


def put_diagrams_into(page: Path) -> None:
    def replaced(match: "re.Match[str]") -> str:
        picture = page.parent / unquote(match[1])
        text = picture.read_text("utf-8") if picture.exists() else ""
        return text.strip() if _MARK in text else match[0]

    text = page.read_text("utf-8")
    changed = _PICTURE.sub(replaced, text)
    if changed != text:
        page.write_text(changed, "utf-8")
