"""When a running app is ready, with a real broker, schema registry and database."""

from kafka_helpers import QUICK, MakeTopic, wait_for
from penstock import App, Avro
from penstock.app.runs.run_options import RunSettings
from penstock.devkit import Embedded
from penstock.engine import HealthBoard
from penstock.lifecycle import AppRun, RunExtras
from postgres import Postgres
from registry_outage import frozen


def test_an_app_is_ready_while_it_has_its_partitions_its_registry_and_its_database(
    kafka: Embedded, brokers: str, registry: str, postgres: Postgres, group: str, make_topic: MakeTopic
) -> None:
    database = postgres.database()
    name = database.rpartition("/")[2]
    app = App(group, registry=registry, settings=QUICK)

    @app.consume(make_topic(), value=Avro({"type": "string"}), offsets=database)
    def handle(value: str) -> None: ...

    board = HealthBoard()

    def problems() -> str:
        return " ".join(board.ready_report()["problems"])

    assert board.ready_report()["status"] == "starting"
    run = AppRun(app, RunSettings(brokers=brokers), extras=RunExtras(health=board))
    run.start()
    try:
        wait_for(lambda: board.ready_report()["status"] == "ready", "the app to be ready")
        with frozen(kafka):
            wait_for(lambda: f"The schema registry at {registry} " in problems(), "the registry to be missed")
        wait_for(lambda: not problems(), "the registry's return")
        postgres.sql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        postgres.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        wait_for(lambda: "failed while being probed" in problems(), "the database to be missed")
        postgres.sql(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        wait_for(lambda: not problems(), "the database's return")
    finally:
        run.ask_to_stop()
        run.ended.result()
    assert board.ready_report() == {"status": "not ready", "problems": ["The app is stopping."]}
    run.raise_failure()
