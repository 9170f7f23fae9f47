"""What deploy/ promises: probes that exist, long enough stops, no root, names and flags that Penstock knows."""

import configparser
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer.main
import yaml

from penstock.app.config import Names, from_environment
from penstock.cli.entry_point import command_line
from penstock.cli.runtime.health_server import PROBES
from penstock.core.text.durations import seconds
from penstock.errors import ConfigError, PenstockError
from penstock.ops.metrics import METRICS

DEPLOY = Path(__file__).parents[2] / "deploy"
DOCKERFILE = (DEPLOY / "docker" / "Dockerfile").read_text("utf-8")
CHART = DEPLOY / "helm" / "penstock"
TEMPLATES = {path.name: path.read_text("utf-8") for path in sorted((CHART / "templates").iterdir())}
# Some years old, and the newest whose schemas are here.
KUBERNETES = ["1.30", kubernetes_validate.latest_version()]
# Resources of extensions, whose schemas are not those of Kubernetes.
EXTENSIONS = {"keda.sh/v1alpha1"}
# Commits, and leaving the group, after the records in progress.
MARGIN_SECONDS = 10


def manifests(name: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all((DEPLOY / name).read_text("utf-8")) if each]


def of_kind(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = (each for each in documents if each["kind"] == kind)
    return found


def flags_of(arguments: list[str]) -> set[str]:
    return {each for each in arguments if each.startswith("--")}


def known_flags() -> set[str]:
    run = typer.main.get_command(command_line("run")).commands["run"]  # type: ignore[attr-defined]
    return {flag for parameter in run.params for flag in parameter.opts}


def shop_variables(variables: dict[str, str]) -> None:
    """Raises if Penstock does not know one of the names."""
    from_environment(variables, Names(handlers=["invoice"]))


@pytest.mark.parametrize(
    "path", sorted({*DEPLOY.rglob("*.yaml"), *DEPLOY.rglob("*.yml")} - {*CHART.rglob("templates/*")})
)
def test_every_yaml_file_can_be_read(path: Path) -> None:
    assert [*yaml.safe_load_all(path.read_text("utf-8"))]


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize(
    "path",
    [*sorted((DEPLOY / "kubernetes").glob("*.yaml")), *sorted((DEPLOY / "spark").glob("*.yaml"))],
    ids=lambda path: path.name,
)
def test_manifests_are_valid_by_the_schemas_of_kubernetes(path: Path, version: str) -> None:
    for each in manifests(str(path.relative_to(DEPLOY))):
        if each["apiVersion"] not in EXTENSIONS:
            kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["replicas"], "three"),
        (["template", "spec", "terminationGracePeriod"], 45),  # no such field
        (["template", "spec", "containers", 0, "ports", 0, "containerPort"], "http"),
    ],
)
def test_a_mistake_in_a_manifest_is_found(path: list[str | int], value: object) -> None:
    deployment = of_kind(manifests("kubernetes/shop.yaml"), "Deployment")
    part = deployment["spec"]
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, KUBERNETES[-1], strict=True)


