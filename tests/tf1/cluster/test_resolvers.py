"""Resolvers and what RunConfig reads of ``TF_CONFIG``: values and messages are TensorFlow's (2.21; RunConfig 1.15)."""

from __future__ import annotations

import json

import graphdock as tf
import pytest
from graphdock.errors import ConfigError

Resolvers = tf.contrib.cluster_resolver
CLUSTER = {"chief": ["h0:1"], "ps": ["h1:1", "h2:1"], "worker": ["h3:1", "h4:1", "h5:1"]}


@pytest.fixture
def said(monkeypatch):
    def say(**table):
        monkeypatch.setenv("TF_CONFIG", json.dumps(table))

    return say


def test_a_simple_one_says_what_it_was_given():
    spec = tf.train.ClusterSpec(CLUSTER)
    made = Resolvers.SimpleClusterResolver(spec, "m:1", "worker", 2, "e", {"GPU": 8}, "grpc")
    assert made.cluster_spec() is spec and made.environment == "e" and made.num_accelerators() == {"GPU": 8}
    assert (made.task_type, made.task_id, made.rpc_layer) == ("worker", 2, "grpc")
    assert made.master() == "grpc://m:1" and made.master("ps", 1) == "grpc://h2:1"
    assert made.master("worker", 0, "ray") == "ray://h3:1"
    made.task_type, made.task_id, made.rpc_layer = "ps", 0, None
    assert (made.task_type, made.task_id, made.master("ps", 0)) == ("ps", 0, "h1:1")
    assert Resolvers.SimpleClusterResolver(spec).num_accelerators() == {}
    for wrong, text in (
        (lambda: Resolvers.SimpleClusterResolver(CLUSTER), "cluster_spec must be a `tf.train.ClusterSpec`"),
        (lambda: Resolvers.SimpleClusterResolver(spec, 3), "master must be a string"),
    ):
        with pytest.raises(TypeError, match=text):
            wrong()


def test_one_that_reads_the_environment(said):
    made = Resolvers.TFConfigClusterResolver()
    said()
    assert not made.cluster_spec() and made.master() == "" and made.task_type is made.task_id is made.rpc_layer is None
    said(cluster=CLUSTER, task={"type": "worker", "index": "1"}, rpc_layer="grpc")
    assert made.cluster_spec() == tf.train.ClusterSpec(CLUSTER) and (made.task_type, made.task_id) == ("worker", 1)
    assert made.master() == "grpc://h4:1" and made.master("ps", 1, "x") == "x://h2:1"
    assert Resolvers.TFConfigClusterResolver("chief", 0, "ray", "e").master() == "ray://h0:1"
    assert Resolvers.TFConfigClusterResolver(environment="e").environment == "e"
    made.task_type, made.task_id, made.rpc_layer = "ps", 1, "r"
    assert made.master() == "r://h2:1"
    said(cluster={"worker": ["a:1"]})
    assert made.master() == ""
    said(session_master="there", cluster=CLUSTER)
    assert made.master() == "there"
    said(cluster=CLUSTER)
    with pytest.raises(ValueError, match="nobody says which task"):
        Resolvers.TFConfigClusterResolver().master()
    said(cluster={"worker": ["a:1"]})
    alone = Resolvers.TFConfigClusterResolver().num_accelerators()
    assert "CPU" not in alone, "asked of a session of this process"


@pytest.mark.parametrize("text", ["{", "[1]", '{"task": 3}', pytest.param("[" * 100_000, id="deep")])
def test_what_is_no_table_is_named(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ConfigError, match="TF_CONFIG"):
        tf.estimator.RunConfig()


def test_a_union_of_resolvers():
    def simple(cluster, *more, **named):
        return Resolvers.SimpleClusterResolver(tf.train.ClusterSpec(cluster), *more, **named)

    first = simple({"w": ["a:1"]}, "m", "w", 3, rpc_layer="grpc", num_accelerators={"GPU": 2})
    made = tf.distribute.cluster_resolver.UnionResolver(first, simple({"w": ["b:1"], "ps": {2: "c:1"}}))
    assert made.cluster_spec().as_dict() == {"ps": {2: "c:1"}, "w": ["a:1", "b:1"]}
    assert made.master() == "grpc://m" and made.master("w", 1) == "b:1" and made.master("ps", 2, "r") == "r://c:1"
    assert (made.task_type, made.task_id, made.rpc_layer, made.environment) == ("w", 3, "grpc", "")
    assert made.num_accelerators() == {"GPU": 2}
    named = Resolvers.UnionClusterResolver(first, task_type="x", task_id=1, rpc_layer="r")
    assert (named.task_type, named.task_id, named.rpc_layer) == ("x", 1, "r")
    numbered = Resolvers.UnionClusterResolver(first, simple({"w": {4: "d:1"}}))
    assert numbered.cluster_spec().as_dict() == {"w": {0: "a:1", 4: "d:1"}}
    with pytest.raises(KeyError, match="Duplicate keys detected"):
        Resolvers.UnionClusterResolver(numbered, simple({"w": {4: "e:1"}})).cluster_spec()
    for wrong, kind, text in (
        (lambda: Resolvers.UnionClusterResolver(), ValueError, "At least one"),
        (lambda: Resolvers.UnionClusterResolver(first, x=1), ValueError, "Unexpected kwargs"),
        (lambda: Resolvers.UnionClusterResolver(3), TypeError, "must be a sub-class of"),
    ):
        with pytest.raises(kind, match=text):
            wrong()


# -- RunConfig


def facts(config):
    return (
        config.task_type,
        config.task_id,
        config.is_chief,
        config.master,
        config.num_ps_replicas,
        config.num_worker_replicas,
        config.global_id_in_cluster,
    )


