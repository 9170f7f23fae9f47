from pathlib import Path

import pytest

from penstock.jvm.ivy_failures import explain

UNKNOWN = """
:: problems summary ::
:::: WARNINGS
 module not found: org.example#tool;9.9.9
 ==== maven: tried
 https://mirror.example/org/example/tool/9.9.9/tool-9.9.9.pom
 :: UNRESOLVED DEPENDENCIES ::
 :: org.example#tool;9.9.9: not found
"""
REFUSED_CONNECTION = f"""{UNKNOWN}
:::: ERRORS
 HttpClientHandler: Connect to 127.0.0.1:9 failed: Connection refused url=http://127.0.0.1:9/tool-9.9.9.pom
"""
NO_SUCH_HOST = (
    f"{UNKNOWN}\n\tHttpClientHandler: nohost.invalid: Name or service not known url=http://nohost.invalid/x\n"
)
UNAVAILABLE = f"{UNKNOWN}\n\tSERVER ERROR: Service Unavailable url=http://mirror.example/tool-9.9.9.pom\n"
BAD_HASH = "\t\t[FAILED     ] org.example#tool;1!tool.jar: invalid sha1: expected=0000 computed=2d53 (25ms)\n"
BROKEN_OFF = (
    "\t\t[FAILED     ] org.example#tool;1!tool.jar: Premature end of Content-Length delimited message body "
    "(expected: 340,015; received: 170,007) (9ms)\n"
)
DISK_FULL = 'Exception in thread "main" java.io.IOException: No space left on device\n\tat java.base/java.io\n'


@pytest.mark.parametrize(
    ("output", "sentence", "passing"),
    [
        (UNKNOWN, "the Maven registry has no org.example:tool:9.9.9.", False),
        (
            REFUSED_CONNECTION,
            "the Maven registry is out of reach (Connect to 127.0.0.1:9 failed: Connection refused).",
            True,
        ),
        (NO_SUCH_HOST, "the Maven registry is out of reach (nohost.invalid: Name or service not known).", True),
        (UNAVAILABLE, "the Maven registry answered 'Service Unavailable'.", True),
        (BAD_HASH, "tool.jar arrived damaged (invalid sha1: expected=0000 computed=2d53).", True),
        (
            BROKEN_OFF,
            "(Premature end of Content-Length delimited message body (expected: 340,015; received: 170,007)).",
            True,
        ),
        ("Error: Could not find or load main class org.apache.ivy.Main\n", "Could not find or load main class", False),
        ("", "Ivy ended without a word.", False),
    ],
)
def test_says_the_one_thing_that_helps(output: str, sentence: str, *, passing: bool) -> None:
    failure = explain("Tool 1", output, cache=Path("/cache"))
    assert failure.error.problem.startswith("Cannot fetch Tool 1: ")
    assert sentence in failure.error.problem
    assert failure.passing is passing
    assert failure.error.hint


def test_a_full_disk_names_the_folder_and_how_to_move_it() -> None:
    failure = explain("Tool 1", DISK_FULL, cache=Path("/cache"))
    assert failure.error.problem == "The disk that holds /cache is full."
    assert "PENSTOCK_CACHE" in failure.error.hint
    assert not failure.passing


def test_a_password_in_the_mirrors_address_is_not_repeated() -> None:
    output = "\tHttpClientHandler: bad response from http://me:secret@mirror.example/x\n"
    assert "secret" not in str(explain("Tool 1", output, cache=Path("/cache")).error)
