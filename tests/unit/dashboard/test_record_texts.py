"""Records as the browser gets them: whatever is in them, the page can show it."""

import json

import pytest

from penstock.core.records.record import Record
from penstock.dashboard.pages.record_texts import record_line, whole_record
from penstock.dashboard.server.web_app import _json
from penstock.ops.record_view import RecordDecoder

# JSON can name half of a character, which no text in UTF-8 contains.
HALF = rb'{"a": "half \ud83d"}'


@pytest.mark.parametrize("name", ["record_line", "whole_record"])
@pytest.mark.parametrize("data", [HALF, rb'["\ud83d", {"\ude00": 1}]', '{"a": "\u202eevil"}'.encode(), b"\xff", b""])
def test_every_record_becomes_an_answer(name: str, data: bytes) -> None:
    record = Record("orders", 0, 7, data, data, headers=(("h", data),))
    show = {"record_line": record_line, "whole_record": whole_record}[name]
    answer = json.loads(bytes(_json(show(record, RecordDecoder().see(record))).body))
    assert answer["offset"] == 7


def test_half_a_character_shows_as_json_names_it() -> None:
    record = Record("orders", 0, 7, None, HALF)
    text = whole_record(record, RecordDecoder().see(record))["value"]
    assert json.loads(text) == json.loads(HALF)
