"""Readers copy the commands of the pages into their shell."""

import re

from docs_check.environment import DOCS, ROOT

PAGES = [ROOT / "README.md", *DOCS, *ROOT.glob("examples/*/README.md"), *ROOT.glob("deploy/**/*.md")]


def test_no_command_has_a_comment_which_zsh_would_pass_on_as_arguments() -> None:
    """In a terminal, zsh, the shell of macOS, has no comments unless its user has turned them on."""
    lines = [(page, line) for page in PAGES for line in page.read_text("utf-8").splitlines()]
    assert [(page.name, line) for page, line in lines if re.match(r"\s*\$ .*\s# ", line)] == []
