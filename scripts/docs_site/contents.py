"""The structure of the site: the sections of ``docs/index.md`` and the pages that each of them lists."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_ITEM = re.compile(r"^- \[([^]]+)\]\(([^)#]+)\)(?:: (.+))?$", re.MULTILINE)
# Pages of the repository outside of docs/, and their names on the site.
PROJECT_PAGES = {
    "DESIGN.md": "project/design",
    "CONTRIBUTING.md": "project/contributing",
    "CHANGELOG.md": "project/changelog",
    "benchmarks/README.md": "project/benchmarks",
}


@dataclass(frozen=True)
class Entry:
    """One page of a section: its title, its name on the site without a suffix, and what the reader finds there."""

    title: str
    name: str
    about: str


@dataclass(frozen=True)
class Section:
    title: str
    intro: str
    entries: tuple[Entry, ...]

    @property
    def name(self) -> str:
        """The name of the page that stands for the section: its only page, or one that lists its pages."""
        if len(self.entries) == 1:
            return self.entries[0].name
        return f"{re.sub(r'[^a-z]+', '-', self.title.lower()).strip('-')}/index"


def site_name(source: str) -> str:
    """The name on the site of a page of the repository, such as ``internals/index`` of docs/internals/README.md."""
    if source in PROJECT_PAGES:
        return PROJECT_PAGES[source]
    return re.sub(r"(^|/)README$", r"\1index", source.removeprefix("docs/").removesuffix(".md"))


def read_sections(index: str) -> list[Section]:
    _, *parts = re.split(r"^## ", index, flags=re.MULTILINE)
    return [_section(part) for part in parts]


def _section(part: str) -> Section:
    title, _, body = part.partition("\n")
    entries = [Entry(name, site_name(_source(link)), about or "") for name, link, about in _ITEM.findall(_joined(body))]
    intro = body[: body.index("- [")] if "- [" in body else body
    return Section(title.strip(), intro.strip(), tuple(entries))


def _joined(body: str) -> str:
    """Items on one line each."""
    return re.sub(r"\n {2,}(?=\S)", " ", body)


def _source(link: str) -> str:
    path = (DOCS / link).resolve()
    return path.relative_to(ROOT).as_posix()
