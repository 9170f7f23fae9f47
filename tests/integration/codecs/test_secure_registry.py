"""A real schema registry behind TLS, which asks for certificates and a login."""

from pathlib import Path
from typing import Any

import pytest

from cli_helpers import Penstock
from kafka_helpers import MakeTopic, catch_up, of_kind, produce, read_values, running, wait_for
from penstock import App, Avro, Registry
from penstock.codecs import codec_of
from penstock.core.reports import events
from tls_servers import KEY_PASSWORD, Authority, tls_in_front_of

PASSWORD = "known to ann"
SCHEMA = {"type": "record", "name": "Customer", "fields": [{"name": "id", "type": "int"}]}


def test_avro_is_read_and_written_and_failed_connections_are_explained(
    brokers: str,
    registry: str,
    group: str,
    make_topic: MakeTopic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, out, authority = make_topic(), f"{group}.out", Authority(tmp_path)
    client = authority.sign("client", password=KEY_PASSWORD)
    written, _ = codec_of(
        Avro(SCHEMA, register=True), registry=Registry(url=registry), field="value", topic=source
    ).encode({"id": 7})
    produce(brokers, source, [written])
    with tls_in_front_of(registry, authority, user_info=f"ann:{PASSWORD}") as url:
        settings: dict[str, Any] = {
            "url": url,
            "basic.auth.user.info": f"ann:{PASSWORD}",
            "ssl.ca.location": str(authority.certificate),
            "ssl.certificate.location": str(client.certificate),
            "ssl.key.location": str(client.key),
            "ssl.key.password": KEY_PASSWORD,
        }

        def make_app(name: str, **changed: Any) -> App:
            app = App(name, registry={**settings, **changed})

            @app.consume(source, value=Avro(), to=out, to_value=Avro(SCHEMA, register=True))
            def keep(customer: dict[str, int]) -> dict[str, int]:
                return customer

            return app

        catch_up(make_app(group), brokers)
        assert len(read_values(brokers, out)) == 1

        lines = [f'{name.replace(".", "_")} = "{value}"' for name, value in settings.items()]
        (tmp_path / "penstock.toml").write_text("\n".join(["[registry]", *lines]))
        monkeypatch.chdir(tmp_path)
        shown = Penstock(brokers, monkeypatch, capsys)("tail", out, "--from-beginning", "--value-as", "avro")
        assert '"id": 7' in shown.out or '"id":7' in shown.out

        stranger = str(Authority(tmp_path, "stranger").certificate)
        wrong = {
            "certificate verify failed": {"ssl.ca.location": stranger},
            "who are you? (HTTP 401)": {"basic.auth.user.info": "ann:a wrong one"},
        }
        for number, (reason, changed) in enumerate(wrong.items()):
            with running(make_app(f"{group}-{number}", **changed), brokers) as run:
                (blocked, *_) = wait_for(lambda: of_kind(run.events, events.AwaitingDependency), "a blocked record")
            assert reason in blocked.reason
            for secret in (PASSWORD, KEY_PASSWORD, "a wrong one"):
                assert secret not in str(run.events)
