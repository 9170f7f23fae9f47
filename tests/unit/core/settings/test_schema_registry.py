"""Where a schema registry is, and how to log in to it."""

import pickle
from typing import Any

import pytest

from penstock import App, Registry
from penstock.core.settings import registry_of
from penstock.errors import ConfigError

SECRETS = {
    "basic.auth.user.info": "ann:hush-1",
    "ssl.key.password": "hush-2",
    "bearer.auth.token": "hush-3",
    "bearer.auth.client.secret": "hush-4",
}


@pytest.mark.parametrize(
    "given",
    [
        "http://registry:8081",
        {"url": "http://registry:8081"},
        {"schema.registry.url": "http://registry:8081"},
        Registry(url="http://registry:8081"),
    ],
)
def test_a_registry_is_given_as_a_url_a_mapping_or_itself(given: Any) -> None:
    assert registry_of(given) == Registry(url="http://registry:8081")
    assert App("shop", registry=given).registry == Registry(url="http://registry:8081")


def test_settings_reach_the_client_under_its_own_names_with_bounds_on_time() -> None:
    found = registry_of({"url": "https://r", **SECRETS, "ssl.ca.location": "/ca.pem"})
    assert found is not None
    settings = found.client_settings()
    assert settings.items() >= {"url": "https://r", **SECRETS, "ssl.ca.location": "/ca.pem"}.items()
    assert (settings["timeout"], settings["max.retries"]) == (5.0, 0)


def test_nothing_that_is_printed_shows_a_secret() -> None:
    found = registry_of({"url": "https://ann:hush-0@r", **SECRETS})
    assert found is not None
    app = App("shop", registry=found)

    @app.consume("orders")
    def handle(value: bytes) -> None: ...

    for text in (repr(found), str(found), repr(app), repr(app.handlers[0])):
        assert "hush" not in text
    assert "hush" not in found.scrubbed(f"401 for ann:hush-1 with hush-2 at {found.url}")
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("given", "problem", "hint"),
    [
        ({"url": "http://r", "basic.auth.userinfo": "a:b"}, "no setting 'basic.auth.userinfo'", "basic.auth.user.info"),
        ({"basic.auth.user.info": "a:hush"}, "has no URL", "a URL such as"),
        ("registry:8081", "has the URL 'registry:8081'", "a URL such as"),
        (7, "is a int", "a URL such as"),
        ({"url": "http://r", "cache.capacity": 0}, "cache_capacity=0", "1 or more"),
    ],
)
def test_a_value_that_names_no_registry_is_refused(given: Any, problem: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        registry_of(given)
    assert problem in caught.value.problem
    assert hint in caught.value.hint
    assert "hush" not in str(caught.value)
