"""A third-party wheel in a clean environment: found, chosen, blocked, upgraded, removed. Nothing comes from an index.

``make wheelhouse`` fills the folder that everything is installed from.
"""

import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOY = ROOT / "tests" / "packages" / "graphdock-toy"

CHOSEN = """\
import json
import graphdock as tf
from graphdock.plugin.host import default_host

x = tf.placeholder(tf.float32, [2])
y = tf.square(x) + 1.0
with tf.Session() as session:
    result = session.run(y, {x: [1.0, 2.0]}).tolist()
    import graphdock_toy
    scaled = session.run(graphdock_toy.scale(y, factor=10.0), {x: [1.0, 2.0]}).tolist()
    backends = session.config.backends
from graphdock_toy.device import LAUNCHES

host = default_host()
print(json.dumps({
    "backends": backends,
    "version": host.backend("toy").version,
    "package": host.ops.get("toy.Scale").package,
    "result": result,
    "scaled": scaled,
    "launches": LAUNCHES,
    "memory": host.open_device("toy:0").memory,
    "stages": {e.plugin: e.stage for e in host.ledger},
}))
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory, environments, graphdock_wheel):
    """graphdock's wheel and two versions of the toy's."""
    out = tmp_path_factory.mktemp("wheels")
    source = tmp_path_factory.mktemp("source") / "toy"
    shutil.copytree(TOY, source, ignore=shutil.ignore_patterns("__pycache__"))
    text = (source / "pyproject.toml").read_text()
    (source / "pyproject.toml").write_text(text.replace('version = "0.1.0"', 'version = "0.2.0"'))
    return {
        "graphdock": graphdock_wheel,
        "toy 0.1.0": environments.wheel(TOY, out),
        "toy 0.2.0": environments.wheel(source, out),
    }


@pytest.fixture(scope="module")
def environment(tmp_path_factory, environments, wheels):
    """A clean environment with graphdock in it."""
    place = environments.Environment(tmp_path_factory.mktemp("environment"))
    place.install(wheels["graphdock"])
    return place


@pytest.mark.exhaustive
def test_a_third_party_wheel_from_installation_to_removal(environment, wheels, builder):
    assert set(environment.plugins()) == builder.shipped()

    environment.install(wheels["toy 0.1.0"])
    row = environment.plugins()["toy"]
    assert (row["distribution"], row["version"], row["stage"]) == ("graphdock-toy", "0.1.0", "found")
    assert row["devices"] == ["toy"]
    assert row["kernels"] > 20
    assert row["ops"] == 4

    (environment.work / "graphdock.toml").write_text(
        '[session]\nbackends = ["toy", "cpu"]\n[session.options.toy]\nmemory = 4096\n'
    )
    done = environment.run("-c", CHOSEN)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["backends"] == ["toy", "cpu"]
    assert said["version"] == "0.1.0"
    assert said["package"] == "graphdock_toy"
    assert said["result"] == [2.0, 5.0]
    assert said["scaled"] == [20.0, 50.0]
    assert said["launches"] == {"square": 2, "add": 2, "scale": 1}
    assert said["memory"] == 4096
    assert said["stages"]["toy"] == "registered"

    row = environment.plugins(GRAPHDOCK_BLOCK="graphdock-toy")["toy"]
    assert (row["stage"], row["cause"]) == ("blocked", "GRAPHDOCK_BLOCK")
    done = environment.run("-c", CHOSEN, GRAPHDOCK_BLOCK="toy")
    assert done.returncode == 1
    assert "plugin 'toy' (graphdock-toy 0.1.0) can't be used: blocked: GRAPHDOCK_BLOCK" in done.stderr

    environment.install(wheels["toy 0.2.0"])
    assert environment.plugins()["toy"]["version"] == "0.2.0"
    assert json.loads(environment.run("-c", CHOSEN).stdout)["version"] == "0.2.0"
    assert environment.run("-m", "graphdock", "doctor", "--strict", "toy").returncode == 0

    environment.uninstall("graphdock-toy")
    assert set(environment.plugins()) == builder.shipped()
    done = environment.run("-c", CHOSEN)
    assert done.returncode == 1
    assert "no installed plugin provides the backend 'toy'" in done.stderr
    assert (
        "hint: install the package that brings it; if that is graphdock-toy: pip install graphdock-toy" in done.stderr
    )
    done = environment.run("-m", "graphdock", "config")
    assert done.returncode == 1
    assert "graphdock.toml:2: no installed plugin provides the backend 'toy'" in done.stderr
    assert "pip install graphdock-toy" in done.stderr


def test_the_wheels_hold_what_is_read_without_importing(environment, wheels):
    import zipfile

    names = zipfile.ZipFile(wheels["graphdock"]).namelist()
    for name in (
        "graphdock/py.typed",
        "graphdock/ops/_gen/opdefs.py",
        "graphdock_std/graphdock-plugin.toml",
        "graphdock_cpu/graphdock-plugin.toml",
        "graphdock_testing/queued/graphdock-plugin.toml",
    ):
        assert name in names
    assert not [n for n in names if "__pycache__" in n or n.startswith("tests/")]
    assert "graphdock_toy/graphdock-plugin.toml" in zipfile.ZipFile(wheels["toy 0.1.0"]).namelist()
