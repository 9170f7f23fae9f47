"""Opens a dead letter in the user's editor before it is replayed."""

import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from penstock.core.failures.outcome import ProducerRecord
from penstock.core.text.readable_bytes import as_plain, readable
from penstock.errors import ConfigError
from penstock.ops.dead_letters import Letter
from penstock.ops.produce_records import encoded


def edit_letter(letter: Letter, outgoing: ProducerRecord) -> ProducerRecord:
    """Return the record with the edited key and value. If the user changes nothing, raise and replay nothing."""
    before = {"key": as_plain(readable(outgoing.key)), "value": as_plain(readable(outgoing.value))}
    shown = json.dumps(before, indent=2, ensure_ascii=False) + "\n"
    text = _edited(shown)
    if text == shown:
        raise ConfigError(f"You did not change {letter.record} in the editor.", hint="Nothing was replayed.")
    try:
        after = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"The edited text is not JSON: {error}.", hint="Nothing was replayed. Try again.") from error
    if not isinstance(after, dict) or set(after) != {"key", "value"}:
        raise ConfigError(
            "The edited text does not have exactly the names key and value.",
            hint="Nothing was replayed. Keep both names.",
        )
    key = outgoing.key if after["key"] == before["key"] else _bytes(after["key"])
    value = outgoing.value if after["value"] == before["value"] else _bytes(after["value"])
    return ProducerRecord(outgoing.topic, key, value, outgoing.headers)


def _edited(text: str) -> str:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "letter.json")
        file.write_text(text, "utf-8")
        try:
            subprocess.run([*shlex.split(editor), str(file)], check=True)
            return file.read_text("utf-8")
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            raise ConfigError(
                f"The editor {editor!r} failed: {error}.", hint="Nothing was replayed. Set EDITOR to another editor."
            ) from error


def _bytes(value: Any) -> bytes | None:
    try:
        return encoded(value)
    except ValueError as error:
        raise ConfigError(
            f"The value of hex is not hexadecimal: {error}.", hint="Nothing was replayed. Try again."
        ) from error
