"""Libraries of patterns: imported when a plan holds an anchor where they are for, and held to what they announce."""

from __future__ import annotations

import dataclasses
import itertools
import json
import subprocess
import sys

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import PatternLibrary, hookimpl
from graphdock.errors import PluginError
from graphdock.plugin.host import Host

SOURCE = """
import graphdock as tf
from graphdock.contracts import Operand, Pattern

def by_hand(x):
    return tf.exp(tf.tanh(x))

ALL = [Pattern("both", "Tanh", {"x": Operand((None,))}, by_hand, lambda x: tf.identity(x), not_on=("toy",))]
"""


def host_with(library):
    host = Host()

    class Plugin:
        @hookimpl
        def register_patterns(self):
            return [library]

    host.register("lab", Plugin())
    return host


def plan(host, build):
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [3])
        with tf.Session(host=host) as session:
            return session.explain(build(x), {x: [1.0, 2.0, 3.0]}).plan


@pytest.fixture
def library(tmp_path, monkeypatch):
    (tmp_path / "lab_patterns.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "lab_patterns:ALL"
    sys.modules.pop("lab_patterns", None)


def test_a_library_is_imported_when_a_plan_holds_an_anchor(library):
    host = host_with(PatternLibrary(library, ("Tanh",)))
    plan(host, tf.exp)
    assert "lab_patterns" not in sys.modules
    found = plan(host, lambda x: tf.exp(tf.tanh(x)))
    assert "lab_patterns" in sys.modules
    assert [n.compiler for n in found.placement.notes] == ["lab.both"]


def test_where_it_is_for_no_device_it_is_not_imported(library):
    host = host_with(PatternLibrary(library, ("Tanh",), not_on=("cpu",)))
    plan(host, lambda x: tf.exp(tf.tanh(x)))
    assert "lab_patterns" not in sys.modules


@pytest.mark.parametrize(
    "library_of",
    [{"anchors": ("Exp",)}, {"anchors": ("Tanh",), "not_on": ("gpu",)}, {"anchors": ("Tanh",), "listed": True}],
)
def test_a_library_that_holds_what_it_does_not_announce_is_named(library, library_of):
    host = host_with(PatternLibrary(library, **library_of))
    with pytest.raises(
        PluginError, match="plugin 'lab': the library 'lab_patterns:ALL' holds what it does not announce"
    ):
        host.patterns.all()


def test_those_of_std_are_what_it_announces_and_no_plan_without_anchors_imports_them():
    tf.default_host().backend("std")
    assert len(tf.default_host().patterns.all()) > 300
    code = (
        "import json, sys, graphdock as tf\n"
        "x = tf.placeholder(tf.float32, [2])\n"
        "with tf.Session() as session: session.run(tf.nn.softmax(tf.nn.relu(x)), {x: [1.0, 2.0]})\n"
        "print(json.dumps([m for m in sys.modules if m.startswith('graphdock_std.patterns')]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


INSTALLED = """\
import graphdock as tf
from graphdock.contracts import Operand, Pattern, hookimpl

@hookimpl
def register_patterns():
    return [Pattern("both", "Tanh", {"x": Operand((None,))}, lambda x: tf.exp(tf.tanh(x)), lambda x: tf.identity(x))]
"""
HISTORIES = list(
    itertools.permutations(["other backends", "the second's ops", "the first's", "a plan", "a listing"], 3)
)


def before(host, what):
    if what == "other backends":
        with tf.Session(host=host, config=tf.SessionConfig(backends=("second", "cpu"))):
            pass
    elif what == "the second's ops":
        host.ops.names()
    elif what == "the first's":
        host.backend("first")
    elif what == "a plan":
        plan(host, tf.exp)
    else:
        assert host.ledger


@pytest.mark.parametrize("history", HISTORIES, ids=" - ".join)
@pytest.mark.sampled(4)
def test_which_patterns_apply_depends_on_what_is_installed_and_not_on_what_ran_before(site, builder, history):
    """The first of the plugins by name has a node that both want, whatever was loaded before."""
    for name in ("second", "first"):
        hooks = 'hooks = ["register_patterns"]'
        manifest = builder.MANIFEST.format(name=name).replace("[plugin]", "[plugin]\n" + hooks)
        site.plugin(name, INSTALLED, manifest=manifest)
    host = Host()
    for what in history:
        before(host, what)
    found = plan(host, lambda x: tf.exp(tf.tanh(x)))
    assert [n.compiler for n in found.placement.notes] == ["first.both"]


def test_a_plugin_with_patterns_names_the_hook_in_its_manifest(site, builder):
    """Or no plan could know of them: it is imported for its manifest's sake, or not at all."""
    manifest = builder.MANIFEST.format(name="silent").replace("[plugin]", "[plugin]\nhooks = []")
    site.plugin("silent", INSTALLED, manifest=manifest)
    host = Host()
    plan(host, lambda x: tf.exp(tf.tanh(x)))
    with pytest.raises(PluginError, match="implements 'register_patterns', and its manifest does not say so"):
        host.backend("silent")


@pytest.mark.parametrize("in_library", [True, False])
def test_a_pattern_for_its_plugins_own_kernels_is_looked_for_where_that_is_listed(library, in_library, monkeypatch):
    import lab_patterns
    from graphdock.contracts import KernelDef

    monkeypatch.setattr(lab_patterns, "ALL", [dataclasses.replace(p, listed=True) for p in lab_patterns.ALL])
    host = Host()

    class Plugin:
        @hookimpl
        def register_patterns(self):
            return [PatternLibrary(library, ("Tanh",), listed=True)] if in_library else lab_patterns.ALL

        @hookimpl
        def register_kernels(self):
            return [KernelDef("Exp", "cpu", lambda ctx: np.exp)]

    host.register("lab", Plugin())
    for backends, used in ((("cpu",), 0), (("lab", "cpu"), 1), (("cpu", "lab"), 1)):
        with tf.Graph(host=host).as_default():
            x = tf.placeholder(tf.float32, [3])
            with tf.Session(host=host, config=tf.SessionConfig(backends=backends)) as session:
                notes = session.explain(tf.exp(tf.tanh(x)), {x: [1.0, 2.0, 3.0]}).plan.placement.notes
        assert [n.compiler for n in notes] == ["lab.both"] * used
