"""TensorFlow's ConfigProto: what becomes of each field."""

from __future__ import annotations

import logging

import graphdock as tf
import numpy as np
import pytest
from graphdock.config.session_config import effective_config
from graphdock.errors import ConfigError
from graphdock.passes.pipeline import simplifications
from graphdock.plugin.host import Host
from graphdock_tensorflow import config_proto
from graphdock_testing import queued


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch):
    monkeypatch.setattr(config_proto, "_told", set())


def test_a_real_programs_options_run(caplog):
    config = tf.ConfigProto(
        allow_soft_placement=True,
        log_device_placement=False,
        gpu_options=tf.GPUOptions(per_process_gpu_memory_fraction=0.333, allow_growth=True),
        device_count={"GPU": 0},
    )
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
    config.inter_op_parallelism_threads = 4
    with caplog.at_level(logging.WARNING, "graphdock"):
        for _ in range(2):
            with tf.Session(config=config) as sess, tf.device("/gpu:0"):
                assert sess.run(tf.constant(2) + 3) == 5
                assert sess.config.fallback == "allow" and sess.config.fusion is True
    told = [r.getMessage() for r in caplog.records if "ConfigProto" in r.getMessage()]
    assert [t.split(" = ")[0] for t in told] == [
        "ConfigProto.gpu_options.per_process_gpu_memory_fraction",
    ]  # and nothing of allow_growth: memory is taken as needed, which is what it asks for
    assert "memory_limit" in told[0]


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"allow_soft_placement": True}, "fallback", "allow"),
        ({"log_device_placement": True}, "log_device_placement", True),
        ({"intra_op_parallelism_threads": 3}, "intra_op_threads", 3),
        ({"inter_op_parallelism_threads": 2}, "inter_op_threads", 2),
        ({"inter_op_parallelism_threads": -1}, "inter_op_threads", 1),  # in the thread that calls
        ({"operation_timeout_in_ms": 1500}, "operation_timeout", 1.5),
        ({"device_count": {"CPU": 2}}, "device_count", {"cpu": 2}),
        ({"device_filters": ["/job:ps", "/job:worker/task:1"]}, "device_filters", ("/job:ps", "/job:worker/task:1")),
        ({"isolate_session_state": True}, "isolate_session_state", True),
        ({"graph_options": {"enable_bfloat16_sendrecv": True}}, "bfloat16_sendrecv", True),
        ({"graph_options": {"optimizer_options": {"global_jit_level": -1}}}, "fusion", False),
        (
            {"graph_options": {"optimizer_options": {"opt_level": tf.OptimizerOptions.L0}}},
            "passes",
            dict.fromkeys(simplifications(), False),
        ),
    ],
)
def test_what_is_translated(given, field, value):
    config = effective_config(tf.ConfigProto(**given))
    assert getattr(config, field) == value
    assert config.source(field) == "code"


def test_a_step_of_level_l0_runs_no_pass():
    """The passes that came later, ``gates`` and ``sums``, went on at the level that means none."""
    x, weights = tf.placeholder(tf.float32, [3, 20]), tf.Variable(np.ones((20, 20), np.float32))
    loss = tf.add_n([tf.reduce_sum(tf.matmul(x * float(k), weights)) for k in range(4)])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    found = {}
    for level in (tf.OptimizerOptions.L0, tf.OptimizerOptions.L1):
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.opt_level = level
        with tf.Session(config=config) as sess:
            explained = sess.explain(train, {x: np.ones((3, 20))})
        found[level] = [r.name for r in explained.plan.reports], sum(row.op == "MatMulSum" for row in explained.rows)
    assert found == {
        tf.OptimizerOptions.L0: ([], 0),
        tf.OptimizerOptions.L1: ([n for n, p in simplifications().items() if p.on], 1),
    }


def test_what_is_not_set_is_left_to_the_others(monkeypatch):
    monkeypatch.setenv("GRAPHDOCK_FALLBACK", "forbid")
    assert effective_config(tf.ConfigProto(operation_timeout_in_ms=10)).fallback == "forbid"
    assert effective_config(tf.ConfigProto(allow_soft_placement=True)).fallback == "allow"


