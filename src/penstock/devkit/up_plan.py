"""Plans what ``penstock up`` has to start, before anything is started."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.core.text.plurals import counted
from penstock.devkit.cluster_layout import REGISTRY_ROLE, Layout, Node
from penstock.devkit.data_folder import StoredCluster, new_cluster_id
from penstock.devkit.ports import choose_port, is_free
from penstock.devkit.up_options import DEFAULT_BROKERS, DEFAULT_MEMORY, UpOptions
from penstock.errors import ConfigError, SetupError

DEFAULT_PORT = 9092
DEFAULT_REGISTRY_PORT = 8081


@dataclass(frozen=True)
class UpPlan:
    """The layout of the cluster, the roles to start, and notes for the user."""

    layout: Layout
    missing: tuple[str, ...]
    notes: tuple[str, ...] = ()


def data_folder(options: UpOptions, before: Layout | None, home: Path) -> Path:
    if options.data is not None:
        data = options.data.expanduser().resolve()
    else:
        data = Path(before.data) if before else home / "data"
    # Kafka treats a comma as a separator of folders, and the registry's database a semicolon as one of settings.
    if {",", ";"} & set(str(data)):
        raise ConfigError(
            f"The servers cannot use the data folder {data}.", hint="Use a path without commas and semicolons."
        )
    return data


def plan_up(
    options: UpOptions, *, data: Path, before: Layout | None, running: Collection[str], made_for: StoredCluster | None
) -> UpPlan:
    """Plan from the options, the last layout, the running roles, and the cluster of the data folder."""
    if before is not None and running:
        _refuse_changes(options, before)
        plan = UpPlan(before, ())
    else:
        plan = _plan_start(options, data, before, made_for)
    if options.registry or plan.layout.registry_port is not None:
        plan = _with_registry(plan, running)
    missing = tuple(role for role in plan.layout.roles if role not in running)
    _require_ports(plan.layout, missing)
    return replace(plan, missing=missing)


def _plan_start(options: UpOptions, data: Path, before: Layout | None, made_for: StoredCluster | None) -> UpPlan:
    brokers = _broker_count(options, data, made_for)
    nodes, notes = _place_nodes(brokers, options, before)
    if made_for and options.brokers is None and made_for.brokers != DEFAULT_BROKERS:
        notes.append(f"The data in {data} belongs to {made_for.brokers} brokers, so {made_for.brokers} brokers start.")
    layout = Layout(
        cluster_id=made_for.cluster_id if made_for else new_cluster_id(),
        data=str(data),
        memory=options.memory or (before.memory if before else DEFAULT_MEMORY),
        nodes=nodes,
        registry_port=before.registry_port if before else None,
    )
    return UpPlan(layout, (), tuple(notes))


def _broker_count(options: UpOptions, data: Path, made_for: StoredCluster | None) -> int:
    if made_for is None:
        return options.brokers or DEFAULT_BROKERS
    if options.brokers not in (None, made_for.brokers):
        raise SetupError(
            f"The data in {data} belongs to {counted(made_for.brokers, 'broker')}, not to {options.brokers}.",
            hint="Use another folder with --data DIR, or delete this data with `penstock down --wipe`.",
        )
    return made_for.brokers


def _place_nodes(brokers: int, options: UpOptions, before: Layout | None) -> tuple[tuple[Node, ...], list[str]]:
    """Give each node two ports: those of the last start, else the usual ones, else any free ones."""
    asked = options.port
    if asked and not is_free(asked):
        raise SetupError(
            f"Port {asked} is in use by another program.", hint="Stop that program, or choose another --port."
        )
    had = {node.id: node for node in before.nodes} if before and asked is None else {}
    first = DEFAULT_PORT if asked is None else asked
    taken: set[int] = set()
    nodes: list[Node] = []
    notes: list[str] = []
    for number in range(1, brokers + 1):
        earlier = had.get(number)
        usual = first + number - 1
        preferred = [earlier.port] if earlier else [usual] if first else []
        port = choose_port(preferred, taken=taken)
        if preferred and port != preferred[0]:
            notes.append(f"Port {preferred[0]} is in use by another program, so broker {number} listens on {port}.")
        taken.add(port)
        controller_port = choose_port([earlier.controller_port] if earlier else [], taken=taken)
        taken.add(controller_port)
        nodes.append(Node(number, port, controller_port))
    return tuple(nodes), notes


def _with_registry(plan: UpPlan, running: Collection[str]) -> UpPlan:
    if REGISTRY_ROLE in running:
        return plan
    wanted = plan.layout.registry_port or DEFAULT_REGISTRY_PORT
    port = choose_port([wanted], taken={node.controller_port for node in plan.layout.nodes})
    notes = plan.notes
    if port != wanted:
        notes = (*notes, f"Port {wanted} is in use by another program, so the registry listens on {port}.")
    return replace(plan, layout=replace(plan.layout, registry_port=port), notes=notes)


def _require_ports(layout: Layout, missing: Collection[str]) -> None:
    """Raise if the port of a node that must be started again is taken: the running nodes know it by that port."""
    for node in layout.nodes:
        for port in (node.port, node.controller_port):
            if node.role in missing and not is_free(port):
                raise SetupError(
                    f"Port {port}, which {node.role} used before, is in use by another program.",
                    hint="Stop that program, or run `penstock down` and then `penstock up` to get other ports.",
                )


def _refuse_changes(options: UpOptions, running: Layout) -> None:
    """Raise if an option differs from the running cluster, instead of ignoring it silently."""
    differences = [
        ("--brokers", options.brokers, len(running.nodes)),
        ("--port", options.port or None, running.nodes[0].port),
        ("--data", options.data and str(options.data.expanduser().resolve()), running.data),
        ("--memory", options.memory and options.memory.lower(), running.memory.lower()),
    ]
    for flag, asked, actual in differences:
        if asked is not None and asked != actual:
            raise SetupError(
                f"The embedded Kafka is already running with {flag} {actual}, not {asked}.",
                hint=f"Run `penstock down` first, or leave out {flag}.",
            )
