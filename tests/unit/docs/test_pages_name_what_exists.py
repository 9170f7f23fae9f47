"""Options, flags and events that the pages name exist, and those that exist are named."""

import re
from collections.abc import Iterator
from typing import Any

import typer.main

from docs_check.environment import DOCS, ROOT
from penstock.app.config.option_table import handler_options
from penstock.cli.entry_point import command_line
from penstock.core.reports import events

PAGES = [ROOT / "README.md", *DOCS]
RUNNING = (ROOT / "docs" / "running.md").read_text("utf-8")
# Of spark-submit, and of Kafka's own tool.
OTHERS = {"--packages", "--py-files", "--deploy-mode", "--archives", "--conf", "--reset-offsets"}


def flags_of(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    for inner in getattr(command, "commands", {}).values():
        yield from flags_of(inner)


def test_every_flag_on_a_page_is_one_of_a_command() -> None:
    known = {*flags_of(typer.main.get_command(command_line())), *OTHERS}
    named = {
        (page.name, flag) for page in PAGES for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", page.read_text("utf-8"))
    }
    assert {(page, flag) for page, flag in named if flag not in known} == set()


def test_every_option_of_a_handler_stands_in_the_table_once() -> None:
    options = {*handler_options(), "settings"} - {"topics"}
    table = RUNNING[RUNNING.index("## Options of a handler") : RUNNING.index("## Batches")]
    first_columns = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)`", " ".join(first_columns))) == sorted(options)


def test_every_event_is_listed() -> None:
    kinds = [each for each in vars(events).values() if isinstance(each, type) and issubclass(each, events.Event)]
    names = {re.sub(r"(?<!^)(?=[A-Z])", "_", each.__name__).lower() for each in kinds if not each.__subclasses__()}
    listed = set(re.findall(r"`([a-z_]+)`", RUNNING[RUNNING.index("## Events") :]))
    assert names <= listed
