"""The binary under test is named by IRIS_BINARY."""

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "clients"))


@pytest.fixture(scope="session")
def binary():
    path = os.environ.get("IRIS_BINARY")
    assert path and os.access(path, os.X_OK), "IRIS_BINARY names no program: build it first"
    return os.path.abspath(path)


@pytest.fixture(scope="session")
def check_config(binary):
    """What `check-config` says: the text of what is in effect; fails when it refuses."""

    def check(environment, *arguments):
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("IRIS_", "OTEL_"))}
        command = [binary, "check-config", *arguments]
        done = subprocess.run(command, env=clean | environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        # A name that is probably not right is only warned of.
        assert "is no setting" not in done.stderr, done.stderr
        return done.stdout

    return check
