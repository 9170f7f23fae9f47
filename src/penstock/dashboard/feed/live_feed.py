"""The feed: one channel for each topic that somebody looks at, shared by all viewers."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import suppress
from urllib.parse import parse_qsl
from uuid import uuid4

from penstock.dashboard.feed.feed_channel import FeedChannel
from penstock.dashboard.feed.feed_source import DashboardContext, MakeSource
from penstock.errors import ConfigError

# A topic is read on for so long after its last viewer has left: a reload, or a look at another page, finds it warm.
_LINGER_SECONDS = 5.0
_MAX_VIEWERS = 64
_MAX_TOPICS = 8
_MAX_VISIBLE = 400


class FeedViewer:
    """One connected page: which topics it follows, what it has seen, and which rows are on its screen."""

    def __init__(self) -> None:
        self.id = uuid4().hex
        self.wake = asyncio.Event()
        self.seen: dict[str, int | None] = {}
        self.visible: dict[str, frozenset[str]] = {}


class LiveFeed:
    """All methods are called on the thread of the event loop."""

    def __init__(self, makers: Mapping[str, MakeSource], context: DashboardContext) -> None:
        self._makers = makers
        self._context = context
        self._channels: dict[str, FeedChannel] = {}
        self._viewers: dict[str, FeedViewer] = {}
        self._ended = False

    def join(self, topics: Iterable[str]) -> FeedViewer:
        """Add a viewer. Raise a ConfigError for an unknown topic, a wrong parameter, or too many viewers.

        A topic is the name of a source with its parameters, as in ``group?name=shipping``.
        """
        wanted = list(dict.fromkeys(topics))
        if len(self._viewers) >= _MAX_VIEWERS or len(wanted) > _MAX_TOPICS:
            raise ConfigError("Too many pages are open.", hint=f"Close some: {_MAX_VIEWERS} can be open at a time.")
        viewer = FeedViewer()
        loop = asyncio.get_running_loop()
        # All are made before the first one starts: one of them may be refused.
        fresh = {topic: self._open(topic, loop) for topic in wanted if topic not in self._channels}
        for topic, channel in fresh.items():
            self._channels[topic] = channel
            channel.start()
        viewer.seen = dict.fromkeys(wanted)
        self._viewers[viewer.id] = viewer
        return viewer

    def leave(self, viewer: FeedViewer) -> None:
        self._viewers.pop(viewer.id, None)
        for topic in viewer.visible.keys() & self._channels.keys():
            self._channels[topic].look_at(self._visible(topic))
        asyncio.get_running_loop().call_later(_LINGER_SECONDS, self._close_unseen)

    def look(self, viewer_id: str, topic: str, keys: Iterable[str]) -> None:
        """Note which rows of a topic this viewer sees. An unknown viewer is one that has just left."""
        viewer = self._viewers.get(viewer_id)
        if viewer is not None and topic in viewer.seen and not self._ended:
            viewer.visible[topic] = frozenset(list(keys)[:_MAX_VISIBLE])
            self._channels[topic].look_at(self._visible(topic))

    async def messages(self, viewer: FeedViewer, *, at_least_every: float) -> AsyncIterator[list[bytes]]:
        """Yield messages as they come, or an empty list after so many seconds without one; ends with ``close``."""
        while not self._ended:
            viewer.wake.clear()
            found = [each for topic in viewer.seen for each in self._news(viewer, topic)]
            if found:
                yield found
                continue
            try:
                await asyncio.wait_for(viewer.wake.wait(), at_least_every)
            except TimeoutError:
                yield []

    def close(self) -> None:
        """End all channels and streams."""
        self._ended = True
        for channel in self._channels.values():
            channel.stop()
        self._channels.clear()
        self._wake_all()

    def _open(self, topic: str, loop: asyncio.AbstractEventLoop) -> FeedChannel:
        name, _, query = topic.partition("?")
        make = self._makers.get(name)
        if make is None:
            raise ConfigError(f"The feed has no topic {name!r}.", hint=f"It has {', '.join(sorted(self._makers))}.")
        source = make(self._context, dict(parse_qsl(query, keep_blank_values=True)))

        def changed() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(self._wake_all)

        return FeedChannel(topic, source, changed=changed, failed=self._context.connection.failed)

    def _news(self, viewer: FeedViewer, topic: str) -> list[bytes]:
        found, version = self._channels[topic].messages_after(viewer.seen[topic])
        viewer.seen[topic] = version if found or viewer.seen[topic] is not None else None
        return found

    def _visible(self, topic: str) -> frozenset[str]:
        return frozenset().union(*(each.visible.get(topic, frozenset()) for each in self._viewers.values()))

    def _close_unseen(self) -> None:
        followed = {topic for viewer in self._viewers.values() for topic in viewer.seen}
        for topic in [each for each in self._channels if each not in followed]:
            self._channels.pop(topic).stop()

    def _wake_all(self) -> None:
        for viewer in self._viewers.values():
            viewer.wake.set()
