"""What is written from the charts' values is fresh."""

import subprocess
import sys

import kube


def test_tables_and_schemas_are_fresh():
    done = subprocess.run([sys.executable, kube.ROOT / "scripts/chart-docs", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
