"""Collects the source of the site: pages of the repository, of the reference, and one page for each section."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from docs_site.contents import DOCS, PROJECT_PAGES, ROOT, Entry, Section, read_sections, site_name
from docs_site.markdown import first_paragraph, title_of, with_links, without_comments
from docs_site.reference import reference_pages

REFERENCE = "Reference"


def assemble(folder: Path) -> list[Section]:
    """Write the source of the site into the folder. Return its sections, with the pages of the reference."""
    folder.mkdir(parents=True)
    sources = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in sorted(DOCS.rglob("*.md"))}
    sources |= {name: (ROOT / name).read_text("utf-8") for name in PROJECT_PAGES}
    generated = {f"docs/reference/{name}.md": text for name, text in reference_pages().items()}
    sources |= generated
    pages = {source: site_name(source) for source in sources}
    sections = [_with_reference(each, generated) for each in read_sections(sources["docs/index.md"])]
    for source, text in sources.items():
        name = pages[source]
        _write(folder, name, with_links(without_comments(text), source, pages, name))
    _add_contents(folder, sections)
    pictures = [path for pattern in ("*.svg", "*.png") for path in DOCS.rglob(pattern)]
    for picture in (*pictures, *(ROOT / "benchmarks").glob("*.svg")):
        target = folder / picture.relative_to(DOCS if picture.is_relative_to(DOCS) else ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, target)
    return sections


def _with_reference(section: Section, generated: Mapping[str, str]) -> Section:
    if section.title != REFERENCE:
        return section
    entries = tuple(Entry(title_of(text), site_name(each), first_paragraph(text)) for each, text in generated.items())
    return Section(section.title, section.intro, (*section.entries, *entries))


def _add_contents(folder: Path, sections: list[Section]) -> None:
    """Write a page for each section, and the tables of contents that the sidebar shows."""
    for section in sections:
        if len(section.entries) > 1 and not (folder / f"{section.name}.md").exists():
            lines = [f"# {section.title}", section.intro, ""]
            lines += [f"- [{each.title}](/{each.name}.md): {each.about}".rstrip(": ") for each in section.entries]
            _write(folder, section.name, "\n".join(lines) + "\n")
        if len(section.entries) > 1:
            names = [f"{each.title} </{each.name}>" for each in section.entries if each.name != section.name]
            _append(folder / f"{section.name}.md", _contents(names))
    _append(folder / "index.md", _contents([f"{each.title} </{each.name}>" for each in sections]))


def _contents(entries: list[str]) -> str:
    return "\n".join(["", "```{toctree}", ":hidden:", *entries, "```", ""])


def _append(path: Path, text: str) -> None:
    path.write_text(path.read_text("utf-8") + text, "utf-8")


def _write(folder: Path, name: str, text: str) -> None:
    path = folder / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
