"""The dashboard: a local web page for the groups of a cluster, and for running apps.

``feed`` reads what connected pages look at and sends them what changed. ``pages`` has one module for each page,
``server`` the web server and its security, ``static`` what the browser loads. ``penstock top`` follows the same feed.
"""

from collections.abc import Callable

from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.dashboard.feed.feed_channel import ChannelState
from penstock.dashboard.feed.feed_follower import FeedFollower, topic_of
from penstock.dashboard.feed.feed_source import DashboardContext
from penstock.dashboard.pages import PAGES
from penstock.dashboard.server import DashboardOptions, serve_dashboard

__all__ = [
    "ChannelState",
    "ClusterConnection",
    "DashboardOptions",
    "FeedFollower",
    "follow_feed",
    "serve_dashboard",
    "topic_of",
]


def follow_feed(connection: ClusterConnection, changed: Callable[[], None]) -> FeedFollower:
    """Follow the feed of all pages in this process. ``changed`` is called on threads of the feed."""
    context = DashboardContext(connection, allow_writes=False, note=lambda _line: None)
    return FeedFollower({name: make for page in PAGES for name, make in page.sources.items()}, context, changed)
