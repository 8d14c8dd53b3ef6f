"""Alerts and dashboard speak of metrics that a running sidecar has, in expressions that Prometheus understands."""

import json
import re
import urllib.request

import promql_parser
import pytest
import sidecar as clients
import yaml

import kube

ALERTS = yaml.safe_load((kube.ROOT / "deploy/prometheus/alerts.yaml").read_text())
RULES = [rule for group in ALERTS["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((kube.ROOT / "deploy/grafana/dashboard.json").read_text())
PANELS = DASHBOARD["panels"]
SPAN = {
    "traceId": "0af7651916cd43dd8448eb211c80319c",
    "spanId": "b7ad6b7169203331",
    "name": "chat",
    "startTimeUnixNano": "1700000000000000000",
    "endTimeUnixNano": "1700000001000000000",
    "attributes": [{"key": "openinference.span.kind", "value": {"stringValue": "LLM"}}],
}


def expressions():
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in PANELS:
        for target in panel["targets"]:
            # Grafana fills its variables in before Prometheus sees the text.
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*")


def labels(text):
    """Metric names with the names of their labels, as `/metrics` lists them."""
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(r"([a-z_]+)(?:\{(.*)\})? [0-9.e+-]+", line)
        if match:
            found.setdefault(match[1], set()).update(re.findall(r'(\w+)="', match[2] or ""))
    return found


@pytest.fixture(scope="module")
def exposed(binary):
    # Nobody listens there: the metrics of forwarding exist all the same.
    with clients.sidecar(binary, {"IRIS__FORWARD__ENDPOINT": "http://127.0.0.1:9"}) as running:
        body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}).encode()
        request = urllib.request.Request(f"http://{running.runtime['http']}/v1/traces", body, {"content-type": "application/json"})
        assert urllib.request.urlopen(request, timeout=10).status == 200

        def lists():
            found = labels(clients.get(f"http://{running.runtime['ops']}/metrics")[1].decode())
            return found if "iris_pipeline_lag_records" in found else None

        return clients.until("the pipeline reports its lanes", 20, lists)


@pytest.mark.parametrize(("where", "expression"), list(expressions()), ids=lambda text: text if " " not in text else None)
def test_every_metric_is_exposed(where, expression, exposed):
    promql_parser.parse(expression)
    named = set(re.findall(r"\b(?:iris|otelcol)_[a-z_]+", expression))
    assert named and named <= exposed.keys(), f"{where}: {named - exposed.keys()} is no metric of a running sidecar"
    for grouped in re.findall(r"(?:by|without) \(([^)]*)\)", expression):
        for label in grouped.replace(" ", "").split(","):
            assert label == "instance" or any(label in exposed[name] for name in named), f"{where}: {label} is no label"


def test_every_alert_says_what_it_means():
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert {"summary", "description"} <= rule["annotations"].keys()


def test_the_dashboard_has_a_place_for_every_panel():
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in PANELS}
    assert len(places) == len(PANELS)
    assert {panel["datasource"]["uid"] for panel in PANELS} == {"${datasource}"}
    names = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    used = {name for panel in PANELS for target in panel["targets"] for name in re.findall(r"\$([a-z]+)\b", target["expr"])}
    assert used <= names
