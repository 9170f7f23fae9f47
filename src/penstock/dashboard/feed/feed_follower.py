"""Follows topics of the feed in this process, without a web server: for views in a terminal."""

import threading
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import parse_qsl, quote, urlencode

from penstock.dashboard.feed.feed_channel import ChannelState, FeedChannel
from penstock.dashboard.feed.feed_source import DashboardContext, MakeSource


def topic_of(topic: str, /, **parameters: str) -> str:
    """Return a topic with its parameters, such as ``group?name=shipping``."""
    return f"{topic}?{urlencode(parameters, quote_via=quote)}" if parameters else topic


class FeedFollower:
    """Keeps a channel for each topic that is followed. Its methods may be called from any thread."""

    def __init__(
        self, makers: Mapping[str, MakeSource], context: DashboardContext, changed: Callable[[], None]
    ) -> None:
        self._makers = makers
        self._context = context
        self._changed = changed
        self._lock = threading.Lock()
        self._channels: dict[str, FeedChannel] = {}

    def follow(self, topics: Iterable[str]) -> None:
        """Follow these topics, and no others."""
        wanted = set(topics)
        with self._lock:
            for topic in self._channels.keys() - wanted:
                self._channels.pop(topic).stop()
            for topic in wanted - self._channels.keys():
                name, _, query = topic.partition("?")
                source = self._makers[name](self._context, dict(parse_qsl(query, keep_blank_values=True)))
                self._channels[topic] = FeedChannel(
                    topic, source, changed=self._changed, failed=self._context.connection.failed
                )
                self._channels[topic].start()

    def state(self, topic: str) -> ChannelState:
        """Return the rows of a topic now; none if it is not followed."""
        with self._lock:
            channel = self._channels.get(topic)
        return ChannelState({}, None, 0) if channel is None else channel.state()

    def look(self, topic: str, keys: Iterable[str]) -> None:
        """Say which rows are on the screen: some figures are read only for them."""
        with self._lock:
            channel = self._channels.get(topic)
        if channel is not None:
            channel.look_at(frozenset(keys))

    def close(self) -> None:
        self.follow(())
