"""Makes resources one after the other, and closes them in reverse order: on a thread, or in a task of an event loop."""

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from penstock.app.resources.resource import Resource, resource_error, wrong_yields
from penstock.errors import CallbackError


class OpenResources:
    """Resources of ``def`` functions. Only one thread at a time may call it.

    ``values`` has what was ``given`` and what was made, by name.
    """

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self.values: dict[str, Any] = dict(given or {})
        self._open: list[tuple[Resource, Generator[Any, None, None]]] = []

    def make(self, resources: Sequence[Resource]) -> None:
        """Make them in this order. If one raises, those before it are closed, and its error is raised."""
        for each in resources:
            try:
                self.values[each.name] = self._make(each)
            except BaseException as error:
                problem = error if isinstance(error, CallbackError) else resource_error(each, error)
                if (other := self.close()) is not None:
                    problem.add_note(str(other))
                raise problem from error

    def _make(self, resource: Resource) -> Any:
        made = resource.function(**_arguments(resource, self.values))
        if not resource.is_generator:
            return made
        try:
            value = next(made)
        except StopIteration:
            raise wrong_yields(resource, many=False) from None
        self._open.append((resource, made))
        return value

    def close(self) -> CallbackError | None:
        """Close all, also after an error. Returns the first error; the others are its notes."""
        problems = []
        while self._open:
            resource, generator = self._open.pop()
            try:
                next(generator)
            except StopIteration:
                continue
            except BaseException as error:  # noqa: BLE001 - returned
                problems.append(resource_error(resource, error, closing=True))
            else:
                with suppress(BaseException):
                    generator.close()
                problems.append(wrong_yields(resource, many=True))
        return _first(problems)


class AsyncResources:
    """Resources of ``def`` and ``async def`` functions that belong to one event loop.

    One task makes and closes them: what a resource enters, such as a task group, must be left in the same task. Call it
    on that event loop.
    """

    def __init__(self, resources: Sequence[Resource], given: Mapping[str, Any]) -> None:
        self.values: dict[str, Any] = dict(given)
        self._resources = resources
        self._open: list[tuple[Resource, Generator[Any, None, None] | AsyncGenerator[Any, None]]] = []
        self._made: asyncio.Event = asyncio.Event()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._making_failed: CallbackError | None = None
        self._closing_failed: CallbackError | None = None

    async def make(self) -> dict[str, Any]:
        """Make them, or return what was made. If one raises, those before it are closed, and its error is raised."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._hold())
        await self._made.wait()
        if self._making_failed is not None:
            raise self._making_failed
        return self.values

    async def close(self) -> CallbackError | None:
        """Close all, also after an error. Returns the first error; the others are its notes."""
        self._closing.set()
        if self._task is not None:
            await asyncio.wait([self._task])
        return self._closing_failed

    async def _hold(self) -> None:
        self._making_failed = await self._make_all()
        if self._making_failed is not None:
            if (other := await self._close_all()) is not None:
                self._making_failed.add_note(str(other))
            self._made.set()
            return
        self._made.set()
        # If this is cancelled, the loop ends without closing anything, as in a process that dies.
        await self._closing.wait()
        self._closing_failed = await self._close_all()

    async def _make_all(self) -> CallbackError | None:
        for each in self._resources:
            try:
                self.values[each.name] = await self._make(each)
            except BaseException as error:  # noqa: BLE001 - raised by make
                return error if isinstance(error, CallbackError) else resource_error(each, error)
        return None

    async def _make(self, resource: Resource) -> Any:
        made = resource.function(**_arguments(resource, self.values))
        if not resource.is_generator:
            return await made if resource.is_async else made
        try:
            value = await anext(made) if resource.is_async else next(made)
        except (StopIteration, StopAsyncIteration):
            raise wrong_yields(resource, many=False) from None
        self._open.append((resource, made))
        return value

    async def _close_all(self) -> CallbackError | None:
        problems = []
        while self._open:
            resource, generator = self._open.pop()
            try:
                if isinstance(generator, AsyncGenerator):
                    await anext(generator)
                else:
                    next(generator)
            except (StopIteration, StopAsyncIteration):
                continue
            except BaseException as error:  # noqa: BLE001 - returned
                problems.append(resource_error(resource, error, closing=True))
            else:
                with suppress(BaseException):
                    await generator.aclose() if isinstance(generator, AsyncGenerator) else generator.close()
                problems.append(wrong_yields(resource, many=True))
        return _first(problems)


def _arguments(resource: Resource, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in resource.needs}


def _first(problems: Sequence[CallbackError]) -> CallbackError | None:
    for other in problems[1:]:
        problems[0].add_note(str(other))
    return problems[0] if problems else None
