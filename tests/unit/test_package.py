"""The names that `import penstock` provides, and the libraries that it must not import."""

import ast
import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path

import penstock
from penstock import errors

HEAVY = (
    "pyspark",
    "pandas",
    "pyarrow",
    "confluent_kafka",
    "typer",
    "rich",
    "pydantic",
    "fastavro",
    "google",
    "opentelemetry",
    "prometheus_client",
    "jgo",
)
# Each means the same in both places: `penstock.events` exports core's events, and errors are errors.
SHARED = {"errors", "events"}
# Each is one fact in two layers: what happens to a record or a partition, and the event or message that reports it. A
# pipeline writes to a topic, an assignor distributes one.
SHARED_CLASSES = {"Assigned", "Delayed", "Duplicate", "Expired", "Lost", "Pause", "Skipped", "Topic"}


def test_the_public_names_are_these() -> None:
    assert sorted(penstock.__all__) == [
        "App", "Avro", "BatchId", "Breaker", "Console", "ForeachBatch", "HandlerBug", "Jdbc", "JsonSchema", "Later",
        "Maintenance", "NO_RETRY", "Out", "PenstockError", "Producer", "Protobuf", "Rate", "Record", "Reference",
        "Registry", "Reject", "Replay", "Retry", "Skip", "Source", "Table", "Topic", "__version__", "by", "key_like",
    ]  # fmt: skip
    assert all(hasattr(penstock, name) for name in penstock.__all__)


def test_each_module_name_has_one_meaning() -> None:
    modules = Path(penstock.__file__).parent.rglob("*.py")
    names = Counter(module.stem for module in modules if module.stem != "__init__")
    assert {name for name, count in names.items() if count > 1} == SHARED


def test_each_class_name_has_one_meaning() -> None:
    modules = Path(penstock.__file__).parent.rglob("*.py")
    nodes = (node for module in modules for node in ast.walk(ast.parse(module.read_text("utf-8"))))
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
    assert {name for name, count in names.items() if count > 1} == SHARED_CLASSES


def test_importing_it_imports_nothing_heavy() -> None:
    program = f"import sys, penstock; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_help_of_the_command_line_does_not_load_the_maven_resolver() -> None:
    program = """
import sys
from penstock.cli import main

sys.argv = ["penstock", "--help"]
try:
    main()
except SystemExit as ended:
    assert not ended.code
assert "jgo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)


def test_errors_survive_the_way_between_processes() -> None:
    error = errors.HandlerError("it failed", hint="fix it")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is errors.HandlerError
    assert (copy.problem, copy.hint, str(copy)) == ("it failed", "fix it", "it failed fix it")
