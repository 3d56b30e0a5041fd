"""Tasks of operations: requests, groups, bodies, and what is refused."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.contracts import TaskName
from graphdock_cluster.partition.assign import Assignment

PS, W0, W1 = TaskName("ps", 0), TaskName("worker", 0), TaskName("worker", 1)
TASKS = [PS, W0, W1]


def assigned(own=W0):
    graph = tf.get_default_graph()
    made = Assignment(graph.get_operations(), TASKS, own)
    return {op.name: str(made[op]) for op in graph.get_operations()}


def test_what_asks_for_nothing_runs_on_the_sessions_own_task():
    with tf.Graph().as_default():
        tf.constant(1.0, name="a")
        assert assigned(W1) == {"a": "/job:worker/task:1"}


@pytest.mark.parametrize(
    ("device", "own", "task"),
    [
        ("/job:ps", W0, "/job:ps/task:0"),
        ("/job:worker", W1, "/job:worker/task:1"),
        ("/job:worker", PS, "/job:worker/task:0"),
        ("/task:1", W0, "/job:worker/task:1"),
        ("/job:worker/task:1/device:cpu:0", W0, "/job:worker/task:1"),
        ("/job:worker/replica:0/task:1/cpu:0", W0, "/job:worker/task:1"),
        ("/cpu:0", W1, "/job:worker/task:1"),
    ],
)
def test_a_request_names_a_task_in_whole_or_in_part(device, own, task):
    with tf.Graph().as_default():
        with tf.device(device):
            tf.constant(1.0, name="a")
        assert assigned(own) == {"a": task}


def test_what_touches_a_variable_and_what_is_colocated_stays_on_its_task():
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0, name="v")
        more = v.assign_add(2.0, read_value=False)
        with tf.colocate_with(more):
            near = tf.constant(3.0, name="near")
        found = assigned()
        assert found[more.name] == found[near.op.name] == found["v"] == "/job:ps/task:0"


def test_a_loop_lies_where_its_body_asks_to():
    with tf.Graph().as_default():

        def body(i):
            with tf.device("/job:worker/task:1"):
                return i + 1

        with tf.device(None):
            out = tf.while_loop(lambda i: i < 3, body, [0], name="loop")
        assert assigned()[out.op.name] == "/job:worker/task:1"


def test_a_task_that_the_cluster_lacks_is_refused_with_the_operations_name_and_line():
    with tf.Graph().as_default():
        with tf.device("/job:chief/task:3"):
            tf.constant(1.0, name="far")
        with pytest.raises(tf.errors.InvalidArgumentError, match="far asks for the device /job:chief/task:3") as caught:
            assigned()
        assert "test_assign.py" in caught.value.site
        assert "/job:ps/task:0, /job:worker/task:0" in caught.value.expected


def test_two_of_one_group_that_ask_for_different_tasks_are_refused():
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0, name="v")
        with tf.colocate_with(v.op):
            more = tf.constant(2.0)
        more.op._set_device("/job:worker/task:1")
        with pytest.raises(tf.errors.InvalidArgumentError, match="which it must share a task with") as caught:
            assigned()
        assert "/job:worker/task:1" in str(caught.value) and "/job:ps/task:0" in str(caught.value)


def test_operations_on_a_resource_run_where_it_lies_whatever_they_ask_for():
    """As TensorFlow 2.21 places them, which its partition graphs show."""
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0, name="v")
            queue = tf.FIFOQueue(3, [tf.float32])
        with tf.device("/job:worker/task:1"):
            number = tf.constant(1.0)
            on = [tf.is_variable_initialized(v).op, v.assign_add(number, read_value=False), queue.enqueue(number)]
        placed = assigned()
    assert {placed[op.name] for op in on} == {"/job:ps/task:0"} and placed[number.op.name] == "/job:worker/task:1"


def test_a_body_that_asks_for_another_task_than_its_loop_is_refused_with_the_rewrite():
    with tf.Graph().as_default():

        def body(i):
            with tf.device("/job:worker/task:1"):
                return i + 1

        with tf.device("/job:worker/task:0"):
            tf.while_loop(lambda i: i < 3, body, [0], name="loop")
        with pytest.raises(tf.errors.InvalidArgumentError, match="a body lies on one task") as caught:
            assigned()
        assert "one loop per task" in caught.value.hint


def test_a_fault_of_what_a_step_does_not_need_is_no_fault_of_the_step():
    with tf.Graph().as_default() as graph:
        a = tf.constant(1.0, name="a")
        with tf.device("/job:chief"):
            tf.constant(2.0, name="b")
        assert Assignment(graph.get_operations(), TASKS, W0)[a.op] == W0


def test_a_variable_lies_on_the_same_task_in_every_step():
    """A loop that updates two variables, of which one asks for a task, has both there, also in steps without the loop."""
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(1.0, name="v")
        w = tf.Variable(2.0, name="w")

        def body(i):
            with tf.control_dependencies([v.assign_add(1.0), w.assign_add(1.0)]):
                return tf.identity(i + 1)

        tf.while_loop(lambda i: i < 3, body, [0])
        assert Assignment(graph.get_operations(), TASKS, W0)[w.initializer] == PS
