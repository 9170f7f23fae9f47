"""How the check of the docs reads a page."""

from pathlib import Path

import pytest

from docs_check.pages import Command, File, Fragment, Given, NotRun, steps_of
from docs_check.reader import _is_printed, _ready_line

PAGE = """# A page
<!-- before
$ penstock up
-->
<!-- file given.py
GIVEN = 1
-->

```python
# shop.py
app = 1
```
```console
$ penstock run shop:app \\
    --until-caught-up
stopped: 1,000 read in 2.0 s
$ penstock down    # the end
```

1. In a list:
   <!-- not run: needs YARN -->
   ```console
   $ spark-submit
   ```
```python
@app.consume("orders")     # topics
```
"""


def steps(tmp_path: Path, text: str) -> list[object]:
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")
    return [*steps_of(page)]


def test_a_page_is_files_and_commands_in_their_order(tmp_path: Path) -> None:
    assert steps(tmp_path, PAGE) == [
        Command(3, "penstock up"),
        File("given.py", "GIVEN = 1\n"),
        File("shop.py", "# shop.py\napp = 1\n"),
        Command(14, "penstock run shop:app \\\n    --until-caught-up", ("stopped: 1,000 read in 2.0 s",)),
        Command(17, "penstock down    # the end"),
        NotRun(23, "needs YARN"),
        Fragment(26, '@app.consume("orders")     # topics\n'),
    ]


def test_code_that_is_not_run_says_why_and_is_python_all_the_same(tmp_path: Path) -> None:
    text = "<!-- not run: code of another library -->\n```python\nloop()\n```\n"
    assert steps(tmp_path, text) == [NotRun(3, "code of another library"), Fragment(3, "loop()\n")]


def test_a_file_that_has_no_comments_has_its_name_above(tmp_path: Path) -> None:
    text = "<!-- saved as group.json -->\n```json\n{}\n```\n"
    assert steps(tmp_path, text) == [File("group.json", "{}\n")]


def test_a_decorator_that_is_shown_alone_gets_a_function() -> None:
    alone = Fragment(7, '@app.consume("a")  # topics\n@app.consume(\n    "b",\n)\n')
    assert alone.lines == [
        (7, '@app.consume("a")  # topics'),
        (7, "def example(value): ..."),
        (7, "app = another_app()"),
        (8, "@app.consume("),
        (9, '    "b",'),
        (10, ")"),
        (10, "def example(value): ..."),
        (10, "app = another_app()"),
    ]
    for complete in ("@app.consume()\ndef ship(): ...\n", "@a()\n@b()\nasync def ship(): ...\n", "f(\n)\n"):
        assert Fragment(1, complete).whole == complete


def test_code_that_a_piece_takes_for_granted(tmp_path: Path) -> None:
    text = "<!-- given\nclass Order: ...\n-->\n```python\nOrder()\n```\n"
    assert steps(tmp_path, text) == [Given(2, "class Order: ...\n"), Fragment(5, "Order()\n")]


def test_commands_in_a_block_of_no_language_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="line 2: a block with commands"):
        steps(tmp_path, "```\n$ penstock up\n```\n")


@pytest.mark.parametrize(
    ("line", "is_there"),
    [
        ("stopped: 1,000 read in 2.0 s", True),
        ("stopped:   7 read in 1 s", True),
        ("...", True),
        ("runs for 20s", True),
        ("stopped: ... read", True),
        ("stopped: 1,000 written", False),
    ],
)
def test_output_is_compared_by_its_shape(line: str, *, is_there: bool) -> None:
    assert _is_printed(line, "x\nruns for 3m 20s\nstopped: 12 read in 0.4 s\n") == is_there


@pytest.mark.parametrize(
    ("command", "goes_on"),
    [
        ("penstock run shop:app", True),
        ("penstock run shop:app --reload    # while you develop", True),
        ("penstock run shop:app --until-caught-up", False),
        ("penstock ui --open", True),
        ("penstock up", False),
    ],
)
def test_a_run_without_an_end_is_interrupted(command: str, *, goes_on: bool) -> None:
    assert (_ready_line(command) is not None) == goes_on
