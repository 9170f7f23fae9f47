"""The client of the schema registry, with all kinds of responses and with none."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from penstock import Avro, Registry
from penstock.codecs import codec_of
from penstock.codecs.registry_client import RegistryClient
from penstock.core.failures.outcome import DependencyUnavailable, Undecodable
from penstock.errors import ConfigError

SCHEMA = '{"type":"record","name":"Customer","fields":[{"name":"id","type":"int"}]}'
MISSING = (404, {"error_code": 40403, "message": "Schema not found"})


class Server(ThreadingHTTPServer):
    """Answers every request with ``answer``, and records the request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer: tuple[int, Any] = (200, {"schema": SCHEMA})
        self.asked: list[str] = []
        self.logins: set[str | None] = set()
        self.delay = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        time.sleep(self.server.delay)
        self.server.asked.append(self.path)
        self.server.logins.add(self.headers.get("Authorization"))
        status, body = self.server.answer
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


MakeDesk = Callable[[Registry], RegistryClient]


@pytest.fixture
def make_desk() -> Iterator[MakeDesk]:
    """Desks whose connections are closed again."""
    made: list[RegistryClient] = []

    def make(registry: Registry) -> RegistryClient:
        made.append(RegistryClient(registry))
        return made[-1]

    yield make
    for client in made:
        client._client.close()


@pytest.mark.parametrize(
    "answer",
    [
        (500, {"error_code": 50001, "message": "Error in the backend"}),
        (503, "<html>no server</html>"),
        (429, {"error_code": 429, "message": "too many"}),
        (401, {"error_code": 401, "message": "Unauthorized for hush"}),
        (403, {"error_code": 40301, "message": "Forbidden"}),
        (404, {"error_code": 404, "message": "HTTP 404 Not Found"}),
        (404, "<html>another server</html>"),
        (200, "<html>another server</html>"),
    ],
)
def test_errors_that_are_not_about_the_schema_are_waited_for(server: Server, make_desk: MakeDesk, answer: Any) -> None:
    client = make_desk(Registry(url=server.url, basic_auth_user_info="ann:hush", ssl_key_password=None))
    server.answer = answer
    with pytest.raises(DependencyUnavailable) as caught:
        client.schema(1)
    assert server.url in str(caught.value)
    assert "ann:hush" not in str(caught.value)
    asked = len(server.asked)
    with pytest.raises(DependencyUnavailable):
        client.schema(2)
    assert len(server.asked) == asked, "no requests during the pause"


@pytest.mark.parametrize(
    ("schema_id", "answer"),
    [
        (7, MISSING),
        (7, (422, {"error_code": 42201, "message": "no"})),
        (2**31, (404, {"error_code": 0, "message": "another type of number"})),
        ("12345678-1234-1234-1234-123456789012", (404, {"error_code": 0, "message": "no such resource"})),
    ],
)
def test_a_schema_that_it_does_not_have_is_the_record_s_fault_and_not_asked_for_again(
    server: Server, make_desk: MakeDesk, schema_id: Any, answer: Any
) -> None:
    client = make_desk(Registry(url=server.url))
    server.answer = answer
    for _ in range(3):
        with pytest.raises(Undecodable, match=f"{schema_id} is not in the registry at {server.url}"):
            client.schema(schema_id)
    assert len(server.asked) <= 1
    server.answer = (200, {"schema": SCHEMA})
    assert client.schema(8).schema_str == SCHEMA, "other threads do not wait"


