"""Every piece of Python on a page works, also those that belong to no file and that no command runs."""

from pathlib import Path

import pytest

from docs_check import fragments
from docs_check.environment import DOCS, page_id
from docs_check.fragments import FragmentError, execute_fragments, fragments_of

PAGES = [page for page in DOCS if fragments_of(page)]


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_the_pieces_of_code_of_a_page_can_be_executed(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "secret")
    execute_fragments(page)


def test_most_pieces_are_executed() -> None:
    assert sum(len(fragments_of(page)) for page in PAGES) >= 50


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('```python\n@app.consume("a")\ndef f(x): ...\n\nnothing()\n```\n', "line 5: NameError: name 'nothing' is not"),
        ('```python\n@app.consume("a")\n@app.consume("a", batches=2)\n```\n', "line 3: ConfigError: .*batches"),
        ('```python\n@app.consume("a", workers="process", scale="cpu")\n```\n', "line 2: ConfigError: "),
        ("```python\nretry={TimeoutError: 3}\n```\n", "line 2: ConfigError: .*retry"),
        ('```python\nexpect={"id > 0": "delete"}\n```\n', "line 2: ConfigError: .*delete"),
        ("<!-- given\nx = y\n-->\n```python\nx\n```\n", "line 2: NameError: name 'y'"),
        ("```python\nx = 1\nx = = 1\n```\n", "line 3: SyntaxError"),
    ],
)
def test_a_piece_that_fails_is_an_error_with_its_page_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    monkeypatch.setattr(fragments, "page_id", lambda page: page.name)
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")
    with pytest.raises(FragmentError, match=f"^page.md, {problem}"):
        execute_fragments(page)


def test_each_piece_has_a_new_app_and_the_names_of_those_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragments, "page_id", lambda page: page.name)
    page = tmp_path / "page.md"
    handler = '```python\n@app.consume("orders")\ndef ship(order: Order) -> None: ...\n```\n'
    shown = "```python\nassert [each.name for each in app.handlers] == []\nassert ship\n```\n"
    not_run = "<!-- not run: it fails -->\n```python\nraise ValueError\n```\n"
    page.write_text(handler + handler + shown + not_run, "utf-8")
    execute_fragments(page)
    assert len(fragments_of(page)) == 3
