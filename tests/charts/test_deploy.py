"""The examples in `deploy/`: valid for Kubernetes, and every setting in them known to the program."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.request

import pytest
import sidecar as clients
import yaml

import kube
from kube import containers, named, pods, restricted, validate

DEPLOY = kube.ROOT / "deploy"
WRITTEN_OUT = ["deployment.yaml", "job.yaml"]
FRAGMENTS = yaml.safe_load((DEPLOY / "helm-values/third-party.yaml").read_text())


def documents(path):
    return [one for one in yaml.safe_load_all((DEPLOY / path).read_text()) if one]


def kustomized():
    kubectl = pathlib.Path(sys.executable).parent / "kubectl"
    done = subprocess.run([kubectl, "kustomize", DEPLOY / "kubernetes/example"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def sidecars():
    """Every sidecar container that is written out, by where it stands."""
    for path in WRITTEN_OUT:
        yield path, named(next(pods(documents(f"kubernetes/{path}"))), "iris-sidecar")
    yield "component", named({"containers": [], **documents("kubernetes/component/sidecar.yaml")[0]["spec"]["template"]["spec"]}, "iris-sidecar")
    yield "third-party", FRAGMENTS["initContainers"][0]


@pytest.mark.parametrize("path", WRITTEN_OUT)
def test_kubernetes_takes_it(path):
    manifests = documents(f"kubernetes/{path}")
    validate(manifests)
    for pod in pods(manifests):
        assert restricted(pod) == []


def test_the_component_changes_labelled_deployments_only():
    manifests = kustomized()
    validate(manifests)
    by_name = {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in manifests}
    assert named(by_name["agent"], "iris-sidecar")["image"] == "registry.example.com/iris-sidecar:0.1.0"
    assert [one["name"] for one in by_name["agent"]["volumes"]] == ["iris-sidecar-data"]
    assert "initContainers" not in by_name["cache"]


def test_the_values_make_a_pod():
    pod = {
        "initContainers": FRAGMENTS["initContainers"],
        "containers": [{"name": "agent", "image": "example.com/agent:1", "env": FRAGMENTS["extraEnv"]}],
        "volumes": FRAGMENTS["extraVolumes"],
    }
    validate([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "agent"}, "spec": pod}])


def test_the_sidecar_is_the_same_everywhere():
    first, *others = [one for _, one in sidecars()]
    assert all(other == first for other in others)
    assert first["restartPolicy"] == "Always" and first["image"] == "iris-sidecar:0.1.0"


@pytest.mark.parametrize("where", [where for where, _ in sidecars()])
def test_the_program_takes_the_environment(where, check_config):
    env = {entry["name"]: entry["value"] for entry in dict(sidecars())[where]["env"]}
    effective = yaml.safe_load(check_config(env))
    assert effective["receive"]["http"]["listen"] == "127.0.0.1:4318" and effective["web"]["listen"] == "off"
    assert effective["forward"]["endpoint"] == "http://otel-collector:4317" and effective["retention"]["days"] == 1


def test_what_the_agent_is_told_is_where_the_sidecar_listens(check_config):
    for path in WRITTEN_OUT:
        pod = next(pods(documents(f"kubernetes/{path}")))
        told = {entry["name"]: entry["value"] for entry in named(pod, "agent")["env"]}
        assert told == {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}


def test_compose_is_known_to_the_program_and_has_its_collector(check_config):
    compose = documents("compose.yaml")[0]
    service = compose["services"]["iris-sidecar"]
    env = service["environment"] | {"IRIS_API_KEY": "a-key-of-a-test"}
    assert service["environment"]["IRIS_API_KEY"].startswith("${IRIS_API_KEY:?"), "nobody starts it without a key"
    effective = yaml.safe_load(check_config(env))
    inside = {door["listen"].split(":")[1] for door in (effective["receive"]["grpc"], effective["receive"]["http"], effective["web"], effective["ops"])}
    published = [port.rsplit(":", 2) for port in service["ports"]]
    assert {port[2] for port in published} == inside and {port[0] for port in published} == {"127.0.0.1"}
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    collector = documents("otel-collector.yaml")[0]
    host, port = re.fullmatch(r"http://([a-z-]+):(\d+)", effective["forward"]["endpoint"]).groups()
    assert host in compose["services"]
    assert collector["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"].endswith(f":{port}")
    for pipeline in collector["service"]["pipelines"].values():
        assert set(pipeline["receivers"]) <= collector["receivers"].keys() and set(pipeline["exporters"]) <= collector["exporters"].keys()
    mounted = [volume.split(":")[0] for volume in compose["services"]["otel-collector"]["volumes"]]
    assert all((DEPLOY / path).is_file() for path in mounted)


def test_what_the_sample_agent_sends_is_judged(binary):
    """The generator sets the same attributes on a span and its child."""
    arguments = yaml.safe_load((kube.CHART / "values.yaml").read_text())["agent"]["args"]
    pairs = [re.fullmatch(r'--telemetry-attributes=([a-z.]+)="(.*)"', one).groups() for one in arguments if "attributes" in one]
    span = {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "startTimeUnixNano": "1700000000000000000",
        "endTimeUnixNano": "1700000001000000000",
        "attributes": [{"key": key, "value": {"stringValue": text}} for key, text in pairs],
    }
    root, child = span | {"spanId": "b7ad6b7169203331", "name": "lets-go"}, span | {"spanId": "b7ad6b7169203332", "name": "okey-dokey-0"}
    child["parentSpanId"] = root["spanId"]
    with clients.sidecar(binary) as running:
        body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [root, child]}]}]}).encode()
        request = urllib.request.Request(f"http://{running.runtime['http']}/v1/traces", body, {"content-type": "application/json"})
        assert urllib.request.urlopen(request, timeout=10).status == 200

        def judged():
            return [one for one in running.traces() if one["verdict"] and not one["in_progress"]]

        (trace,) = clients.until("the sample is judged", 30, judged)
    assert trace["verdict"]["state"] == "pass", trace["verdict"]
    assert trace["output"] == dict(pairs)["output.value"]


def test_systemd_takes_the_unit(tmp_path, binary, check_config):
    text = (DEPLOY / "systemd/iris-sidecar.service").read_text()
    check_config(dict(re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE)))
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    unit = tmp_path / "iris-sidecar.service"
    unit.write_text(text.replace("/opt/iris-sidecar/iris-sidecar", binary))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60)
    about_it = [line for line in done.stderr.splitlines() if "iris-sidecar" in line]
    assert about_it == [], done.stderr


def test_the_program_takes_what_the_operator_hands_out(binary, check_config):
    """The operator hands the configuration over in a variable, without a command, and probes `/` of the health check."""
    (collector,) = documents("kubernetes/operator.yaml")
    text = yaml.safe_dump(collector["spec"]["config"])
    env = {one["name"]: one["value"] for one in collector["spec"]["env"]} | {"OTEL_CONFIG": text}
    effective = yaml.safe_load(check_config(env, "--config=env:OTEL_CONFIG"))
    assert effective["receive"]["http"]["listen"] == "127.0.0.1:4318"
    assert effective["forward"]["endpoint"] == "http://otel-collector.observability.svc:4317"
    assert (effective["ops"]["listen"], effective["web"]["listen"]) == ("0.0.0.0:13133", "off")
    assert effective["home"] == env["IRIS_HOME"]


def test_a_collectors_file_is_no_way_around_a_filter(binary, tmp_path):
    """What would have changed data is refused by name, not left out."""
    path = tmp_path / "collector.yaml"
    collector = yaml.safe_load((DEPLOY / "otel-collector.yaml").read_text())
    collector["service"]["pipelines"] = {"traces": {"receivers": ["otlp"], "processors": ["redaction"], "exporters": ["debug"]}}
    path.write_text(yaml.safe_dump(collector))
    done = subprocess.run([binary, "check-config", "--config", path], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "processors.redaction" in done.stderr


def test_every_link_of_the_overview_leads_somewhere():
    for page in [DEPLOY / "README.md", kube.CHART / "README.md", kube.LIBRARY / "README.md", kube.ROOT / "docs/kubernetes.md"]:
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if not link.startswith("http"):
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_no_container_is_privileged():
    for _, one in sidecars():
        assert restricted({"containers": [one]}) == []
    assert all(len(containers(pod)) == 2 for path in WRITTEN_OUT for pod in pods(documents(f"kubernetes/{path}")))
