"""The chart in its three modes, rendered by Helm itself."""

import os

import helm_python
import pytest
import yaml

import kube
from kube import CASES, CHART, LIBRARY, containers, named, pods, refused, render, restricted, validate

BLESS = bool(os.environ.get("IRIS_BLESS"))
IDS = [path.name.removesuffix("-values.yaml") for path in CASES]


@pytest.mark.parametrize("path", CASES, ids=IDS)
def test_rendered_as_written_down(path):
    manifests, notes = render(yaml.safe_load(path.read_text()))
    validate(manifests)
    assert notes.strip()
    for pod in pods(manifests):
        assert restricted(pod) == []
    golden = kube.ROOT / f"tests/charts/golden/{path.name.removesuffix('-values.yaml')}.yaml"
    text = yaml.safe_dump_all(manifests, sort_keys=False, width=120)
    if BLESS:
        golden.write_text(text)
    assert golden.read_text() == text, f"{golden.name} differs: IRIS_BLESS=1 writes it"


@pytest.mark.parametrize("chart", [CHART, LIBRARY], ids=lambda path: path.name)
def test_lint_finds_nothing(chart):
    found = helm_python.lint(str(chart), strict=True)
    assert found["errors"] == []
    assert [one for one in found["messages"] if "icon is recommended" not in one["error"]] == []


@pytest.mark.parametrize("release", ["a", "iris-sidecar", "r" * 53, "team-with-a-long-name-and-its-own-gateway-for-agents"])
@pytest.mark.parametrize("mode", ["gateway", "sidecar", "injector"])
def test_any_release_name(release, mode):
    manifests, _ = render({"mode": mode}, name=release)
    validate(manifests)
    for manifest in manifests:
        assert len(manifest["metadata"]["name"]) <= 52 and not manifest["metadata"]["name"].endswith("-")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"mode": "daemonset"}, "/mode"),
        ({"replicas": 3}, "replicas"),
        ({"replicaCount": "3"}, "replicaCount"),
        ({"ports": {"grpc": 70000}}, "/ports/grpc"),
        ({"ports": {"grcp": 4317}}, "grcp"),
        ({"forward": {"endpoint": "otel-collector:4317"}}, "/forward/endpoint"),
        ({"forward": {"protocol": "http/protobuf"}}, "/forward/protocol"),
        ({"image": {"digest": "latest"}}, "/image/digest"),
        ({"volume": {"sizeLimit": "4 GB"}}, "/volume/sizeLimit"),
        ({"containerName": "Iris"}, "/containerName"),
        ({"terminationGracePeriodSeconds": 5}, "/terminationGracePeriodSeconds"),
        ({"config": {"retention": {"dayz": 1}}}, "dayz"),
        ({"config": {"home": "/tmp"}}, "home"),
        ({"config": {"journal": {"bytes_max": [1]}}}, "/config/journal/bytes_max"),
        ({"web": {"enabled": True}}, "existingSecret"),
        ({"receive": {"requireToken": True}}, "existingSecret"),
        ({"mode": "sidecar", "web": {"enabled": True}}, "existingSecret"),
        ({"tls": {"clientCertificates": True}}, "tls.existingSecret"),
        ({"forward": {"endpoint": "https://c:4317", "caKey": "ca.crt"}}, "existingSecret"),
        ({"redact": {"enabeld": True}}, "enabeld"),
        ({"mode": "injector", "web": {"enabled": True}}, "existingSecret"),
    ],
    ids=str,
)
def test_values_that_cannot_be_right_are_refused(values, words):
    assert words in refused(values)


def test_a_misspelt_field_would_be_seen():
    manifests, _ = render({"mode": "sidecar"})
    next(pods(manifests))["initContainers"][0]["restartPolice"] = "Always"
    with pytest.raises(Exception, match="restartPolice"):
        validate(manifests)


