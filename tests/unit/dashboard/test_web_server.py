"""The link that is printed leads to the dashboard, whatever it listens on."""

import socket
import urllib.request
from urllib.parse import urlsplit

import pytest

from penstock.dashboard import DashboardOptions, serve_dashboard
from penstock.errors import SetupError
from penstock.kafka import Cluster

_WAIT = 60


def _no_cluster() -> Cluster:
    raise AssertionError("no test here needs Kafka")


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2", "0.0.0.0", "::1", "::"])
def test_the_printed_link_signs_in(host: str) -> None:
    if ":" in host and not _has_ipv6():
        pytest.skip("this machine has no IPv6")
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with (
        serve_dashboard(DashboardOptions(host), connect=_no_cluster, note=print) as served,
        browser.open(served.url, timeout=_WAIT) as answer,
    ):
        assert (answer.status, urlsplit(answer.url).path) == (200, "/")
        assert b"static/main.js" in answer.read()


def test_no_host_is_refused() -> None:
    """For the system, it would be every address."""
    with (
        pytest.raises(SetupError, match="no address"),
        serve_dashboard(DashboardOptions(""), connect=_no_cluster, note=print),
    ):
        raise AssertionError
