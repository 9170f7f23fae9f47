"""Examples in the help of commands fit the terminal, and can be copied from it."""

from penstock.cli.console.help_layout import examples_within

EXAMPLES = """
[bold]Examples[/]

  penstock stop                    list the runs on this machine
  penstock stop shop               stop the app shop, or every run in the group shop
  penstock produce orders --generate 100000 --key 'c-$n' --value '{"n": $n, "at": $now}'
"""


def test_in_a_wide_terminal_examples_stay_as_they_are() -> None:
    assert examples_within(EXAMPLES, 100) == EXAMPLES


def test_a_purpose_is_broken_in_its_own_column_and_a_command_between_words_with_a_backslash() -> None:
    assert examples_within(EXAMPLES, 70).splitlines()[3:] == [
        "  penstock stop                    list the runs on this machine",
        "  penstock stop shop               stop the app shop, or every run in",
        "                                   the group shop",
        "  penstock produce orders --generate 100000 --key 'c-$n' \\",
        """      --value '{"n": $n, "at": $now}'""",
    ]


def test_with_little_room_a_purpose_is_below_its_command() -> None:
    assert examples_within(EXAMPLES, 50).splitlines()[5:8] == [
        "  penstock stop shop",
        "      stop the app shop, or every run in the group",
        "      shop",
    ]
