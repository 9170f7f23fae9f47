"""Tells a pausing breaker what has succeeded, and reports when it opens and closes. Both engines use it."""

from collections.abc import Callable

from penstock.app.attempts.work import Work
from penstock.app.dispatching.reporter import Reporter
from penstock.core.failures.breaker import Circuit
from penstock.core.failures.pausing_circuit import PausingCircuit


class BreakerWatch:
    """The thread that hands out records owns it; other threads call ``problem``. Other breakers are ignored."""

    def __init__(self, circuit: Circuit | None, reporter: Reporter, clock: Callable[[], float]) -> None:
        self._circuit = circuit if isinstance(circuit, PausingCircuit) else None
        self._reporter = reporter
        self._clock = clock
        self._was_open = self.is_open

    @property
    def is_open(self) -> bool:
        return self._circuit is not None and self._circuit.is_open

    def worked(self, work: Work) -> None:
        """A worker has finished this work."""
        if self._circuit is not None and work.began is not None and work.has_success:
            self._circuit.worked(work.began, self._clock())
            self.look()

    def look(self) -> None:
        """Report it if the breaker has opened or closed since the last call."""
        circuit = self._circuit
        if circuit is None or circuit.is_open is self._was_open:
            return
        self._was_open = circuit.is_open
        if circuit.is_open:
            self._reporter.breaker_opened(circuit.reason, circuit.probe_seconds)
        else:
            self._reporter.breaker_closed(self._clock() - circuit.opened_at)

    def problem(self) -> str | None:
        """What to tell about an open breaker; None while it is closed."""
        circuit = self._circuit
        if circuit is None or not circuit.is_open:
            return None
        seconds = self._clock() - circuit.opened_at
        return f"its breaker has been open for {seconds:.0f} s: {circuit.reason}"
