"""The policy's expressions, evaluated by an implementation of CEL, applied to pods.

What this does not show: Kubernetes' own evaluation. Its constructors of patches and objects are read as maps here."""

import re

import celpy
import celpy.adapter
import jsonpatch
import pytest

from kube import render, validate

AGENT = {"name": "agent", "image": "example.com/agent:1"}


def policy(values=None):
    manifests, _ = render({"mode": "injector"} | (values or {}))
    return next(one["spec"] for one in manifests if one["kind"] == "MutatingAdmissionPolicy")


def evaluate(expression, **names):
    """A CEL expression with `JSONPatch{op: ...}` and `Object...{name: ...}` as maps."""

    def as_map(match):
        return re.sub(r"\w+(\.\w+)*\{", "{", match[0])

    expression = re.sub(r"\b(JSONPatch|Object(\.\w+)*)\{", as_map, expression)
    expression = re.sub(r"(?<=[{ ])(op|path|value|name|env|spec|containers): ", r'"\1": ', expression)
    environment = celpy.Environment()
    program = environment.program(environment.compile(expression))
    return program.evaluate({name: celpy.json_to_cel(value) for name, value in names.items()})


def plain(value):
    """What Kubernetes would make of it: JSON."""
    if isinstance(value, dict):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    kinds = {celpy.celtypes.BoolType: bool, celpy.celtypes.IntType: int, celpy.celtypes.StringType: str}
    return next(kind(value) for cel, kind in kinds.items() if isinstance(value, cel))


def admitted(spec, values=None):
    """The pod as it leaves the policy, or nothing when the policy passes it over."""
    spec = {"containers": [AGENT]} | spec
    pod, rules = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "agent"}, "spec": spec}, policy(values)
    if not all(bool(evaluate(one["expression"], object=pod)) for one in rules["matchConditions"]):
        return None
    variables = {one["name"]: plain(evaluate(one["expression"], object=pod)) for one in rules["variables"]}
    for mutation in rules["mutations"]:
        if mutation["patchType"] == "JSONPatch":
            patch = plain(evaluate(mutation["jsonPatch"]["expression"], object=pod, variables=variables))
            pod = jsonpatch.apply_patch(pod, patch)
        else:
            merge = plain(evaluate(mutation["applyConfiguration"]["expression"], object=pod))
            for one in merge["spec"]["containers"]:
                container = next(own for own in pod["spec"]["containers"] if own["name"] == one["name"])
                names = {entry["name"] for entry in one["env"]}
                kept = [entry for entry in container.get("env", []) if entry["name"] not in names]
                container["env"] = kept + one["env"]
    validate([pod])
    return pod["spec"]


def test_a_plain_pod_gets_the_container_of_the_library():
    spec = admitted({})
    sample, _ = render({"mode": "sidecar"})
    library = next(one for one in sample if one["kind"] == "Deployment")["spec"]["template"]["spec"]
    assert spec["initContainers"] == library["initContainers"]
    assert spec["volumes"] == library["volumes"]
    assert spec["containers"][0]["env"][0] == {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://127.0.0.1:4318"}


def test_what_a_pod_already_has_stays():
    own = {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://elsewhere:4318"}
    spec = admitted(
        {
            "initContainers": [{"name": "prepare", "image": "example.com/prepare:1"}],
            "containers": [AGENT | {"env": [{"name": "A", "value": "b"}]}, AGENT | {"name": "other", "env": [own]}],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
        },
        {"existingSecret": "keys", "web": {"enabled": True}},
    )
    assert [one["name"] for one in spec["initContainers"]] == ["iris-sidecar", "prepare"]
    assert [one["name"] for one in spec["volumes"]] == ["scratch", "iris-sidecar-data", "iris-sidecar-secret"]
    assert spec["containers"][0]["env"][0] == {"name": "A", "value": "b"} and len(spec["containers"][0]["env"]) == 3
    assert spec["containers"][1]["env"] == [own]


@pytest.mark.parametrize(
    "spec",
    [
        {"shareProcessNamespace": True},
        {"hostNetwork": True},
        {"initContainers": [{"name": "iris-sidecar", "image": "example.com/iris:1"}]},
    ],
    ids=str,
)
def test_pods_that_are_not_safe_or_have_it_are_passed_over(spec):
    assert admitted(spec) is None


def test_a_pod_that_says_no_is_no_pod_that_says_yes():
    assert admitted({"shareProcessNamespace": False, "hostNetwork": False}) is not None


def test_awkward_text_survives():
    values = {"config": {"eval": {"required_evidence": ['a"b\\c\n<d>&${env:X:-y}']}}}
    spec = admitted({}, values)
    sample, _ = render({"mode": "sidecar"} | values)
    library = next(one for one in sample if one["kind"] == "Deployment")["spec"]["template"]["spec"]
    assert spec["initContainers"] == library["initContainers"]
