"""Who gets into the dashboard: only the browser that opened the printed link, from the dashboard's own page."""

from collections.abc import Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient

from hostile_text import HOSTILE
from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.dashboard.feed.feed_source import DashboardContext
from penstock.dashboard.pages import PAGES
from penstock.dashboard.pages.page_contract import DashboardPage, Endpoint
from penstock.dashboard.server import web_app
from penstock.dashboard.server.web_guard import Door
from penstock.errors import ConfigError
from penstock.kafka import Cluster

OWN = "http://127.0.0.1:8000"
DOOR = Door("127.0.0.1", 8000)


def _answer(_context: DashboardContext, given: Mapping[str, Any]) -> Any:
    if "wrong" in given:
        raise ConfigError(HOSTILE, hint="do this")
    return {"given": given}


def _fail(_context: DashboardContext, _given: Mapping[str, Any]) -> Any:
    raise ZeroDivisionError(HOSTILE)


def _change(context: DashboardContext, given: Mapping[str, Any]) -> Any:
    context.note(f"changed {given['what']}")
    return {}


TRIAL = DashboardPage(
    "trial",
    endpoints=(
        Endpoint("read", _answer),
        Endpoint("bug", _fail),
        Endpoint("plan", _answer, posts=True),
        Endpoint("go", _change, writes=True),
    ),
)


def _no_cluster() -> Cluster:
    raise AssertionError("no request of these tests needs Kafka")


def browser(
    monkeypatch: pytest.MonkeyPatch, *, door: Door = DOOR, writes: bool = False, notes: list[str] | None = None
) -> TestClient:
    monkeypatch.setattr(web_app, "PAGES", (*PAGES, TRIAL))
    context = DashboardContext(ClusterConnection(_no_cluster), writes, (notes if notes is not None else []).append)
    made, _ = web_app.make_web_app(context, door)
    return TestClient(made, base_url=OWN, follow_redirects=False)


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> TestClient:
    return browser(monkeypatch)


def signed_in(client: TestClient, door: Door = DOOR) -> TestClient:
    answer = client.get("/sign-in", params={"token": door.keys.token})
    assert answer.status_code == 303
    return client


def test_without_the_token_there_is_a_page_that_says_what_to_open(stranger: TestClient) -> None:
    answer = stranger.get("/")
    assert answer.status_code == 401
    assert "penstock ui" in answer.text
    assert "<script" not in answer.text


@pytest.mark.parametrize("path", ["/api/about", "/api/feed?topic=apps", "/api/trial/read", "/nothing"])
def test_without_the_cookie_nothing_is_answered(stranger: TestClient, path: str) -> None:
    assert stranger.get(path).status_code == 401


def test_a_wrong_token_opens_nothing(stranger: TestClient) -> None:
    answer = stranger.get("/sign-in", params={"token": DOOR.keys.token + "x"})
    assert "set-cookie" not in answer.headers
    assert stranger.get("/api/about").status_code == 401


def test_the_token_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(stranger: TestClient) -> None:
    answer = stranger.get("/sign-in", params={"token": DOOR.keys.token})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert DOOR.keys.token not in answer.headers["location"]
    assert DOOR.keys.token.lower() not in cookie
    assert stranger.get("/api/about").status_code == 200


def test_a_link_of_another_place_signs_in_with_a_page_of_its_own(stranger: TestClient) -> None:
    """Browsers send no strict cookie along a redirect that another place, such as the launch file, has begun."""
    headers = {"sec-fetch-site": "cross-site"}
    answer = stranger.get("/sign-in", params={"token": DOOR.keys.token}, headers=headers)
    assert answer.status_code == 200
    assert 'content="0; url=/"' in answer.text
    assert DOOR.keys.token not in answer.text
    assert stranger.get("/api/about").status_code == 200
    refused = stranger.get("/sign-in", params={"token": "x"}, headers=headers)
    assert (refused.status_code, "set-cookie" in refused.headers) == (303, False)


@pytest.mark.parametrize(
    "host", ["evil.example:8000", "evil.example", "127.0.0.1:8001", "", "localhost.evil.example:8000"]
)
def test_another_host_name_is_refused_even_with_the_cookie(stranger: TestClient, host: str) -> None:
    assert signed_in(stranger).get("/api/about", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "[::1]:8000"])
def test_the_names_of_loopback_are_its_own(stranger: TestClient, host: str) -> None:
    assert stranger.get("/static/theme.css", headers={"host": host}).status_code == 200


def test_any_address_of_loopback_can_be_the_dashboards() -> None:
    door = Door("127.0.0.2", 8000)
    assert door.admits_host("127.0.0.2:8000")
    assert not door.admits_host("192.0.2.7:8000")


