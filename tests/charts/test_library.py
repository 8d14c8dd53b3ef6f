"""The library chart in a chart of somebody else."""

import pytest
import yaml

import kube
from kube import named, pods, refused, render, validate
from test_settings import configured

CONSUMER = kube.ROOT / "tests/charts/consumer"
AGENT = {"name": "agent", "image": "example.com/agent:1"}


def pod(values=None):
    manifests, _ = render(values or {}, CONSUMER)
    validate(manifests)
    return next(pods(manifests))


def test_the_defaults_of_the_library_hold_and_the_consumer_changes_what_it_likes(check_config):
    values = {"irisSidecar": {"config": {"eval": {"critical_rules": ["no_pii"]}}, "containerName": "judge"}}
    spec = pod(values)
    assert [one["name"] for one in spec["initContainers"]] == ["judge"]
    assert [one["name"] for one in spec["volumes"]] == ["judge-data"]
    env, text = next(configured(render(values, CONSUMER)[0]))
    effective = yaml.safe_load(check_config(env | {"SIDECAR_CONFIG": text}, "--config=env:SIDECAR_CONFIG"))
    assert effective["forward"]["endpoint"] == "http://otel-collector:4317"
    assert effective["eval"]["critical_rules"] == ["no_pii"]
    assert effective["receive"]["grpc"]["listen"] == "127.0.0.1:4317"


def test_every_container_is_told_and_none_is_overruled():
    own = [{"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://elsewhere:4318"}]
    spec = pod(
        {
            "pod": {
                "initContainers": [{"name": "prepare", "image": "example.com/prepare:1"}],
                "containers": [AGENT | {"env": [{"name": "A", "value": "b"}]}, AGENT | {"name": "other", "env": own}],
                "volumes": [{"name": "scratch", "emptyDir": {}}],
            }
        }
    )
    told = [
        {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://127.0.0.1:4318"},
        {"name": "OTEL_EXPORTER_OTLP_PROTOCOL", "value": "http/protobuf"},
    ]
    assert named(spec, "prepare")["env"] == told
    assert named(spec, "agent")["env"] == [{"name": "A", "value": "b"}, *told]
    assert named(spec, "other")["env"] == own
    assert [one["name"] for one in spec["initContainers"]] == ["iris-sidecar", "prepare"]
    assert [one["name"] for one in spec["volumes"]] == ["scratch", "iris-sidecar-data"]


def test_nobody_is_told_when_that_is_not_wanted():
    assert "env" not in named(pod({"irisSidecar": {"application": {"setEnvironment": False}}}), "agent")


def test_two_sidecars_in_one_pod_do_not_collide():
    ports = {"grpc": 14317, "http": 14318, "web": 16920, "ops": 23133}
    spec = pod({"irisSidecar": {"containerName": "second", "ports": ports, "application": {"protocol": "grpc"}}})
    text = next(one["value"] for one in named(spec, "second")["env"] if one["name"] == "SIDECAR_CONFIG")
    doors = yaml.safe_load(text)
    assert doors["receive"]["grpc"]["listen"] == "127.0.0.1:14317" and doors["ops"]["listen"] == "0.0.0.0:23133"
    assert named(spec, "agent")["env"][0]["value"] == "http://127.0.0.1:14317"
    assert named(spec, "second")["livenessProbe"]["httpGet"]["port"] == 23133


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"pod": {"shareProcessNamespace": True}}, "allowSharedProcessNamespace"),
        ({"pod": {"hostNetwork": True}}, "allowHostNetwork"),
        ({"pod": {"containers": [AGENT | {"name": "iris-sidecar"}]}}, "containerName"),
        ({"pod": {"volumes": [{"name": "iris-sidecar-data", "emptyDir": {}}]}}, "containerName"),
        ({"irisSidecar": {"web": {"enabled": True}}}, "existingSecret"),
        ({"irisSidecar": {"forwarding": {}}}, "forwarding"),
        ({"irisSidecar": {"config": {"web": {"api_kee": "x"}}}}, "api_kee"),
    ],
    ids=str,
)
def test_what_is_not_safe_is_refused(values, words):
    assert words in refused(values, CONSUMER)


def test_what_is_acknowledged_is_let_through():
    values = {"pod": {"shareProcessNamespace": True}, "irisSidecar": {"allowSharedProcessNamespace": True}}
    assert pod(values)["shareProcessNamespace"] is True
    values = {"pod": {"hostNetwork": True}, "irisSidecar": {"allowHostNetwork": True}}
    assert pod(values)["hostNetwork"] is True
