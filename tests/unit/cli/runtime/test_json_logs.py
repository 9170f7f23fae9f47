"""`--log json`: one object in each line, with the same fields and without secrets."""

import io
import json
import logging
import warnings
from typing import Any

import pytest

from penstock.cli.entry_point import main
from penstock.cli.runtime.json_logs import JsonLog, logging_as_json
from penstock.core.reports import events
from penstock.core.settings import known

WHERE: dict[str, Any] = {"group": "g", "member": "m", "topic": "t", "partition": 0, "offset": 5, "epoch": 1}


class Lines:
    def __init__(self, **settings: str) -> None:
        self._text = io.StringIO()
        known.remember_settings(settings)
        self.log = JsonLog(self._text)

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._text.getvalue().splitlines()]


def test_an_event_is_a_line_with_its_level_a_sentence_and_its_fields() -> None:
    lines = Lines()
    lines.log(events.Started(engine="local", group="g", handler="h", topics=("t",), lag=1_000))
    for attempt in range(9):
        lines.log(
            events.Retried(**WHERE, attempt=attempt, reason='E: a "quote"\nand a line', seconds=0.5, traceback="T\nE")
        )
    lines.log(events.Error(group="g", reason="It broke.", fatal=True))
    lines.log(events.Assigned(group="g", member="m", topic="t", partition=0, epoch=1, offset=3))
    started, *retried, broke, assigned = lines.read()
    assert all(list(line)[:4] == ["ts", "level", "event", "message"] for line in lines.read())
    assert started["message"] == "h: consuming t as group g on the local engine, up to 1,000 records behind"
    assert (started["level"], started["event"], started["lag"]) == ("info", "started", 1_000)
    assert [line["attempt"] for line in retried] == list(range(9))
    assert {line["level"] for line in retried} == {"warning"}
    assert {line["traceback"] for line in retried} == {"T\nE"}
    assert (broke["level"], broke["message"]) == ("error", "It broke.")
    assert (assigned["level"], assigned["message"], assigned["offset"]) == ("info", "assigned", 3)


def test_events_of_every_record_or_second_are_left_out() -> None:
    lines = Lines()
    lines.log(events.Finished(**WHERE, key=None, attempt=1))
    lines.log(events.Progressed(group="g", handler="h", read=1, written=1, dead_lettered=0, skipped=0))
    assert lines.read() == []


def test_log_lines_of_the_app_have_the_same_format() -> None:
    lines = Lines()
    logger, other = logging.getLogger("shop"), logging.StreamHandler(io.StringIO())
    logging.getLogger().addHandler(other)
    try:
        with logging_as_json(lines.log):
            logger.warning("%s is out", "paper")
            try:
                int("torn")
            except ValueError:
                logger.exception("no paper")
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.warn("old paper", stacklevel=1)
        assert other.stream.getvalue() == ""
    finally:
        logging.getLogger().removeHandler(other)
    out, no, old = lines.read()
    assert (out["event"], out["level"], out["logger"], out["message"]) == ("log", "warning", "shop", "paper is out")
    assert "ValueError: invalid literal" in no["exception"]
    assert "old paper" in old["message"]


def test_secrets_are_not_in_it() -> None:
    lines = Lines(**{"sasl.password": "hunter2-hunter2", "1.ssl.key.password": 'with "quotes"'})
    lines.log.caution("login with hunter2-hunter2 at https://user:pass@host failed")
    (line,) = lines.read()
    assert line["message"] == "login with *** at https://user:***@host failed"
    lines.log(events.Error(group="g", reason='a key with "quotes" in it', fatal=False))
    assert lines.read()[1]["reason"] == "a key *** in it"


def test_the_error_that_ends_a_command_is_a_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["penstock", "run", "nowhere:app", "--log", "json"])
    with pytest.raises(SystemExit) as ended:
        main()
    shown = capsys.readouterr()
    assert (ended.value.code, shown.out) == (2, "")
    line = json.loads(shown.err)
    assert (line["level"], line["event"], line["type"]) == ("error", "failed", "ConfigError")
    assert "nowhere" in line["message"]
    assert line["hint"]
