"""Names, records and errors with control characters, and a check that a terminal shows them harmlessly."""

import io
import re

# Control characters that set the window's title, clear the screen, hide text and let it blink (also as one byte of C1),
# and reorder text; lines that look like Penstock's; markup of Rich with a link; an emoji code.
HOSTILE = (
    "x\x1b]0;owned\x07\x1b[2J\x1b[5;35mblink\x9b2J\u202ednE\u2066\u200b\u2028\x85"
    "\nerror: forged\rerror: overwritten\x08\x7f [red]red[/red] [link=http://evil.example]click[/link] :warning:"
)
# How a terminal must show its beginning.
SHOWN = "x\\x1b]0;owned\\x07\\x1b[2J"
# The same in JSON.
SHOWN_IN_JSON = "x\\u001b]0;owned\\u0007\\u001b[2J"

# Scripts for a browser, the end of an attribute, and characters that reorder text.
HOSTILE_HTML = "<script>window.hacked=1</script><img src=x onerror=window.hacked=1>\"'><b>\u202edne\u2066"
# How a page must show its end.
SHOWN_IN_HTML = "'><b>\\u202edne\\u2066"

# What Rich and the tables of Penstock write: colours, and the cursor movements of a progress bar.
_OURS = re.compile(r"\x1b\[(?!5;35m)[0-9;]*m|\x1b\[\?25[lh]|\x1b\[2K|\x1b\[1A|\r(?!error)")
_FORGED = re.compile(r"^error: (forged|overwritten)", re.MULTILINE)


class Terminal(io.StringIO):
    """A stream that claims to be a terminal. For a file, commands would omit colours and bars."""

    def isatty(self) -> bool:
        return True


def assert_harmless(text: str, what: object = "") -> None:
    """Check that the text contains only visible characters, line ends, and the sequences that Penstock writes."""
    rest = _OURS.sub("", text)
    bad = sorted({each for each in rest if each != "\n" and not each.isprintable()})
    assert not bad, f"{what}: {bad} in {text!r}"
    assert not _FORGED.search(rest), f"{what}: a line is forged in {text!r}"
    assert "⚠" not in rest, f"{what}: an emoji code was replaced in {text!r}"
