"""Starts a real sidecar on free ports in a temporary home, and asks it things. Standard library only."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

DOORS = {
    "IRIS__RECEIVE__GRPC__LISTEN": "127.0.0.1:0",
    "IRIS__RECEIVE__HTTP__LISTEN": "127.0.0.1:0",
    "IRIS__WEB__LISTEN": "127.0.0.1:0",
    "IRIS__OPS__LISTEN": "127.0.0.1:0",
}


def until(what, seconds, probe):
    """Waits until `probe` answers something true, and gives it back."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = probe()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")


def get(url, headers=None):
    """Status and body of a GET."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=10) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


class Sidecar:
    """One running sidecar."""

    def __init__(self, binary, home, env=None, prefix=()):
        self.binary, self.home, self.env, self.prefix = binary, pathlib.Path(home), dict(env or {}), list(prefix)
        self.process = None

    def start(self):
        # A name from the surroundings must not change what is tested.
        env = {name: value for name, value in os.environ.items() if not name.startswith(("IRIS_", "OTEL_"))}
        env |= DOORS | self.env | {"IRIS_HOME": str(self.home)}
        (self.home / "runtime.json").unlink(missing_ok=True)
        self.process = subprocess.Popen([*self.prefix, self.binary, "serve"], env=env, stdout=subprocess.DEVNULL, stderr=sys.stderr)
        until("the sidecar announces itself", 30, self._announced)
        until("the sidecar is ready", 30, lambda: get(f"http://{self.runtime['ops']}/readyz")[0] == 200)
        return self

    def _announced(self):
        assert self.process.poll() is None, f"the sidecar ended with {self.process.returncode}"
        with contextlib.suppress(OSError, ValueError):
            self.runtime = json.loads((self.home / "runtime.json").read_text())
            return True
        return False

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(20) == 0, "the drain failed"

    def kill(self):
        self.process.kill()
        self.process.wait(10)

    def traces(self, **query):
        text = "&".join(f"{name}={value}" for name, value in ({"limit": 1000} | query).items())
        status, body = get(f"http://{self.runtime['web']}/api/v1/traces?{text}")
        return json.loads(body)["traces"] if status == 200 else []

    def trace(self, trace_id):
        status, body = get(f"http://{self.runtime['web']}/api/v1/traces/{trace_id}")
        return json.loads(body) if status == 200 else None


@contextlib.contextmanager
def sidecar(binary, env=None, prefix=(), keys=None):
    """A sidecar for the time of a `with` block; `keys` is the text of a configuration file."""
    home = tempfile.mkdtemp(prefix="iris-test-")
    if keys:
        pathlib.Path(home, "config.yaml").write_text(keys)
    running = Sidecar(binary, home, env, prefix).start()
    try:
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            running.stop()
        shutil.rmtree(home, ignore_errors=True)


def main(*tests):
    """Runs the tests one after the other and ends with a line that counts them."""
    binary, failed = os.path.abspath(sys.argv[1]), 0
    for test in tests:
        begun = time.monotonic()
        try:
            test(binary)
            print(f"test {test.__name__} ... ok ({time.monotonic() - begun:.1f} s)", flush=True)
        except Exception as error:
            failed += 1
            print(f"test {test.__name__} ... FAILED: {type(error).__name__}: {error}", flush=True)
    print(f"{len(tests) - failed} passed, {failed} failed", flush=True)
    sys.exit(1 if failed else 0)
