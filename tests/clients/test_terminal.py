"""On a terminal, as a person starts it: the log lines are coloured and nothing panics."""

import os
import pty
import select
import signal
import subprocess
import tempfile
import time

import sidecar


def run_on_terminal(command, env, wanted, seconds):
    """What a command writes to a terminal until `wanted` stands in it; then it is asked to end."""
    main, side = pty.openpty()
    process = subprocess.Popen(command, env=env, stdin=side, stdout=side, stderr=side)
    os.close(side)
    text, deadline, asked = b"", time.monotonic() + seconds, False
    while time.monotonic() < deadline:
        if not select.select([main], [], [], 0.2)[0]:
            continue
        try:
            chunk = os.read(main, 65536)
        except OSError:
            break
        text += chunk
        if wanted in text and not asked:
            asked = True
            process.send_signal(signal.SIGTERM)
        if not chunk:
            break
    os.close(main)
    code = process.wait(20)
    return code, text.decode(errors="replace")


def surroundings(home):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("IRIS_", "OTEL_"))}
    return env | sidecar.DOORS | {"IRIS_HOME": str(home)}


def serve_starts_and_stops(binary):
    with tempfile.TemporaryDirectory(prefix="iris-test-") as folder:
        code, text = run_on_terminal([binary, "serve"], surroundings(f"{folder}/home"), b"ready", 60)
    assert code == 0 and "panicked" not in text, (code, text)
    assert "\x1b[" in text, "colours on a terminal"


def the_demo_shows_its_addresses_and_waits(binary):
    with tempfile.TemporaryDirectory(prefix="iris-test-") as folder:
        code, text = run_on_terminal([binary, "demo"], surroundings(f"{folder}/home"), b"serving until Ctrl-C", 120)
    assert code == 0 and "panicked" not in text, (code, text)
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://" in text


if __name__ == "__main__":
    sidecar.main(serve_starts_and_stops, the_demo_shows_its_addresses_and_waits)
