"""Starts, stops and describes the embedded Kafka of one home folder."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.devkit.broker_config import broker_settings, render_properties, settings_file
from penstock.devkit.cluster_layout import (
    REGISTRY_ROLE,
    STATE_FILE,
    DamagedStateError,
    Layout,
    load_layout,
    save_layout,
)
from penstock.devkit.cluster_status import ClusterStatus, take_status
from penstock.devkit.crash_reasons import PortInUseError
from penstock.devkit.data_folder import format_storage, read_cluster, was_killed, wipe
from penstock.devkit.server_commands import broker_arguments, registry_arguments
from penstock.devkit.server_processes import Server, end, find_servers, launch, newest_layout
from penstock.devkit.server_startup import Startup
from penstock.devkit.up_options import UpOptions
from penstock.devkit.up_plan import UpPlan, data_folder, plan_up
from penstock.errors import ServerError
from penstock.jvm.class_archive import archive_flags, writes_archive
from penstock.jvm.coordinates import APICURIO, KAFKA
from penstock.jvm.filelock import exclusive
from penstock.jvm.jars import resolve
from penstock.jvm.java_runtime import find_java
from penstock.jvm.private_files import disk_problems_explained, make_private, open_private
from penstock.jvm.progress_callback import ProgressCallback, silent
from penstock.paths import HOME_VARIABLE, embedded_home

_LOCK_SECONDS = 600.0
_PORT_ATTEMPTS = 3


def embedded_brokers() -> str | None:
    """Return the bootstrap addresses of the default embedded cluster, if any of its brokers runs."""
    return Embedded().bootstrap()


def embedded_registry() -> str | None:
    """Return the URL of the schema registry beside the default embedded cluster, if it runs."""
    found = Embedded().status().registry
    return found.url if found is not None and found.pid is not None else None


@dataclass(frozen=True)
class StoppedServers:
    """The result of ``down``: the servers that it stopped, and the data folder that it deleted."""

    roles: tuple[str, ...]
    wiped: str | None = None


@dataclass(frozen=True)
class _State:
    """The saved layout and the running servers."""

    layout: Layout | None
    servers: dict[str, Server]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Programs:
    """Java and the jars of the servers; ``registry`` is empty unless the registry must be started."""

    java: Path
    kafka: list[Path]
    registry: list[Path]
    class_archive: list[str]


class Embedded:
    """A real Kafka, optionally with a schema registry, in one folder. Its servers keep running after this process.

    Clusters in different homes can run at the same time.
    """

    def __init__(self, home: Path | None = None) -> None:
        self.home = (home or embedded_home()).resolve()

    def up(self, options: UpOptions | None = None, *, progress: ProgressCallback = silent) -> ClusterStatus:
        """Start the servers that do not run and wait until they are ready. On failure, stop what this call started."""
        options = options or UpOptions()
        options.check()
        with self._alone(progress):
            state = self._look()
            plan = self._start_missing(options, state, progress)
            status = self.status()
        already = () if plan.missing else ("Kafka was already running.",)
        return replace(status, notes=(*state.notes, *already, *plan.notes))

    def down(self, *, wipe_data: bool = False, progress: ProgressCallback = silent) -> StoppedServers:
        """Stop every server of this home, by force if necessary. Keep the data unless ``wipe_data`` is set."""
        with self._alone(progress):
            state = self._look()
            servers = find_servers(self.home)
            if servers:
                progress(f"Stopping {', '.join(sorted(server.role for server in servers))}")
            end(servers)
            data = data_folder(UpOptions(), state.layout, self.home)
            wiped = wipe_data and wipe(data)
            save_layout(self.home, None)
        return StoppedServers(tuple(sorted(server.role for server in servers)), str(data) if wiped else None)

    def status(self) -> ClusterStatus:
        state = self._look()
        if state.layout is None:
            return ClusterStatus(home=str(self.home), notes=state.notes)
        return take_status(self.home, state.layout, state.servers, state.notes)

    def bootstrap(self) -> str | None:
        """Return the bootstrap addresses if any broker process runs, without a request to the brokers."""
        state = self._look()
        brokers = state.servers.keys() - {REGISTRY_ROLE}
        return state.layout.bootstrap if state.layout and brokers else None

    @contextmanager
    def _alone(self, progress: ProgressCallback) -> Iterator[None]:
        def waiting() -> None:
            progress("Waiting for another penstock command that starts or stops this Kafka")

        with (
            disk_problems_explained(self.home, setting=HOME_VARIABLE),
            exclusive(self.home / "lock", timeout=_LOCK_SECONDS, on_wait=waiting),
        ):
            yield

    def _look(self) -> _State:
        servers = {server.role: server for server in find_servers(self.home)}
        with disk_problems_explained(self.home, setting=HOME_VARIABLE):
            try:
                return _State(load_layout(self.home), servers, ())
            except DamagedStateError:
                layout = newest_layout(servers.values())
                save_layout(self.home, layout)
        return _State(
            layout, servers, (f"The state file {self.home / STATE_FILE} was damaged and has been written again.",)
        )

    def _start_missing(self, options: UpOptions, state: _State, progress: ProgressCallback) -> UpPlan:
        """Start what does not run. If another program takes a port after it was chosen, choose again."""
        data = data_folder(options, state.layout, self.home)
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            plan = plan_up(options, data=data, before=state.layout, running=state.servers, made_for=read_cluster(data))
            try:
                if plan.missing:
                    self._start(plan, before=state.layout, progress=progress)
            except PortInUseError as error:
                # Which roles run decides whether the ports are free to choose; plan_up refuses the rest.
                if attempt == _PORT_ATTEMPTS:
                    raise ServerError(error.problem, hint=error.hint) from error
                progress("Another program took a port: choosing again")
            else:
                break
        return plan

    def _start(self, plan: UpPlan, *, before: Layout | None, progress: ProgressCallback) -> None:
        launched: dict[str, subprocess.Popen[bytes]] = {}
        try:
            programs = _fetch(plan, progress)
            progress("Preparing the data folder")
            self._prepare(plan.layout, programs)
            progress(f"Starting {', '.join(plan.missing)}")
            for role in plan.missing:
                launched[role] = self._launch(role, plan.layout, programs)
            Startup(self.home, plan.layout, launched).wait(progress)
        except BaseException:
            # BaseException, so after Ctrl+C too: a failed start leaves no server running.
            if launched:
                progress("The start failed: stopping the servers")
            end(server for server in find_servers(self.home) if server.role in launched)
            for process in launched.values():  # also those that have not executed java yet, and so are not found
                if process.poll() is None:
                    process.kill()
                    process.wait()
            save_layout(self.home, before)
            raise

    def _prepare(self, layout: Layout, programs: _Programs) -> None:
        make_private(self.home / "logs", home=self.home)
        for node in layout.nodes:
            path = settings_file(self.home, node)
            path.parent.mkdir(parents=True, exist_ok=True)
            settings = broker_settings(layout, node, was_killed=was_killed(layout.node_data(node)))
            with open_private(path, "w") as file:
                file.write(render_properties(settings))
        with disk_problems_explained(Path(layout.data), setting="--data"):
            # Formatting loads few classes, so it must not write the archive.
            flags = () if writes_archive(programs.class_archive) else programs.class_archive
            format_storage(self.home, layout, java=programs.java, jars=programs.kafka, flags=flags)
            if layout.registry_port is not None:
                layout.registry_data.mkdir(exist_ok=True)
        # Saved before the servers start, so that the next command finds them if this process dies.
        save_layout(self.home, layout)

    def _launch(self, role: str, layout: Layout, programs: _Programs) -> "subprocess.Popen[bytes]":
        if role == REGISTRY_ROLE:
            flags = archive_flags("registry", programs.java, programs.registry)
            arguments = registry_arguments(self.home, layout, programs.registry, class_archive=flags)
            classpath: list[Path] = []
        else:
            node = next(node for node in layout.nodes if node.role == role)
            arguments = broker_arguments(self.home, layout, node, class_archive=programs.class_archive)
            classpath = programs.kafka
        return launch(self.home, role, layout, java=programs.java, arguments=arguments, classpath=classpath)


def _fetch(plan: UpPlan, progress: ProgressCallback) -> _Programs:
    java, kafka = find_java(), resolve(KAFKA, progress=progress)
    return _Programs(
        java=java,
        kafka=kafka,
        registry=resolve(APICURIO, progress=progress) if REGISTRY_ROLE in plan.missing else [],
        class_archive=archive_flags("kafka", java, kafka),
    )
