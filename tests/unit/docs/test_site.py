"""The documentation site is built without warnings and broken links, and its reference has everything that exists."""

import re
from pathlib import Path

import pytest

import penstock
import penstock.assign
import penstock.events
import penstock.stores
import penstock.testing
from docs_check.environment import ROOT
from docs_site.build import build
from docs_site.contents import read_sections
from docs_site.markdown import with_links, without_comments
from docs_site.reference import reference_pages
from docs_site.reference.api import INTERNAL, documented_options
from docs_site.reference.commands import commands
from docs_site.reference.messages import error_classes, messages
from docs_site.reference.tables import event_classes
from docs_site.site_check import problems_of
from penstock.core.failures.dead_letter_headers import DeadLetterHeader, ReplayHeader
from penstock.core.records.origin import RetryHeader
from penstock.core.reports.event_json import name_of
from penstock.core.settings.names import SETTINGS
from penstock.ops.metrics.metric_list import METRICS


@pytest.fixture(scope="module")
def reference() -> dict[str, str]:
    return reference_pages()


def test_the_site_is_built_and_every_page_exists_as_markdown_too(tmp_path: Path) -> None:
    assert build(tmp_path / "site") == []
    pages = {page.relative_to(tmp_path / "site").as_posix() for page in (tmp_path / "site").rglob("*.html")}
    without_source = {"search.html", "genindex.html"}
    assert {
        page for page in pages - without_source if not (tmp_path / "site" / page).with_suffix(".md").exists()
    } == set()
    listed = (tmp_path / "site" / "llms.txt").read_text("utf-8")
    index = read_sections((ROOT / "docs" / "index.md").read_text("utf-8"))
    assert [each.name for section in index for each in section.entries if f"({each.name}.md)" not in listed] == []
    assert "reference/commands.md" in listed
    assert (tmp_path / "site" / "searchindex.js").exists()
    assert '<svg xmlns="http://www.w3.org/2000/svg" class="diagram"' in (
        tmp_path / "site" / "understand" / "commits.html"
    ).read_text("utf-8")


def test_a_link_without_a_target_and_a_file_from_elsewhere_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html">b</a><a href="a.html#top">top</a><a href="#gone">gone</a>'
        '<a href="https://example.org">elsewhere</a><script src="https://example.org/x.js"></script>',
        "utf-8",
    )
    (tmp_path / "a.css").write_text("@import url(//example.org/font.css);", "utf-8")
    assert problems_of(tmp_path) == [
        "a.html: the link b.html has no target.",
        "a.html: the page of the link #gone has no such heading.",
        "a.html loads https://example.org/x.js from another server.",
        "a.css loads a file from another server.",
    ]


def test_all_diagrams_have_the_same_style() -> None:
    pictures = [each.read_text("utf-8") for each in sorted((ROOT / "docs").rglob("*.svg"))]
    styles = {re.findall(r"<style>.*?</style>", each, re.DOTALL)[0] for each in pictures if 'class="diagram"' in each}
    assert len(styles) == 1


def test_links_of_the_repository_become_links_of_the_site() -> None:
    pages = {"docs/running.md": "running", "DESIGN.md": "project/design", "docs/how-to/a.md": "how-to/a"}
    text = "[a](../running.md#events) [b](../../DESIGN.md) [c](../../examples/web) `[d](../running.md)` [e](#here)"
    changed = "[a](../running.md#events) [b](../project/design.md) c `[d](../running.md)` [e](#here)"
    assert with_links(text, "docs/how-to/a.md", pages, "how-to/a") == changed
    assert without_comments("a\n\n<!-- before\n$ penstock up\n-->\n\nb\n") == "a\n\nb\n"


@pytest.mark.parametrize("module", [penstock, penstock.testing, penstock.assign, penstock.stores])
def test_every_public_name_is_in_the_reference(reference: dict[str, str], module: object) -> None:
    names = vars(module)["__all__"]
    assert [name for name in names if f"### `{name}`\n" not in reference["api"]] == []


def test_every_event_is_in_the_reference_and_public(reference: dict[str, str]) -> None:
    assert [each for each in event_classes() if f"## {name_of(each)}\n" not in reference["events"]] == []
    assert {each.__name__ for each in event_classes()} == {*penstock.events.__all__} - {"Event"}


def test_every_method_of_an_app_is_in_the_reference_or_known_as_internal(reference: dict[str, str]) -> None:
    names = [name for name in dir(penstock.App) if not name.startswith("_")]
    assert [name for name in names if name not in INTERNAL and f"- **`{name}" not in reference["api"]] == []
    assert [name for name in INTERNAL if f"- **`{name}" in reference["api"]] == []


def test_every_option_setting_metric_and_header_is_in_the_reference(reference: dict[str, str]) -> None:
    assert [name for name in documented_options() if f"| `{name}` |" not in reference["options"]] == []
    assert [name for name in SETTINGS if f"| `{name}` |" not in reference["settings"]] == []
    assert [name for name in METRICS if f"| `{name}` |" not in reference["metrics"]] == []
    headers = [*DeadLetterHeader, *RetryHeader, *ReplayHeader]
    assert [name for name in headers if not re.search(rf"^\| `{name}` \| \w", reference["headers"], re.MULTILINE)] == []


def test_every_command_with_its_options_is_in_the_reference(reference: dict[str, str]) -> None:
    sections = dict(
        re.findall(r"^## (penstock[^\n]*)\n(.*?)(?=^## |\Z)", reference["commands"], re.MULTILINE | re.DOTALL)
    )
    assert len(commands()) >= 20
    for path, command in commands():
        flags = [flag for each in command.params for flag in each.opts if flag.startswith("--")]
        assert [flag for flag in flags if f"`{flag}`" not in sections[path]] == []


def test_every_class_of_error_and_every_message_is_in_the_reference(reference: dict[str, str]) -> None:
    assert [
        each for each in error_classes() if f"| `{each.__name__}` | {each.exit_code} |" not in reference["errors"]
    ] == []
    assert len(messages()) >= 200
    # One of each kind: by a class with hint=, and by a function that makes the error of a handler.
    assert "it consumes no topic." in reference["errors"]
    assert "is not running" in reference["errors"]


def test_every_question_quotes_a_message_that_exists_and_has_an_answer() -> None:
    text = (ROOT / "docs" / "faq.md").read_text("utf-8")
    questions = dict(re.findall(r"^### `([^\n]+)`\n\n(.+?)\n(?=\n#|\Z)", text, re.MULTILINE | re.DOTALL))
    assert len(questions) == len(re.findall(r"^### ", text, re.MULTILINE)) >= 20
    known = {each.problem for each in messages()}
    assert [question for question in questions if question not in known] == []