def test_no_template_makes_a_secret_or_gives_rights():
    for path in CASES:
        kinds = {one["kind"] for one in render(yaml.safe_load(path.read_text()))[0]}
        assert not kinds & {"Secret", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
    for template in CHART.rglob("*.tpl"):
        assert not {"lookup", "randAlphaNum", "genCA"} & set(template.read_text().split())


def test_a_gateway_is_one_process_with_a_folder_of_its_own():
    manifests, _ = render({"config": {"retention": {"days": 3}}})
    stateful = next(one for one in manifests if one["kind"] == "StatefulSet")
    assert stateful["spec"]["replicas"] == 1
    container = named(stateful["spec"]["template"]["spec"], "iris-sidecar")
    home = next(one["value"] for one in container["env"] if one["name"] == "IRIS_HOME")
    mounts = [one["mountPath"] for one in container["volumeMounts"]]
    # The program makes its folder private, which it can only do with one that it made itself.
    assert any(home.startswith(f"{mount}/") for mount in mounts) and home not in mounts
    changed, _ = render({"config": {"retention": {"days": 4}}})
    checksums = [
        next(one for one in some if one["kind"] == "StatefulSet")["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
        for some in (manifests, changed)
    ]
    assert checksums[0] != checksums[1], "another configuration restarts the pod"


def test_the_secret_is_mounted_into_the_sidecar_only():
    manifests, _ = render({"mode": "sidecar", "existingSecret": "keys", "web": {"enabled": True}})
    pod = next(pods(manifests))
    volume = next(one["name"] for one in pod["volumes"] if "secret" in one)
    holders = [one["name"] for one in containers(pod) if volume in {mount["name"] for mount in one.get("volumeMounts", [])}]
    assert holders == ["iris-sidecar"]
    assert "keys" not in str([one for one in containers(pod) if one["name"] != "iris-sidecar"])


def test_the_sidecar_comes_first_and_is_native():
    manifests, _ = render({"mode": "sidecar"})
    pod = next(pods(manifests))
    first = pod["initContainers"][0]
    assert (first["name"], first["restartPolicy"]) == ("iris-sidecar", "Always")
    assert "startupProbe" in first and "readinessProbe" not in first


def test_the_network_policy_lets_senders_in_and_nobody_else():
    manifests, _ = render({"networkPolicy": {"from": [{"podSelector": {"matchLabels": {"a": "b"}}}]}})
    policy = next(one for one in manifests if one["kind"] == "NetworkPolicy")["spec"]
    doors = {port["port"]: rule["from"] for rule in policy["ingress"] for port in rule["ports"]}
    assert doors["otlp-grpc"] == doors["otlp-http"] == [{"podSelector": {"matchLabels": {"a": "b"}}}]
    assert "web" not in doors and policy["policyTypes"] == ["Ingress"]
    assert not [one for one in render({"networkPolicy": {"enabled": False}})[0] if one["kind"] == "NetworkPolicy"]


def test_monitors_scrape_a_port_that_exists():
    for values in ({"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}, {"mode": "sidecar", "podMonitor": {"enabled": True}}):
        manifests, _ = render(values)
        monitors = [one for one in manifests if one["kind"].endswith("Monitor")]
        assert len(monitors) == len(values) - ("mode" in values)
        ports = {port["name"] for pod in pods(manifests) for one in containers(pod) for port in one.get("ports", [])}
        for monitor in monitors:
            ends = monitor["spec"].get("endpoints") or monitor["spec"]["podMetricsEndpoints"]
            assert {end["port"] for end in ends} <= ports


def test_versions_agree():
    cargo = next(line for line in (kube.ROOT / "Cargo.toml").read_text().splitlines() if line.startswith("version = "))
    version = cargo.split('"')[1]
    for chart in (CHART, LIBRARY):
        meta, values = (yaml.safe_load((chart / name).read_text()) for name in ("Chart.yaml", "values.yaml"))
        assert (meta["appVersion"], values["image"]["tag"]) == (version, version)
