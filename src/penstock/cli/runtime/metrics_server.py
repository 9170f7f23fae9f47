"""``--metrics``: serves metrics to Prometheus."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.cli.runtime.health_server import parse_address
from penstock.engine import HealthBoard
from penstock.errors import SetupError
from penstock.kafka import Cluster
from penstock.ops.metrics import EventCounters, LagPoller, Recommendations


@contextmanager
def serve_metrics(
    address: str, event_counters: EventCounters, board: HealthBoard, *, make_cluster: Callable[[], Cluster]
) -> Iterator[int]:
    """Answer scrapes while the block runs. Yields the port."""
    host, port = parse_address(address, flag="--metrics")
    try:
        # Imported here because the package is an optional extra.
        from prometheus_client import start_http_server  # noqa: PLC0415

        from penstock.ops.metrics.exporter import make_registry  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(
            "--metrics needs the package prometheus-client.", hint="Install it: pip install 'penstock[metrics]'."
        ) from error
    with LagPoller(make_cluster, event_counters.positions, Recommendations(board.member_metrics)) as watch:
        try:
            server, thread = start_http_server(
                port, addr=host, registry=make_registry(event_counters, watch, board.member_metrics)
            )
        except OSError as error:
            raise SetupError(
                f"--metrics {address} cannot be served: {error.strerror}.",
                hint="Choose another port, or 0 for a free one.",
            ) from error
        try:
            yield server.server_port
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