@pytest.mark.parametrize("name", ["kubernetes/shop.yaml", "spark/driver.yaml"])
def test_a_deployment_has_probes_stops_cleanly_and_is_no_root(name: str) -> None:
    documents = manifests(name)
    deployment = of_kind(documents, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    variables = {each["name"]: each["value"] for each in container.get("env", ()) if "value" in each}
    for each in documents:
        variables |= each.get("data", {}) if each["kind"] == "ConfigMap" else {}
    shop_variables({name: value for name, value in variables.items() if name.startswith("PENSTOCK_")})

    drain = seconds(variables["PENSTOCK_DRAIN_TIMEOUT"], name="drain_timeout")
    assert pod["terminationGracePeriodSeconds"] >= drain + MARGIN_SECONDS
    assert {container[f"{each}Probe"]["httpGet"]["path"] for each in ("startup", "liveness")} == {"/live"}
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert PROBES.keys() == {"/live", "/ready"}
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert f"0.0.0.0:{ports['health']}" in container["args"]
    assert f"0.0.0.0:{ports['metrics']}" in container["args"]
    assert flags_of(container["args"]) <= known_flags()

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    budget = of_kind(documents, "PodDisruptionBudget")
    assert deployment["spec"]["selector"]["matchLabels"] == budget["spec"]["selector"]["matchLabels"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()


def stages() -> dict[str, list[list[str]]]:
    """Name of each stage of the Dockerfile → its instructions, as words; lines that continue are joined."""
    found: dict[str, list[list[str]]] = {}
    for line in re.sub(r"\\\n", " ", DOCKERFILE).splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "FROM":
            found[words[3] if len(words) > 3 else words[1]] = current = [words]
        elif found:
            current.append(words)
    return found


def test_autoscalers_follow_what_the_deployed_app_recommends() -> None:
    deployment = of_kind(manifests("kubernetes/shop.yaml"), "Deployment")
    (keda,), (hpa,) = manifests("kubernetes/keda.yaml"), manifests("kubernetes/hpa.yaml")
    for target in (keda["spec"]["scaleTargetRef"], hpa["spec"]["scaleTargetRef"]):
        assert target["name"] == deployment["metadata"]["name"]
    assert keda["spec"]["minReplicaCount"] == hpa["spec"]["minReplicas"] == 1
    assert keda["spec"]["maxReplicaCount"] == hpa["spec"]["maxReplicas"]
    (trigger,), (metric,) = keda["spec"]["triggers"], hpa["spec"]["metrics"]
    name = metric["external"]["metric"]["name"]
    assert name in METRICS
    assert trigger["metadata"]["query"] == f'max({name}{{group="shop"}})'
    # A value divided by 1 for each pod is the number of pods.
    assert trigger["metricType"] == metric["external"]["target"]["type"] == "AverageValue"
    assert trigger["metadata"]["threshold"] == metric["external"]["target"]["averageValue"] == "1"


@pytest.mark.parametrize("stage", ["local", "spark"])
def test_an_image_runs_without_root_and_without_the_tools_that_built_it(stage: str) -> None:
    steps = stages()[stage]
    (user,) = (words[1] for words in steps if words[0] == "USER")
    assert int(user.split(":")[0]) > 0  # Kubernetes can check only a number
    assert [words[0] for words in steps].index("USER") < [words[0] for words in steps].index("ENTRYPOINT")
    assert not any("pip" in words for words in steps)
    assert any("jre" in " ".join(words) for words in steps) is (stage == "spark")
    sources = {source for words in steps for source in re.findall(r"--from=(\S+)", " ".join(words))}
    assert sources <= stages().keys()
    assert [*stages()][-1] == "local"  # what `docker build` makes without --target


def test_the_health_check_of_the_image_asks_the_port_of_its_command() -> None:
    (address,) = re.findall(r"http://127\.0\.0\.1:(\d+/\w+)", DOCKERFILE)
    port, _, path = address.partition("/")
    command = re.findall(r"^CMD (\[.+\])$", DOCKERFILE, re.MULTILINE)[-1]
    arguments = yaml.safe_load(command)
    assert f"/{path}" == "/live"
    assert arguments[arguments.index("--health") + 1] == f"0.0.0.0:{port}"
    assert flags_of(arguments) <= known_flags()
    exposed = re.findall(r"^EXPOSE (.+)$", DOCKERFILE, re.MULTILINE)[0].split()
    assert [arguments[arguments.index(flag) + 1].partition(":")[2] for flag in ("--health", "--metrics")] == exposed


def test_compose_listens_on_loopback_and_waits_for_a_clean_stop() -> None:
    (compose,) = manifests_of_compose()
    services = compose["services"]
    app = services["app"]
    variables = app["environment"]
    shop_variables(variables)
    drain = seconds(variables["PENSTOCK_DRAIN_TIMEOUT"], name="drain_timeout")
    assert seconds(app["stop_grace_period"], name="stop_grace_period") >= drain + MARGIN_SECONDS
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)
    mounted = [volume.split(":")[0] for service in services.values() for volume in service.get("volumes", ())]
    files = [volume for volume in mounted if volume.startswith(".")]
    assert len(files) == 5
    assert [each for each in files if not (DEPLOY / "compose" / each).exists()] == []
    context = DEPLOY / "compose" / app["build"]["context"]
    assert (context / app["build"]["dockerfile"]).resolve() == DEPLOY / "docker" / "Dockerfile"
    images = {service["image"] for service in services.values() if "image" in service}
    assert all(re.search(r":[v\d]", image) and not image.endswith(":latest") for image in images)


def manifests_of_compose() -> list[dict[str, Any]]:
    return [yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text("utf-8"))]


