"""The protocol's own conformance suite against the real sidecar, in both eras. What is expected to fail stands, with the reason,
in conformance/REVISION.yml; a failure that does not stand there fails, and so does an entry that passes."""

import pathlib
import re
import socket
import subprocess

import node
import sidecar
from sidecar import until

SUITE = ("@modelcontextprotocol/conformance", "0.2.0-alpha.12", "dist/index.js")
HERE = pathlib.Path(__file__).parent / "conformance"


def conform(url, revision, expected):
    code, output = node.run([node.package(*SUITE), "server", "--url", url, "--requirements", revision, "--expected-failures", str(expected)], 280)
    total = re.findall(r"^Total: .*$", output, re.MULTILINE)
    print(f"{revision}: {total[-1] if total else 'no total'}")
    assert code == 0 and total, output[-6000:]


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
