"""Names, records and errors with control characters, and a check that a terminal shows them harmlessly."""

import io
import re

# Sets the window's title, clears the screen, hides and blinks, in one byte of C1 too; reorders; forges lines of ours;
# markup of Rich, with a link; an emoji code.
HOSTILE = (
    "x\x1b]0;owned\x07\x1b[2J\x1b[5;35mblink\x9b2J\u202ednE\u2066\u200b\u2028\x85"
    "\nerror: forged\rerror: overwritten\x08\x7f [red]red[/red] [link=http://evil.example]click[/link] :warning:"
)
# The beginning, as it is to be seen.
SHOWN = "x\\x1b]0;owned\\x07\\x1b[2J"
# In JSON.
SHOWN_IN_JSON = "x\\u001b]0;owned\\u0007\\u001b[2J"

# What Rich and our tables write: colours, and the moves of a live bar.
_OURS = re.compile(r"\x1b\[(?!5;35m)[0-9;]*m|\x1b\[\?25[lh]|\x1b\[2K|\x1b\[1A|\r(?!error)")
_FORGED = re.compile(r"^error: (forged|overwritten)", re.MULTILINE)


class Terminal(io.StringIO):
    """A stream that says it is one, so that nothing is left out or stripped as it is for files."""

    def isatty(self) -> bool:
        return True


def assert_harmless(text: str, what: object = "") -> None:
    """No character in it but what is plainly visible, line ends, and sequences of our own."""
    rest = _OURS.sub("", text)
    bad = sorted({each for each in rest if each != "\n" and not each.isprintable()})
    assert not bad, f"{what}: {bad} in {text!r}"
    assert not _FORGED.search(rest), f"{what}: a line is forged in {text!r}"
    assert "⚠" not in rest, f"{what}: an emoji code was obeyed in {text!r}"
