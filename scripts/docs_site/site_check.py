"""Checks a site that was built: each link has a target, and nothing is loaded from elsewhere."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}
_FROM_ELSEWHERE = re.compile(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//")


class _Page(HTMLParser):
    """The links, the anchors and the loaded files of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif (tag, name) in _LOADS:
                self.loads.append(value or "")
            elif (tag, name) == ("a", "href"):
                self.links.append(value or "")


def problems_of(site: Path) -> list[str]:
    """What a visitor would miss; empty for a good site."""
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    return [*_broken_links(site, pages), *_foreign_loads(site, pages)]


def _broken_links(site: Path, pages: dict[Path, _Page]) -> Iterator[str]:
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{path.relative_to(site)}: the link {link} has no target."
            elif target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{path.relative_to(site)}: the page of the link {link} has no such heading."


def _foreign_loads(site: Path, pages: dict[Path, _Page]) -> Iterator[str]:
    for path, page in pages.items():
        for name in page.loads:
            if urlsplit(name).netloc:
                yield f"{path.relative_to(site)} loads {name} from another server."
    for path in sorted(site.rglob("*.css")):
        if _FROM_ELSEWHERE.search(path.read_text("utf-8")):
            yield f"{path.relative_to(site)} loads a file from another server."
