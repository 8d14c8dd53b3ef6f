"""The protocol's own conformance suite against the real sidecar, in both eras. What is expected to fail stands, with the reason,
in conformance/REVISION.yml; a failure that does not stand there fails, and so does an entry that passes."""

import json
import pathlib
import re
import socket
import subprocess
import tempfile

import node
import sidecar
from sidecar import until

SUITE = ("@modelcontextprotocol/conformance", "0.2.0-alpha.12", "dist/index.js")
HERE = pathlib.Path(__file__).parent / "conformance"


def entries(path):
    """What is expected to fail: scenarios, each with the checks that fail, or None for any."""
    expected = {}
    for entry in re.findall(r"^  - (\S+)$", path.read_text(), re.MULTILINE):
        scenario, _, check = entry.partition(":")
        expected.setdefault(scenario, set())
        expected[scenario] = expected[scenario] | {check} if check else None
    return expected


def conform(url, revision, path):
    with tempfile.TemporaryDirectory(prefix="iris-test-") as folder:
        _, output = node.run([node.package(*SUITE), "server", "--url", url, "--requirements", revision, "-o", folder], 280)
        failing = {}
        for checks in pathlib.Path(folder).glob("**/checks.json"):
            scenario = re.sub(r"^server-(.*)-\d{4}-\d\d-\d\dT.*$", r"\1", checks.parent.name)
            failing[scenario] = {check["id"] for check in json.loads(checks.read_text()) if check["status"] == "FAILURE"}
    total = re.findall(r"^Total: .*$", output, re.MULTILINE)
    print(f"{revision}: {total[-1] if total else 'no total'}")
    assert total and len(failing) > 20, output[-4000:]
    # Extensions and what is not part of the revision are run and not scored.
    scored = {scenario: checks for scenario, checks in failing.items() if not re.search(rf"^  . {scenario} \(", output, re.MULTILINE)}
    expected, wrong = entries(path), []
    for scenario in sorted(scored.keys() | expected.keys()):
        found, known = scored.get(scenario, set()), expected.get(scenario, set())
        if (known is None and not found) or (known is not None and found != known):
            wrong.append(f"{scenario}: fails {sorted(found)}, expected {'any' if known is None else sorted(known)}")
    assert not wrong, "\n".join(wrong)


def the_sidecar(revision):
    def test(binary):
        # The suite runs hundreds of requests in seconds.
        with sidecar.sidecar(binary, {"IRIS__WEB__RATE_LIMIT__MCP": "0"}) as running:
            web = f"http://{running.runtime['web']}"
            until("the store is open", 30, lambda: sidecar.get(f"{web}/api/v1/health")[0] == 200)
            conform(f"{web}/mcp", revision, HERE / f"{revision}.yml")

    test.__name__ = f"the_sidecar_at_{revision.replace('-', '_')}"
    return test


def the_fixture(revision):
    def test(binary):
        example = pathlib.Path(binary).parent / "examples" / "mcp_fixture"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        process = subprocess.Popen([str(example), address])
        try:
            until("the fixture answers", 20, lambda: sidecar.get(f"http://{address}/mcp")[0] in (400, 404, 405, 406))
            conform(f"http://{address}/mcp", revision, HERE / f"fixture-{revision}.yml")
        finally:
            process.kill()
            process.wait(10)

    test.__name__ = f"the_fixture_at_{revision.replace('-', '_')}"
    return test


if __name__ == "__main__":
    sidecar.main(*(make(revision) for make in (the_sidecar, the_fixture) for revision in ("2025-11-25", "2026-07-28")))