@pytest.mark.parametrize(
    ("task", "want", "filters"),
    [
        (("chief", 0), ("chief", 0, True, "grpc://h0:1", 2, 4, 0), ("/job:ps", "/job:chief")),
        (("worker", 1), ("worker", 1, False, "grpc://h4:1", 2, 4, 2), ("/job:ps", "/job:worker/task:1")),
        (("ps", 1), ("ps", 1, False, "grpc://h2:1", 2, 4, 5), ("/job:ps", "/job:worker", "/job:chief", "/job:master")),
        (("evaluator", 3), ("evaluator", 3, False, "", 0, 0, None), None),
    ],
)
def test_a_run_on_a_cluster(said, task, want, filters):
    said(cluster=CLUSTER, task={"type": task[0], "index": task[1]}, eval_session_master="e", service={"a": 1})
    config = tf.estimator.RunConfig()
    assert facts(config) == want and config.service == {"a": 1}
    assert config.cluster_spec == tf.train.ClusterSpec({} if task[0] == "evaluator" else CLUSTER)
    assert config.evaluation_master == ("e" if task[0] == "evaluator" else "")
    found = config.session_config
    assert (found and found.device_filters) == filters
    assert facts(config.replace(save_summary_steps=3)) == want
    mine = tf.ConfigProto()
    assert tf.estimator.RunConfig(session_config=mine).session_config is mine


def test_a_run_on_one_machine(said, tmp_path):
    local = ("worker", 0, True, "", 0, 1, 0)
    assert facts(tf.estimator.RunConfig()) == local and not tf.estimator.RunConfig().cluster_spec
    said(cluster={"chief": ["a:1"]}, task={"type": "chief", "index": 0}, model_dir=str(tmp_path))
    config = tf.estimator.RunConfig()
    assert facts(config) == ("chief", 0, True, "", 0, 1, 0) and config.model_dir == str(tmp_path)
    with pytest.raises(ValueError, match="must have the same value as the model_dir in TF_CONFIG"):
        tf.estimator.RunConfig(model_dir="other")
    said(cluster={"master": ["a:1"], "worker": ["b:1"]}, task={"type": "worker", "index": 0})
    assert facts(tf.estimator.RunConfig()) == ("worker", 0, False, "grpc://b:1", 0, 2, 1)
    said(session_master="m", eval_session_master="n")
    assert tf.estimator.RunConfig().master == "m" and tf.estimator.RunConfig().evaluation_master == "n"


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"cluster": {"worker": ["a"]}, "task": {"type": "worker", "index": 0}}, 'it must have one "chief" node'),
        ({"cluster": {"chief": ["a", "b"]}, "task": {"type": "chief", "index": 0}}, 'must have only one "chief"'),
        ({"cluster": CLUSTER}, "task type must be set"),
        ({"cluster": CLUSTER, "task": {"type": "ps"}}, "task index must be set"),
        ({"cluster": CLUSTER, "task": {"type": "ps", "index": -1}}, "non-negative"),
        ({"cluster": CLUSTER, "task": {"type": "x", "index": 0}}, "x is not a valid task_type in the cluster_spec"),
        ({"cluster": CLUSTER, "task": {"type": "ps", "index": 2}}, "2 is not a valid task_id for task_type ps"),
        ({"cluster": {**CLUSTER, "master": ["m"]}}, "job `chief` is not supported"),
        ({"cluster": {"master": ["m"]}, "task": {"type": "evaluator", "index": 0}}, "task_type `evaluator` is not"),
        ({"task": {"type": "ps"}}, "task type must be WORKER"),
        ({"task": {"index": 1}}, "task index must be 0"),
        ({"model_dir": ""}, "should be non-empty"),
    ],
)
def test_what_is_wrong_is_named(said, table, text):
    said(**table)
    with pytest.raises(ValueError, match=text):
        tf.estimator.RunConfig()
    said(service=3)
    with pytest.raises(TypeError, match='"service"'):
        tf.estimator.RunConfig()


class _StoppedError(Exception):
    """Ends a model function."""


def test_an_estimator_on_a_cluster_has_its_variables_on_the_servers(said, tmp_path):
    said(cluster=CLUSTER, task={"type": "worker", "index": 1})
    devices = []

    def model(features, labels, mode):
        weight = tf.get_variable("w", initializer=1.0)
        devices.extend([(weight * 2.0).op.device, weight.device])
        raise _StoppedError

    made = tf.estimator.Estimator(model, str(tmp_path))
    with pytest.raises(_StoppedError):
        made.train(lambda: tf.data.Dataset.from_tensors((1.0, 2.0)), steps=1)
    assert devices[0] == "/job:worker/task:1" and devices[1].startswith("/job:ps/task:")


def test_an_estimator_trains_on_the_target_that_is_said(said, tmp_path):
    def model(features, labels, mode):
        loss = tf.reduce_sum(tf.get_variable("w", initializer=3.0) * features)
        train = tf.train.GradientDescentOptimizer(0.5).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    server = tf.train.Server({"chief": ["chief:0"]})
    said(cluster={"chief": ["chief:0"]}, task={"type": "chief", "index": 0}, session_master=server.target)
    config = tf.estimator.RunConfig(tf_random_seed=1)
    assert config.master == server.target
    made = tf.estimator.Estimator(model, str(tmp_path), config).train(
        lambda: tf.data.Dataset.from_tensors(([1.0], 0.0)).repeat(2)
    )
    assert made.get_variable_value("w") == 2.0
    with tf.Graph().as_default():
        kept = tf.get_variable("w", shape=[])
        with tf.Session(server.target) as session:
            assert session.run(kept) == 2.0, "it lies on the server"
    server.stop()
