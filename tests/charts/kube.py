"""Renders charts with Helm's own engine and holds manifests against the schemas of Kubernetes."""

import functools
import pathlib

import helm_python
import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART, LIBRARY = ROOT / "helm/iris-sidecar", ROOT / "helm/iris-sidecar-lib"
CASES = sorted((CHART / "ci").glob("*-values.yaml"))

# The oldest that native sidecars need, one between, and the newest that the package knows.
VERSIONS = ["1.29.0", "1.33.0", "1.37.0"]

# Resources that are not Kubernetes' own: no schema is at hand.
FOREIGN = {"monitoring.coreos.com/v1"}

# Since when a kind exists.
SINCE = {"MutatingAdmissionPolicy": 36, "MutatingAdmissionPolicyBinding": 36}


@functools.cache
def loaded(chart):
    return helm_python.Chart.load(str(chart))


def render(values, chart=CHART, name="iris", namespace="agents"):
    """The manifests, and the notes."""
    files = loaded(chart).render(values, name=name, namespace=namespace)
    notes = "".join(text for path, text in files.items() if path.endswith("NOTES.txt"))
    texts = [text for path, text in sorted(files.items()) if not path.endswith("NOTES.txt")]
    return [one for text in texts for one in yaml.safe_load_all(text) if one], notes


def refused(values, chart=CHART):
    """Why the values are refused; fails when they are not."""
    try:
        render(values, chart)
    except helm_python.HelmError as error:
        return str(error)
    raise AssertionError(f"rendered: {values}")


def validate(manifests):
    """Strictly, against each version that has the kind."""
    held = 0
    for manifest in manifests:
        if manifest["apiVersion"] in FOREIGN:
            continue
        for version in VERSIONS:
            if int(version.split(".")[1]) >= SINCE.get(manifest["kind"], 0):
                kubernetes_validate.validate(manifest, version, strict=True)
                held += 1
    assert held, "nothing was held against a schema"


def pods(manifests):
    """The specs of all pods."""
    for manifest in manifests:
        if manifest["kind"] == "Pod":
            yield manifest["spec"]
        elif "template" in manifest.get("spec", {}):
            yield manifest["spec"]["template"]["spec"]


def containers(pod):
    return [*pod.get("initContainers", []), *pod["containers"]]


def named(pod, name):
    return next(one for one in containers(pod) if one["name"] == name)


def restricted(pod):
    """What the restricted Pod Security Standard forbids about a pod."""
    wrong = [name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.get(name)]
    allowed = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
    for volume in pod.get("volumes", []):
        wrong += [f"volume {volume['name']}: {kind}" for kind in volume.keys() - {"name"} - allowed]
    whole = pod.get("securityContext", {})
    for one in containers(pod):
        own = one.get("securityContext", {})
        either = whole | own
        checks = {
            "runAsNonRoot": either.get("runAsNonRoot") is True and either.get("runAsUser") != 0,
            "seccompProfile": either.get("seccompProfile", {}).get("type") in ("RuntimeDefault", "Localhost"),
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is False,
            "privileged": not own.get("privileged"),
            "capabilities": own.get("capabilities", {}).get("drop") == ["ALL"] and not own["capabilities"].get("add"),
            "hostPort": not any(port.get("hostPort") for port in one.get("ports", [])),
        }
        wrong += [f"{one['name']}: {name}" for name, holds in checks.items() if not holds]
    return wrong
