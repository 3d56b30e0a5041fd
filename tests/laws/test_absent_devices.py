"""A backend that is listed and has no device on this machine: passed over by the policy of fallback, and never in silence."""

from __future__ import annotations

import logging

import graphdock as tf
import pytest
from graphdock.errors import DeviceUnavailable, InvalidArgumentError, PluginError
from graphdock.plugin.host import Host


@pytest.fixture
def chip(site, builder, process_host):
    """The plugin ``chip``, whose probe finds no board; returns a function that runs a program on it and cpu."""
    source = builder.device_source("chip", "raise DeviceUnavailable('no board', 'plug one in')")
    site.plugin("chip", source, manifest=builder.device_manifest("chip"))
    process_host(Host())

    def run(backends=("chip", "cpu"), device=None, explain=False, **config):
        with tf.Graph().as_default() as graph, tf.device(device):
            v = tf.Variable([1.0, 2.0], name="v")
            y = tf.negative(v, name="minus")
            with tf.Session(graph=graph, config=tf.SessionConfig(backends=backends, **config)) as session:
                session.run(v.initializer)
                return session.explain(y) if explain else session.run(y).tolist()

    return run


def warnings(caplog):
    return [r.getMessage() for r in caplog.records if r.name == "graphdock" and r.levelno == logging.WARNING]


def test_the_session_runs_on_the_next_backend_and_says_so(chip, caplog):
    with caplog.at_level(logging.WARNING, "graphdock"):
        assert chip() == [-1.0, -2.0]
    assert warnings(caplog) == ["no device chip here (code), the session runs on cpu:0: no board"]


def test_allow_says_it_in_explain_alone(chip, caplog):
    with caplog.at_level(logging.WARNING, "graphdock"):
        explained = chip(fallback="allow", explain=True)
    assert warnings(caplog) == []
    assert "absent  no device chip: no board" in str(explained).splitlines()
    assert explained.facts()["absent"] == {"chip": "no board"}


@pytest.mark.parametrize("call", [dict(fallback="forbid"), dict(backends=["chip"]), dict(backends=["chip", "std"])])
def test_where_nothing_else_may_run_it_is_an_error(chip, call):
    with pytest.raises(DeviceUnavailable) as caught:
        chip(**call)
    assert caught.value.reason == "no device chip: no board"
    assert caught.value.hint == "plug one in"


@pytest.mark.parametrize("fallback", ["forbid", "warn", {"default": "warn", "Neg": "allow"}])
def test_a_scope_that_asks_for_it_is_an_error(chip, fallback):
    with pytest.raises((InvalidArgumentError, DeviceUnavailable), match="chip"):
        chip(device="/device:chip:0", fallback=fallback)


def test_a_scope_that_asks_for_it_moves_under_allow_and_explain_says_why(chip):
    assert chip(device="/device:chip:0", fallback="allow") == [-1.0, -2.0]
    rows = {row.node: row for row in chip(device="/device:chip:0", fallback="allow", explain=True).rows}
    assert rows["minus"].device == "cpu:0"
    assert rows["minus"].why == "FALLBACK (allow): this session has no chip:0"


def test_options_of_a_plugin_that_is_not_here_pass_and_a_slip_in_its_name_is_told(chip, caplog):
    with caplog.at_level(logging.WARNING, "graphdock"):
        assert chip(fallback="allow", options={"chpi": {"speed": 2}, "elsewhere": {"speed": 2}}) == [-1.0, -2.0]
    (said,) = warnings(caplog)
    assert said == "options['chpi'] are nobody's here: no plugin of that name is installed; did you mean 'chip'?"


def test_a_probe_that_fails_is_a_fault_and_stops_the_session(site, builder, process_host):
    site.plugin("bus", builder.device_source("bus", "raise OSError(5)"), manifest=builder.device_manifest("bus"))
    process_host(Host())
    with pytest.raises(PluginError, match="the probe of 'bus'"):
        tf.Session(config=tf.SessionConfig(backends=["bus", "cpu"], fallback="allow"))
