"""Links between pages have a target, and the files that a page names exist."""

import re
from pathlib import Path

import pytest

from docs_check.environment import DOCS, ROOT, page_id
from docs_site.contents import PROJECT_PAGES, read_sections, site_name

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md")),
    *DOCS,
]
WHERE = ROOT / "docs" / "where-to-change-what.md"
# A code span on one line; spans of two backticks may hold one.
_CODE = re.compile(r"^ *```.*?^ *```$|``.+?``|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_PATH = re.compile(r"`((?:src|tests|docs|examples|benchmarks|deploy|scripts)/[^`\s]+)`")
_MAX_FILES = 3


def anchors_of(page: Path) -> set[str]:
    """The names that a link to this page may end with: those of its headings, as GitHub makes them, and its own."""
    text = page.read_text("utf-8")
    headings = re.findall(
        r"^#+ (.+)$", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE
    )
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_link_leads_to_a_page_and_a_heading(page: Path) -> None:
    broken = []
    for name, anchor in _LINK.findall(_CODE.sub("", page.read_text("utf-8"))):
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(f"{name}#{anchor}" if anchor else name)
    assert broken == []


def test_every_page_is_listed_once_in_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    listed = [entry.name for section in read_sections(index.read_text("utf-8")) for entry in section.entries]
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page != index]
    expected = [*(site_name(page.relative_to(ROOT).as_posix()) for page in pages), *PROJECT_PAGES.values()]
    assert sorted(listed) == sorted(expected)


def test_every_page_links_to_the_glossary() -> None:
    assert [
        page.name for page in PAGES if page.name != "glossary.md" and "glossary.md" not in page.read_text("utf-8")
    ] == []


def test_the_terms_of_each_table_of_the_glossary_are_in_the_order_of_the_alphabet() -> None:
    for table in (ROOT / "docs" / "glossary.md").read_text("utf-8").split("\n## ")[1:]:
        terms = [
            re.sub(r"[^a-z]", "", term.lower())
            for term in re.findall(r'^\| <a id="[^"]+"></a>([^|]+)\|', table, re.MULTILINE)
        ]
        assert terms
        assert terms == sorted(terms)


def test_every_file_to_change_exists() -> None:
    named = _PATH.findall(WHERE.read_text("utf-8"))
    assert len(named) > len(sections())
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_no_change_needs_more_than_three_files() -> None:
    assert len(sections()) >= 10
    assert [title for title, files in sections().items() if not 1 <= len(files) <= _MAX_FILES] == []


def sections() -> dict[str, list[str]]:
    """Title of a change → the numbered lines below it, each about one file."""
    texts = WHERE.read_text("utf-8").split("\n## ")[1:]
    return {text.partition("\n")[0]: re.findall(r"^\d\. (.+)", text, re.MULTILINE) for text in texts}
