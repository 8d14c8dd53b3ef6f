"""The bill of materials lists what the program is made of."""

import json
import re
import subprocess
import tomllib

import kube


def test_it_lists_packages_library_and_data():
    done = subprocess.run([kube.ROOT / "scripts/sbom"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    bill = json.loads(done.stdout)
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "iris-sidecar")
    found = {(one["name"], one.get("version")): one for one in bill["components"]}
    library = next(one for one in bill["components"] if one["name"] == "libduckdb")
    assert library["hashes"][0]["content"] in (kube.ROOT / "scripts/duckdb-lib").read_text()
    for data in ["opentelemetry-proto", "list prices of model calls", "shapes of credentials", "names of services"]:
        assert any(one["name"] == data and one["type"] == "data" for one in bill["components"]), data
    locked = {(one["name"], one["version"]): one for one in tomllib.loads((kube.ROOT / "Cargo.lock").read_text())["package"]}
    cargo = [one for one in bill["components"] if one.get("purl", "").startswith("pkg:cargo/")]
    for one in cargo:
        assert (one["name"], one["version"]) in locked
        assert one["licenses"][0]["expression"] != "NOASSERTION", one["name"]
    # What the manifests name is there, what only tests or other systems need is not.
    named = tomllib.loads((kube.ROOT / "Cargo.toml").read_text())["dependencies"]
    names = {one["name"] for one in cargo}
    assert {name for name in named if name != "iris-core"} <= names
    assert not {"insta", "proptest", "protox", "windows-sys"} & names
    assert re.search("libduckdb-sys", done.stdout) and ("iris-core", bill["metadata"]["component"]["version"]) in found
