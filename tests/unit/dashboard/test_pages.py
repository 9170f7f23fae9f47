"""Each page has both of its parts, and its module names only what the browser can load."""

import re
from collections import Counter
from pathlib import Path

import pytest

from penstock.dashboard.pages import PAGES
from penstock.dashboard.pages.page_contract import DashboardPage
from penstock.dashboard.server.web_app import STATIC


def name_of(page: DashboardPage) -> str:
    return page.name


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_a_module_for_the_browser(page: DashboardPage) -> None:
    assert (STATIC / "pages" / f"{page.name}.js").is_file()
    assert (STATIC / "pages" / f"{page.name}.css").is_file() == page.has_style
    icons = (STATIC / "icons.js").read_text("utf-8")
    assert not page.title or f"  {page.icon}:" in icons
    assert bool(page.title) != bool(page.under)


def test_no_two_pages_share_a_name_or_a_topic_of_the_feed() -> None:
    assert max(Counter(page.name for page in PAGES).values()) == 1
    assert max(Counter(topic for page in PAGES for topic in page.sources).values()) == 1


@pytest.mark.parametrize("path", sorted(STATIC.rglob("*.js")), ids=lambda path: path.name)
def test_a_module_imports_what_exists_and_writes_no_html(path: Path) -> None:
    text = path.read_text("utf-8")
    for found in re.findall(r'from "([^"]+)"', text):
        target = (path.parent / found).resolve()
        assert target.is_file(), found
        wanted = re.findall(r'import \{([^}]*)\} from "' + re.escape(found) + '"', text)
        names = {each.split(" as ")[0].strip() for group in wanted for each in group.split(",") if each.strip()}
        source = target.read_text("utf-8")
        missing = {
            name for name in names if not re.search(rf"export (async )?(function|const|class|let) {name}\b", source)
        }
        assert not missing, (found, missing)
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function",
        text.replace("no innerHTML", ""),
    )
    assert len(text.splitlines()) <= 400


def test_nothing_is_loaded_from_elsewhere() -> None:
    for path in STATIC.rglob("*"):
        if path.is_file():
            text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
            assert not re.search(r"(src|href|url|import)[=( ]*[\"']?https?:", text), path
