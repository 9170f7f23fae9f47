"""The dashboard: a local web page for the groups of a cluster, and for running apps.

``feed`` reads what connected pages look at and sends them what changed; ``child`` is the process that reads. ``pages``
has one module for each page, ``server`` the web server and its security, ``static`` what the browser loads. ``penstock
top`` follows the same feed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.dashboard.child.dashboard_child import DashboardChild
from penstock.dashboard.feed.cluster_connection import ClusterConnection
from penstock.dashboard.feed.feed_channel import ChannelState
from penstock.dashboard.feed.feed_follower import FeedFollower, topic_of
from penstock.dashboard.feed.feed_source import DashboardContext
from penstock.dashboard.server import DashboardOptions, opened_in_browser, serve_dashboard
from penstock.kafka.admin.cluster import Cluster

__all__ = [
    "ChannelState",
    "DashboardChild",
    "DashboardOptions",
    "FeedFollower",
    "follow_feed",
    "opened_in_browser",
    "serve_dashboard",
    "topic_of",
]


@contextmanager
def follow_feed(
    connect: Callable[[], Cluster], changed: Callable[[], None]
) -> Iterator[tuple[FeedFollower, DashboardChild]]:
    """Follow the feed of all pages for the block, and yield also the child process that reads it.

    ``connect`` is pickled. ``changed`` is called on threads of the feed.
    """
    context = DashboardContext(ClusterConnection(connect), allow_writes=False, note=lambda _line: None)
    child = DashboardChild(connect, note=context.note)
    feed = FeedFollower(child.makers(), context, changed)
    try:
        yield feed, child
    finally:
        feed.close()
        child.close()