def test_every_field_has_a_meaning_or_a_reason(caplog):
    """Each field set in turn is translated, or one line says why it means nothing."""

    def leaves(message, path=()):
        for field in message.DESCRIPTOR.fields:
            part = getattr(message, field.name)
            if hasattr(part, "ListFields"):
                yield from leaves(part, (*path, field.name))
            else:
                yield (*path, field.name), part

    other = {bool: True, int: 1, float: 0.5, str: "x"}
    for (*outer, name), default in leaves(tf.ConfigProto()):
        proto = message = tf.ConfigProto()
        for step in outer:
            message = getattr(message, step)
        part = getattr(message, name)
        if name == "device_count":
            part["cpu"] = 1
        elif hasattr(part, "add"):
            part.add()
        elif hasattr(part, "append"):
            part.append("x")
        else:
            setattr(message, name, other[type(default)])
        caplog.clear()
        with caplog.at_level(logging.WARNING, "graphdock"):
            given = proto.to_session_config()._given
        lines = [r.getMessage() for r in caplog.records]
        dotted = ".".join((*outer, name))
        assert bool(given) != bool(lines) or dotted.endswith(("opt_level", "allow_growth")), dotted
        assert all(line.startswith(f"ConfigProto.{dotted} = ") for line in lines)


def test_another_message_is_no_configuration():
    with pytest.raises(ConfigError, match="config is not a SessionConfig"):
        tf.Session(config=tf.GPUOptions())


def test_a_count_of_zero_hides_a_device_type():
    host = Host()
    queued.install(host)
    x = tf.constant([1.0, 2.0])
    with tf.Session(host=host, config=tf.SessionConfig(backends=["queued", "cpu"], device_count={"queued": 0})) as sess:
        np.testing.assert_array_equal(sess.run(x + 1), [2, 3])
        assert {d.type for d in sess._planner.devices} == {"cpu"}
    host.close()


def test_an_alias_counts_for_its_type(monkeypatch):
    """The count of ``gpu`` was looked up as that of a type of its own, and ignored."""
    host = Host()
    queued.install(host)
    by_name = host.device_type
    monkeypatch.setattr(host, "device_type", lambda name: by_name("queued" if name == "gpu" else name))
    config = tf.SessionConfig(backends=["queued", "cpu"], device_count={"gpu": 2})
    with tf.Session(host=host, config=config) as sess:
        assert len([d for d in sess._planner.devices if d.type == "queued"]) == 2
    with pytest.raises(ConfigError, match="'queued' and 'gpu' are one device type"):
        tf.Session(host=host, config=tf.SessionConfig(backends=["queued"], device_count={"queued": 1, "gpu": 2}))
    host.close()


def test_what_belongs_to_clusters(caplog):
    """The bytes are TensorFlow 2.21's of the same message; on one task filters hide nothing."""
    config = tf.ConfigProto(device_filters=["/job:ps"], isolate_session_state=True)
    config.cluster_def.CopyFrom(tf.train.ClusterSpec({"ps": ["a:1"]}).as_cluster_def())
    config.experimental.executor_type = "x"
    assert (
        config.SerializeToString()
        == b'"\x07/job:psr\x0f\n\r\n\x02ps\x12\x07\x08\x00\x12\x03a:1x\x01\x82\x01\x03\x1a\x01x'
    )
    with caplog.at_level(logging.WARNING, "graphdock"), tf.Session(config=config) as sess:
        assert sess.run(tf.constant(2) + 3) == 5
    told = [r.getMessage() for r in caplog.records if "ConfigProto" in r.getMessage()]
    assert [t.split(" = ")[0] for t in told] == [
        "ConfigProto.cluster_def.job",
        "ConfigProto.experimental.executor_type",
    ]
    assert "by its target" in told[0] and "SessionConfig(executor=...)" in told[1]
    with pytest.raises(ConfigError, match=r"device_filters is wrong(.|\n)*'/job:ps'(.|\n)*got 'ps/:3'"):
        tf.Session(config=tf.ConfigProto(device_filters=["ps/:3"]))
