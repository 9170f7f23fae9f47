"""No process writes a secret that it was given.

Each source gets a unique secret, and the test searches all outputs for them.
"""

import json
import os
import stat
from pathlib import Path
from uuid import uuid4

import pytest

from cli_helpers import Penstock
from kafka_helpers import MakeTopic, produce, read_records

_APP = """
import os
from penstock import App, Reject

app = App(
    {group!r},
    brokers={brokers!r},
    settings={{"ssl.key.password": "canary-of-code"}},
    registry={{"url": "http://localhost:1", "basic.auth.user.info": "ann:canary-of-registry"}},
)

@app.consume({topic!r}, dead_letter={dlq!r}, order="key", settings={{"ssl.keystore.password": "canary-of-handler"}})
def leak(value: bytes) -> None:
    raise Reject(
        "refused: canary-of-code canary-of-handler canary-of-registry canary-of-file canary-of-env canary-of-flag "
        "postgresql://ann:canary-of-url@db/shop"
    )
"""


@pytest.mark.parametrize("log", ["text", "json"])
def test_a_canary_from_every_source_is_in_no_output(
    log: str,
    penstock: Penstock,
    brokers: str,
    group: str,
    make_topic: MakeTopic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, home, module = make_topic(1), tmp_path / "home", f"leak_{uuid4().hex[:8]}"
    dlq = f"{topic}.dlq"
    home.mkdir(mode=0o755)
    (home / "audit").mkdir(mode=0o755)
    produce(brokers, topic, ["a", "b"])
    source = _APP.format(group=group, brokers=brokers, topic=topic, dlq=dlq)
    (tmp_path / f"{module}.py").write_text(source, "utf-8")
    config = tmp_path / "penstock.toml"
    config.write_text('[settings]\nsasl.oauthbearer.client.secret = "canary-of-file"\n', "utf-8")
    events = tmp_path / "events.jsonl"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PENSTOCK_HOME", str(home))
    monkeypatch.setenv("PENSTOCK_SETTINGS_SSL_KEYSTORE_PASSWORD", "canary-of-env")
    before = os.umask(0)
    try:
        flags = ("--config", str(config), "--set", "settings.sasl.password=canary-of-flag")
        shown = [penstock("run", f"{module}:app", "--until-caught-up", "--log", log, "--events", str(events), *flags)]
        shown.append(penstock("run", f"{module}:app", "--print-config", *flags))
        to_cluster = ("--config", str(config), "--set", "sasl.password=canary-of-flag")
        for command in (("dlq", "ls", dlq), ("dlq", "show", dlq), ("tail", dlq), ("groups", "describe", group)):
            shown += [penstock(*command, *to_cluster), penstock(*command, *to_cluster, "--json")]
        shown.append(penstock("dlq", "replay", dlq, "--execute", "--yes", *to_cluster))
        shown.append(penstock("stop"))
    finally:
        os.umask(before)
    written = [events, *(each for each in home.rglob("*") if each.is_file())]
    outputs = {
        "terminal": "".join(each.out + each.err for each in shown),
        **{str(each.relative_to(tmp_path)): each.read_text("utf-8") for each in written},
        "records": repr(read_records(brokers, dlq) + read_records(brokers, topic)),
    }
    assert {name for name, text in outputs.items() if "canary-of" in text} == set()
    for name in ("terminal", "events.jsonl", "records"):
        assert "refused: *** *** *** *** *** *** postgresql://ann:***@db/shop" in outputs[name], name
    (audit,) = (home / "audit").iterdir()
    lines = [json.loads(line) for line in audit.read_text("utf-8").splitlines()]
    assert all(line["command"].endswith("--set 'sasl.password=***'") for line in lines)
    modes = {stat.S_IMODE(each.stat().st_mode) for each in (home, *home.rglob("*")) if each.is_dir()}
    assert modes == {0o700}
    assert {stat.S_IMODE(each.stat().st_mode) for each in home.rglob("*") if each.is_file()} == {0o600}
