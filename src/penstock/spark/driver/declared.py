"""A handler, or one output of a pipeline, with everything that the engine needs to run and name it."""

from typing import Protocol


class Declared(Protocol):
    @property
    def kind(self) -> str:
        """The word for it in messages: ``handler`` or ``pipeline``."""
        ...

    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def topics(self) -> tuple[str, ...]: ...
    @property
    def source(self) -> str: ...
    @property
    def drain_timeout(self) -> float: ...