def test_a_silent_registry_is_asked_again_after_growing_pauses(
    server: Server, make_desk: MakeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("penstock.codecs.registry_client.time.monotonic", lambda: now)
    client = make_desk(Registry(url=server.url))
    server.answer = (500, {})
    rests = []
    for _ in range(7):
        with pytest.raises(DependencyUnavailable) as caught:
            client.schema(1)
        rests.append(caught.value.seconds)
        now += caught.value.seconds
    assert rests == [0.5, 1, 2, 4, 8, 10, 10]
    assert len(server.asked) == 7
    server.answer = (200, {"schema": SCHEMA})
    assert client.schema(1).schema_str == SCHEMA
    server.answer = (500, {})
    with pytest.raises(DependencyUnavailable) as caught:
        client.schema(2)
    assert caught.value.seconds == 0.5


def test_while_one_caller_waits_for_a_silent_registry_the_others_get_the_same_error(
    server: Server, make_desk: MakeDesk
) -> None:
    server.delay = 30.0
    client = make_desk(Registry(url=server.url, timeout=0.5))
    reported: list[str] = []

    def ask() -> None:
        with pytest.raises(DependencyUnavailable) as caught:
            client.schema(1)
        reported.append(str(caught.value))

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reported) == 20
    assert all("cannot be asked: timed out" in each for each in reported)


def test_a_registry_port_without_a_listener_is_unavailable(make_desk: MakeDesk) -> None:
    client = make_desk(Registry(url="http://127.0.0.1:1"))
    with pytest.raises(DependencyUnavailable, match=r"cannot be asked: .*refused"):
        client.schema(1)


def test_each_schema_is_asked_for_once_with_the_login_that_was_given(server: Server) -> None:
    codec = codec_of(Avro(), registry=Registry(url=server.url, basic_auth_user_info="ann:hush"), field="value")
    for _ in range(5):
        assert codec.decode(b"\x00\x00\x00\x00\x07\x0e", None) == {"id": 7}
    assert server.asked == ["/schemas/ids/7"]
    assert server.logins == {"Basic YW5uOmh1c2g="}


def test_the_cache_of_schemas_has_a_limit(server: Server) -> None:
    codec: Any = codec_of(Avro(), registry=Registry(url=server.url, cache_capacity=10), field="value")
    for number in range(1, 100):
        codec.decode(b"\x00" + number.to_bytes(4, "big") + b"\x0e", None)
    assert len(codec._decoders) <= 10
    server.answer = MISSING
    for number in range(200, 300):
        with pytest.raises(Undecodable):
            codec.decode(b"\x00" + number.to_bytes(4, "big") + b"\x0e", None)
    assert len(codec._client._missing_until) <= 10


def test_writing_waits_until_the_schema_is_registered_and_does_not_register_it(server: Server) -> None:
    codec = codec_of(Avro(SCHEMA), registry=Registry(url=server.url, proxy=None), field="value", topic="out")
    server.answer = MISSING
    for _ in range(3):
        with pytest.raises(
            DependencyUnavailable, match="does not have the schema under the subject out-value: register it there"
        ):
            codec.get_ready()
    assert server.asked == ["/subjects/out-value?normalize=False&deleted=False"]


def test_a_schema_that_the_registry_refuses_is_reported(server: Server) -> None:
    codec = codec_of(Avro(SCHEMA, register=True), registry=Registry(url=server.url), field="value", topic="out")
    server.answer = (409, {"error_code": 409, "message": "Schema being registered is incompatible"})
    with pytest.raises(
        DependencyUnavailable, match="refuses the schema under the subject out-value: Schema being registered is incomp"
    ):
        codec.get_ready()


def test_settings_that_the_client_refuses_are_one_clear_error() -> None:
    with pytest.raises(ConfigError, match=r"The registry's client refuses its settings: .*certificate"):
        RegistryClient(Registry(url="https://r", ssl_key_location="/nowhere"))


def test_each_setting_is_one_of_the_client_s(make_desk: MakeDesk) -> None:
    make_desk(
        Registry(
            url="https://r",
            basic_auth_user_info="a:b",
            proxy="http://p",
            retries_wait_ms=1,
            retries_max_wait_ms=1,
            max_retries=1,
            bearer_auth_credentials_source="STATIC_TOKEN",
            bearer_auth_token="t",
            bearer_auth_logical_cluster="c",
            bearer_auth_identity_pool_id="p",
        )
    )
