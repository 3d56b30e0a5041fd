"""The plugin that graphdock ships blocked: not listed, not loaded, until one line allows it; then any program runs on it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import graphdock as tf
import pytest
from graphdock.errors import ConfigError, PluginError
from graphdock.plugin.discovery import discover, manifest_path
from graphdock.plugin.host import Host
from graphdock_testing import queued

ROOT = Path(__file__).parents[2]
ASK = """
import json, atexit
from graphdock.plugin.host import default_host
@atexit.register
def said():
    device, stages = default_host().open_device("queued:0"), {e.plugin: e.stage for e in default_host().ledger}
    print(json.dumps({"launches": device.launches, "replays": device.replays, "stages": stages}))
"""


def child(tmp_path, text, **variables):
    (tmp_path / "program.py").write_text(text)
    env = {k: v for k, v in os.environ.items() if not k.startswith("GRAPHDOCK_")}
    return subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**env, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def readme():
    """The README's program."""
    return re.search(r"```python\n(import graphdock.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)[1]


@pytest.fixture(params=["variable", "file"])
def allowed(request, tmp_path):
    """The line that allows it, in the environment or in the configuration file."""
    if request.param == "variable":
        return {"GRAPHDOCK_PLUGINS": "queued"}
    (tmp_path / "graphdock.toml").write_text('[plugins]\nallow = ["queued"]\n')
    return {}


@pytest.mark.sampled(2)
def test_the_program_of_the_readme_runs_on_it(tmp_path, allowed):
    done = child(tmp_path, ASK + readme(), GRAPHDOCK_BACKENDS="queued,cpu", **allowed)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["stages"]["queued"] == "registered"
    assert said["launches"] > 5 and said["replays"] >= 98
    assert "fallback" not in done.stderr.lower(), done.stderr


def test_it_is_not_there_unless_it_is_allowed(tmp_path):
    done = child(tmp_path, readme(), GRAPHDOCK_BACKENDS="queued,cpu")
    assert done.returncode == 1
    assert "graphdock ships it blocked" in done.stderr
    assert 'allow = ["queued"] under [plugins], or GRAPHDOCK_PLUGINS=queued' in done.stderr


def test_listings_leave_it_out():
    host = Host()
    assert "queued" not in {e.plugin for e in host.ledger} | {s.name for s in host.plugins()}
    (state,) = [s for s in host.plugins(every=True) if s.name == "queued"]
    assert state.stage == "blocked" and state.hidden
    with pytest.raises(PluginError, match="ships it blocked"):
        host.backend("queued")


def test_allowing_it_blocks_nobody_else(site):
    site.plugin("mine")
    both = {e.plugin: e.stage for e in Host(allow=["queued"]).ledger}
    assert both["mine"] == both["queued"] == "found"
    assert {e.plugin: e.stage for e in Host(allow=["mine"]).ledger}["mine"] == "found"
    none = {e.plugin: e.stage for e in Host(allow=[]).ledger}
    assert none["mine"] == "blocked" and "queued" not in none
    three = {e.plugin: e.stage for e in Host(allow=["queued", "cpu"]).ledger}
    assert three["mine"] == "blocked" and three["queued"] == "found"


def test_block_comes_first():
    assert Host(allow=["queued"], block=["queued"]).plugins(every=True)[-1].stage == "blocked"


def test_a_name_that_is_nearly_its_own_gets_a_hint():
    with pytest.raises(ConfigError, match="no plugin or distribution named 'queud'") as caught:
        Host(allow=["queud"])
    assert "queued" in caught.value.hint


def test_a_host_of_a_test_registers_one_of_its_own():
    host = Host()
    assert queued.install(host, seed=3).driver is not queued.install(Host(), seed=3).driver
    assert {e.plugin: e.stage for e in host.ledger}["queued"] == "registered"


def test_its_seed_is_an_option():
    def order(seed):
        host = Host(allow=["queued"])
        options = {"queued": {"seed": seed}}
        config = tf.SessionConfig(backends=("queued", "cpu"), options=options)
        with tf.Graph(host=host).as_default(), tf.Session(config=config, host=host) as sess:
            assert sess.run(tf.square(tf.placeholder_with_default([3.0], [1]))).tolist() == [9.0]
        return host.open_device("queued:0").driver.scheduler.random.random()

    assert order(7) == order(7) != order(8)
    with pytest.raises(ConfigError, match="has no option 'sed'"):
        host = Host(allow=["queued"])
        tf.Session(config=tf.SessionConfig(backends=("queued", "cpu"), options={"queued": {"sed": 1}}), host=host)


def test_its_manifest_lies_beside_its_module_in_a_package_of_several_plugins():
    opt_in = [f for f in discover() if f.opt_in]
    assert [(f.plugin, f.module, f.package) for f in opt_in] == [
        ("queued", "graphdock_testing.queued", "graphdock_testing")
    ]
    assert Path(manifest_path(opt_in[0].module)).parent.name == "queued"
    assert manifest_path("graphdock_testing.plugin") == manifest_path("graphdock_testing")


def test_anyone_may_ship_a_plugin_blocked(site):
    site.plugin("trial")
    (points,) = site.folder.glob("*trial*/entry_points.txt")
    points.write_text(points.read_text().replace("[graphdock]", "[graphdock.opt_in]"))
    assert "trial" not in {e.plugin for e in Host().ledger}
    with pytest.raises(PluginError, match="graphdock-trial ships it blocked"):
        Host().backend("trial")
    assert Host(allow=["trial"]).backend("trial").distribution == "graphdock-trial"