def test_a_dashboard_for_other_machines_takes_addresses_and_its_names_but_no_others() -> None:
    door = Door("0.0.0.0", 8000, names=frozenset({"box.lan"}))
    assert door.admits_host("192.0.2.7:8000")
    assert door.admits_host("box.lan:8000")
    assert not door.admits_host("evil.example:8000")


@pytest.mark.parametrize(
    "headers",
    [{"origin": "http://evil.example"}, {"origin": "null"}, {}, {"origin": "http://localhost:8000"}],
)
def test_a_post_from_another_page_is_refused(stranger: TestClient, headers: dict[str, str]) -> None:
    assert signed_in(stranger).post("/api/trial/plan", json={}, headers=headers).status_code == 403


def test_a_read_from_another_page_is_refused(stranger: TestClient) -> None:
    signed_in(stranger)
    assert stranger.get("/api/about", headers={"origin": "http://evil.example"}).status_code == 403
    assert stranger.get("/api/about", headers={"sec-fetch-site": "cross-site"}).status_code == 403


def test_a_page_on_another_port_of_this_machine_is_another_page(stranger: TestClient) -> None:
    """Its requests have the cookie: for browsers, all ports of a host are one site."""
    headers = {"sec-fetch-site": "same-site"}
    assert signed_in(stranger).get("/api/trial/read", headers=headers).status_code == 403


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_a_read_of_the_own_page_or_by_hand_is_answered(stranger: TestClient, site: str) -> None:
    assert signed_in(stranger).get("/api/trial/read", headers={"sec-fetch-site": site}).status_code == 200


@pytest.mark.parametrize("other", ['prefs={"a": 1}', "odd", 'open="', "ü=1"])
def test_a_cookie_of_another_server_on_this_machine_does_not_hide_the_own_one(other: str) -> None:
    """Browsers send the cookies of all ports, and other servers write what they want."""
    assert DOOR.admits_cookie(f"{other}; {DOOR.cookie}={DOOR.keys.session}")
    assert DOOR.admits_cookie(f"{DOOR.cookie}={DOOR.keys.session}; {other}")
    assert not DOOR.admits_cookie(f"{other}; {DOOR.cookie}=x")


def test_a_post_of_the_own_page_is_answered(stranger: TestClient) -> None:
    answer = signed_in(stranger).post("/api/trial/plan", json={"a": 1}, headers={"origin": OWN})
    assert answer.json() == {"given": {"a": 1}}


def test_a_write_is_refused_unless_writes_are_allowed_and_logged_then(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    refused = signed_in(browser(monkeypatch, notes=notes)).post(
        "/api/trial/go", json={"what": "x"}, headers={"origin": OWN}
    )
    assert refused.status_code == 403
    assert "--allow-writes" in refused.text
    assert notes == []
    client = signed_in(browser(monkeypatch, writes=True, notes=notes))
    assert client.post("/api/trial/go", json={"what": "x"}, headers={"origin": OWN}).status_code == 200
    assert notes == ["changed x"]


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/about", "/nothing"])
def test_every_answer_has_a_strict_content_security_policy(stranger: TestClient, path: str) -> None:
    for client in (stranger, signed_in(stranger)):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_the_page_has_no_script_or_style_of_its_own(stranger: TestClient) -> None:
    page = signed_in(stranger).get("/").text
    assert "<style" not in page
    assert " style=" not in page
    assert "<script>" not in page
    assert "http://" not in page
    assert "https://" not in page


def test_an_error_with_hostile_text_is_json(stranger: TestClient) -> None:
    answer = signed_in(stranger).get("/api/trial/read", params={"wrong": 1})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["error"] == {"problem": HOSTILE, "hint": "do this"}


def test_a_bug_of_an_endpoint_is_an_answer_that_says_so(stranger: TestClient) -> None:
    """Otherwise its traceback would come to the terminal, and nothing to the page."""
    answer = signed_in(stranger).get("/api/trial/bug")
    assert answer.status_code == 500
    assert answer.json()["error"]["problem"] == f"This page has a bug: ZeroDivisionError: {HOSTILE}"


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"x" * 1_000_001, b"[" * 200_000, b"\xff", b'{"a": ' + b"9" * 5_000 + b"}"]
)
def test_a_body_that_is_no_json_object_gets_one_clear_error(stranger: TestClient, body: bytes) -> None:
    answer = signed_in(stranger).post("/api/trial/plan", content=body, headers={"origin": OWN})
    assert answer.status_code == 400
    assert answer.json()["error"]["problem"].startswith("The request is")


def test_files_outside_of_the_static_folder_are_not_served(stranger: TestClient) -> None:
    for path in ("/static/../server/web_guard.py", "/static/%2e%2e/server/web_guard.py"):
        assert "WebGuard" not in signed_in(stranger).get(path).text
