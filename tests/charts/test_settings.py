"""Every setting that a chart or an example writes is one the program knows."""

import http.client

import pytest
import sidecar as clients
import yaml

import kube
from kube import CASES, CHART, containers, pods, render

IDS = [path.name.removesuffix("-values.yaml") for path in CASES]


def configured(manifests):
    """The environment and the configuration text of every sidecar."""
    files = {one["metadata"]["name"]: one["data"] for one in manifests if one["kind"] == "ConfigMap"}
    for pod in pods(manifests):
        for one in containers(pod):
            env = {entry["name"]: entry.get("value", "") for entry in one.get("env", [])}
            if "IRIS_HOME" in env:
                text = [data["config.yaml"] for data in files.values() if "config.yaml" in data]
                yield env, env.pop("SIDECAR_CONFIG", None) or (text[0] if text else "")


@pytest.mark.parametrize("path", [path for path in CASES if path.name != "injector-values.yaml"], ids=lambda path: path.name)
def test_the_program_takes_what_the_chart_writes(path, check_config):
    values = yaml.safe_load(path.read_text())
    found = list(configured(render(values)[0]))
    assert len(found) == 1
    env, text = found[0]
    effective = yaml.safe_load(check_config(env | {"SIDECAR_CONFIG": text}, "--config=env:SIDECAR_CONFIG"))
    assert effective["home"] == "/var/lib/iris-sidecar/home"
    assert effective["forward"]["endpoint"] == values.get("forward", {}).get("endpoint")
    assert (effective["web"]["listen"] != "off") == values.get("web", {}).get("enabled", False)


