"""What the engine has to know of a declaration to run it: of a handler, or of one output of a pipeline."""

from typing import Protocol


class Declared(Protocol):
    @property
    def kind(self) -> str:
        """What sentences call it: a handler, or a pipeline."""
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