def leaves(values: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict) and value and f"{prefix}{name}" != "resources":
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def test_the_chart_uses_every_value_and_no_other() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    used = {name for text in TEMPLATES.values() for name in re.findall(r"\.Values\.([\w.]+)", text)}
    assert used == {*leaves(values)}


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_block_of_a_template_is_closed(name: str) -> None:
    actions = re.findall(r"\{\{-?\s*(\w+)", TEMPLATES[name])
    opened = sum(action in ("if", "with", "range", "define") for action in actions)
    assert opened == actions.count("end")
    assert TEMPLATES[name].count("{{") == TEMPLATES[name].count("}}")


def test_the_chart_has_what_the_manifests_have() -> None:
    text = TEMPLATES["deployment.yaml"]
    assert "terminationGracePeriodSeconds: {{ add .Values.drainTimeoutSeconds .Values.extraGraceSeconds }}" in text
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    assert values["extraGraceSeconds"] >= MARGIN_SECONDS
    for line in ("runAsNonRoot: true", "readOnlyRootFilesystem: true", "path: /live", "path: /ready", "maxSurge: 0"):
        assert line in text
    assert flags_of(re.findall(r"^ +- (--\S+)$", text, re.MULTILINE)) <= known_flags()
    variables = re.findall(r"^  (PENSTOCK_\w+):", TEMPLATES["configmap.yaml"], re.MULTILINE)
    shop_variables({name: "30s" if "TIMEOUT" in name else "kafka:9092" for name in variables})
    assert values["env"] == {}


def test_the_service_gives_an_app_the_time_to_stop_and_does_not_repeat_hopeless_starts() -> None:
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign] # names of systemd have capitals
    unit.read(DEPLOY / "systemd" / "penstock@.service", "utf-8")
    service = unit["Service"]
    lines = [line.lstrip("# ") for line in (DEPLOY / "systemd/shop.env").read_text("utf-8").splitlines()]
    variables = dict(line.split("=", 1) for line in lines if re.match(r"[A-Z_]+=", line))
    shop_variables({name: value for name, value in variables.items() if name.startswith("PENSTOCK_")})
    drain = seconds(variables["PENSTOCK_DRAIN_TIMEOUT"], name="drain_timeout")
    assert seconds(service["TimeoutStopSec"], name="TimeoutStopSec") >= drain + MARGIN_SECONDS
    command = shlex.split(service["ExecStart"])
    assert command[1] == "run"
    assert flags_of(command) <= known_flags()
    assert set(re.findall(r"\$\{(\w+)\}", service["ExecStart"])) <= variables.keys()
    codes = {kind.exit_code for kind in every_error()}
    assert {int(code) for code in service["RestartPreventExitStatus"].split()} <= codes
    assert service["DynamicUser"] == "yes"
    assert service["KillMode"] == "mixed"


def every_error() -> Iterator[type[PenstockError]]:
    waiting = [PenstockError]
    while waiting:
        kind = waiting.pop()
        yield kind
        waiting += kind.__subclasses__()


def test_a_variable_with_a_typo_would_be_found() -> None:
    with pytest.raises(ConfigError):
        shop_variables({"PENSTOCK_DRAIN_TIMOUT": "30s"})
