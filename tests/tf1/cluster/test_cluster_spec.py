"""``tf.train.ClusterSpec`` as TensorFlow's: values and messages were taken from there."""

from __future__ import annotations

import graphdock as tf
import pytest

SPEC = {"ps": ["a:1", "b:2"], "w": {1: "c:3", 4: "d:4"}}


def test_jobs_and_tasks():
    spec = tf.train.ClusterSpec(SPEC)
    assert repr(spec) == f"ClusterSpec({SPEC!r})" and spec.as_dict() == SPEC and spec.jobs == ["ps", "w"]
    assert spec.num_tasks("w") == 2 and spec.task_indices("w") == [1, 4] and spec.task_address("w", 4) == "d:4"
    assert spec.job_tasks("w") == [None, "c:3", None, None, "d:4"]
    assert spec and not tf.train.ClusterSpec({})
    assert (
        spec
        == tf.train.ClusterSpec(spec)
        == tf.train.ClusterSpec(spec.as_cluster_def())
        != tf.train.ClusterSpec({"ps": ["a"]})
    )


def test_messages():
    made = tf.train.ClusterSpec(SPEC).as_cluster_def()
    assert isinstance(made, tf.train.ClusterDef)
    server = tf.train.ServerDef(cluster=made, job_name="w", task_index=1, protocol="grpc")
    again = tf.train.ServerDef.FromString(server.SerializeToString())
    assert tf.train.ClusterSpec(again.cluster).as_dict() == SPEC
    # written by TensorFlow 2.21: ClusterSpec({"ps": ["a:1"]}).as_cluster_def().SerializeToString()
    assert (
        tf.train.ClusterSpec({"ps": ["a:1"]}).as_cluster_def().SerializeToString()
        == b"\n\x0d\n\x02ps\x12\x07\x08\x00\x12\x03a:1"
    )


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda s: s.num_tasks("x"), ValueError, "No such job in cluster: 'x'"),
        (lambda s: s.job_tasks("z"), ValueError, "No such job in cluster: 'z'"),
        (lambda s: s.task_address("w", 2), ValueError, "No task with index 2 in job 'w'"),
        (lambda s: tf.train.ClusterSpec(3), TypeError, "`cluster` must be a dictionary"),
        (lambda s: tf.train.ClusterSpec({"a": 3}), TypeError, "The tasks for job 'a' must be a list or a dictionary"),
        (lambda s: tf.train.ClusterSpec({"a": {"x": "b"}}), ValueError, "invalid literal for int"),
        (lambda s: tf.train.ClusterSpec({"a": [3]}), TypeError, "Task address 3 must be bytes or unicode"),
        (lambda s: tf.train.ClusterSpec({3: ["a"]}), TypeError, "Job name 3 must be bytes or unicode"),
    ],
)
def test_what_is_wrong_is_named(call, kind, text):
    with pytest.raises(kind, match=text):
        call(tf.train.ClusterSpec(SPEC))