@pytest.mark.parametrize(
    ("values", "bytes_max"),
    [
        ({}, 10 * 2**30 * 3 // 4),
        ({"persistence": {"size": "1.5T"}}, int(1.5e12 * 0.75)),
        ({"persistence": {"enabled": False}}, 3 * 2**30),
        ({"mode": "sidecar"}, 3 * 2**30),
        ({"mode": "sidecar", "volume": {"sizeLimit": "800M"}}, 600_000_000),
        ({"mode": "sidecar", "volume": {"source": {"hostPath": {"path": "/x"}}}}, 2 * 2**30),
        ({"mode": "sidecar", "config": {"retention": {"bytes_max": 200_000_000}}}, 200_000_000),
    ],
    ids=str,
)
def test_the_program_keeps_within_its_volume(values, bytes_max, check_config):
    env, text = next(configured(render(values)[0]))
    effective = yaml.safe_load(check_config(env | {"SIDECAR_CONFIG": text}, "--config=env:SIDECAR_CONFIG"))
    assert effective["retention"]["bytes_max"] == bytes_max


@pytest.mark.parametrize("mode", ["gateway", "sidecar"])
def test_a_judge_in_a_cluster_is_bounded(mode, check_config):
    """Personal data stays, every limit of money is set, and sources are fetched only when somebody writes so."""
    key = {"judge": {"openai_api_key_file": "/etc/iris-sidecar/secrets/openai"}, "citations": {"fetch": "ask"}}
    for config, fetch in (({}, "never"), (key, "ask")):
        env, text = next(configured(render({"mode": mode, "config": config})[0]))
        effective = yaml.safe_load(check_config(env | {"SIDECAR_CONFIG": text}, "--config=env:SIDECAR_CONFIG"))
        judge, citations = effective["judge"], effective["citations"]
        assert judge["redact"] is True
        assert (judge["ceiling_usd_call"], judge["ceiling_usd_day"], citations["ceiling_usd_call"]) == (0.25, 1.0, 1.0)
        assert (citations["fetch"], citations["domains"]) == (fetch, "intersect")


def test_redaction_certificates_and_verdicts_reach_the_program(check_config):
    values = yaml.safe_load((CHART / "ci/gateway-tls-values.yaml").read_text())
    env, text = next(configured(render(values)[0]))
    effective = yaml.safe_load(check_config(env | {"SIDECAR_CONFIG": text}, "--config=env:SIDECAR_CONFIG"))
    assert effective["redact"]["enabled"] is True
    assert effective["forward"]["ca_file"] == "/etc/iris-sidecar/secrets/collector-ca.crt" and effective["forward"]["verdicts"] is False
    assert effective["receive"]["tls"] == {f"{one}_file": f"/etc/iris-sidecar/tls/{file}" for one, file in
                                           [("cert", "tls.crt"), ("key", "tls.key"), ("client_ca", "ca.crt")]}
    assert effective["web"]["tls"]["cert_file"] and effective["receive"]["grpc"]["allow_unauthenticated"] is False
    sidecar = yaml.safe_load(check_config(*[{"SIDECAR_CONFIG": next(configured(render({"mode": "sidecar", "redact": {"enabled": True}})[0]))[1]}, "--config=env:SIDECAR_CONFIG"]))
    assert sidecar["redact"]["enabled"] is True


def test_what_the_user_configures_wins(check_config):
    for mode in ("gateway", "sidecar"):
        values = {"mode": mode, "config": {"retention": {"days": 9}, "logging": {"level": "warn"}}}
        env, text = next(configured(render(values)[0]))
        effective = yaml.safe_load(check_config(env | {"SIDECAR_CONFIG": text}, "--config=env:SIDECAR_CONFIG"))
        assert (effective["retention"]["days"], effective["logging"]) == (9, {"level": "warn", "format": "json"})


def test_the_schema_knows_every_setting_of_the_program(check_config):
    """The schema's keys are those of `config/iris.yaml`, and those are the program's."""
    written = yaml.safe_load((kube.ROOT / "config/iris.yaml").read_text())
    effective = yaml.safe_load(check_config({}))
    assert keys(effective) <= keys(written), "config/iris.yaml lacks keys"


def keys(tree, path=""):
    if not isinstance(tree, dict):
        return {path}
    return {one for name, inner in tree.items() for one in keys(inner, f"{path}.{name}")}


def test_a_locked_gateway_asks_everybody_who_they_are(binary, tmp_path):
    """The configuration as the chart writes it, the Secret as Kubernetes mounts it, and a running gateway."""
    values = yaml.safe_load((CHART / "ci/gateway-locked-values.yaml").read_text())
    _, text = next(configured(render(values)[0]))
    for name in ("api-key", "token", "dashboard"):
        (tmp_path / name).write_text(f"{name}-of-a-test\n")
    text = text.replace("/etc/iris-sidecar/secrets", str(tmp_path))
    doors = {f"IRIS__{door}__LISTEN": "0.0.0.0:0" for door in ("RECEIVE__GRPC", "RECEIVE__HTTP", "WEB")}
    with clients.sidecar(binary, doors, keys=text) as running:

        def status(door, method, path, host, key=None):
            connection = http.client.HTTPConnection("127.0.0.1", int(running.runtime[door].rsplit(":", 1)[1]), timeout=10)
            headers = {"host": host, "content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
            connection.request(method, path, "{}" if method == "POST" else None, headers)
            return connection.getresponse().status

        service, outside = "iris-iris-sidecar.agents.svc", "iris.example.com"
        send, ask = ("http", "POST", "/v1/traces"), ("web", "GET", "/api/v1/traces")
        clients.until("the store is open", 30, lambda: status(*ask, service, "api-key-of-a-test") != 503)
        assert status(*send, service) == 401
        assert status(*send, service, "nonsense") in (401, 403)
        assert status(*send, service, "token-of-a-test") == 200
        assert status(*send, "evil.example.com", "token-of-a-test") == 403
        assert status(*ask, service) == 401
        assert status(*ask, service, "token-of-a-test") == 403, "a sender's token does not ask"
        assert [status(*ask, host, key) for host in (service, outside) for key in ("api-key-of-a-test", "dashboard-of-a-test")] == [200] * 4
        assert status(*ask, "evil.example.com", "api-key-of-a-test") == 403
