"""Parts of a step: what crosses, how often, in which order."""

from __future__ import annotations

import itertools

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import TaskName
from graphdock_cluster.partition.assign import Assignment
from graphdock_cluster.partition.cut import SMALL, partition

TASKS = [TaskName("w", i) for i in range(3)]


def cut(fetches, targets=(), feeds=(), **more):
    graph = tf.get_default_graph()
    return partition(graph, fetches, targets, feeds, Assignment(graph.get_operations(), TASKS, TASKS[0]), **more)


def part_of(found, index):
    return next(p for p in found.parts if p.task.index == index)


def sends(part):
    return [op.get_attr("edge") for op in part.graph.get_operations() if op.type == "Send"]


def test_a_tensor_is_sent_once_to_each_task_that_reads_it():
    with tf.Graph().as_default():
        with tf.device("/job:w/task:0"):
            a = tf.random_normal([3], seed=1, name="a")
        with tf.device("/job:w/task:1"):
            b, c = tf.sin(a), tf.cos(a)
        with tf.device("/job:w/task:2"):
            d = a + b
        found = cut([b, c, d])
    assert sends(part_of(found, 0)) == [a.name, a.name]
    assert part_of(found, 1).receives == [a.name] and part_of(found, 2).receives == [a.name, b.name]
    assert [n for n, _ in part_of(found, 1).fetches] == [0, 1]


def test_a_control_edge_travels_as_an_empty_tensor_once():
    with tf.Graph().as_default():
        with tf.device("/job:w/task:1"):
            first = tf.no_op(name="first")
        with tf.control_dependencies([first]):
            a, b = tf.random_normal([1], seed=1), tf.random_normal([1], seed=2)
        found = cut([a, b])
    assert sends(part_of(found, 1)) == ["^first"] and part_of(found, 0).receives == ["^first"]


def test_what_a_target_groups_sends_it_no_word():
    """A step ends once all of it has run; a NoOp that something else waits for is told all the same."""
    with tf.Graph().as_default():
        ran = []
        for n in (1, 2):
            with tf.device(f"/job:w/task:{n}"):
                ran.append(tf.random_normal([1], seed=n).op)
        both = tf.group(tf.group(*ran), tf.group(*ran[:1]))
        alone = tf.no_op()
        with tf.control_dependencies([both]):
            after = tf.random_normal([1], seed=3)
        found = cut([], [both, alone, both])
        assert {p.task.index: [op.name for op in p.targets] for p in found.parts} == {
            0: [alone.name],
            1: [ran[0].name],
            2: [ran[1].name],
        }
        assert not any(p.sends or p.receives for p in found.parts)
        assert sum(p.sends for p in cut([after], [both]).parts) == 2


def test_small_constants_are_copied_and_large_ones_are_sent():
    with tf.Graph().as_default():
        with tf.device("/job:w/task:1"):
            small = tf.constant(np.ones(SMALL // 8))
            large = tf.constant(np.ones(SMALL // 8 + 1))
        found = cut([tf.reduce_sum(small) + tf.reduce_sum(large)])
    assert sends(part_of(found, 1)) == [large.name]


def test_what_is_fed_goes_to_its_readers_and_cuts_the_graph():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2])
        with tf.device("/job:w/task:1"):
            y = x * 2.0
        with tf.device("/job:w/task:2"):
            z = y + x
        found = cut([z, x], feeds=[x, y])
    assert [p.task.index for p in found.parts] == [2] and found.fed == {1: 0}
    assert [n for n, _ in found.parts[0].feeds] == [1, 0]


def test_a_part_keeps_names_lines_and_attributes():
    with tf.Graph().as_default() as graph:
        with tf.device("/job:w/task:1"):
            v = tf.Variable([1.0], name="v")
            y = tf.nn.relu(v, name="y")
        found = cut([y])
    made = found.parts[0].graph.get_operation_by_name("y")
    assert made.site == graph.get_operation_by_name("y").site and made.device == ""
    assert found.parts[0].graph.get_operation_by_name("v").type == "VarHandleOp"


@pytest.mark.parametrize("seed", range(20))
def test_parts_that_stand_in_order_never_wait_in_a_circle(seed):
    """Parts run by themselves, each in its order, where a receive waits for its send: all end."""
    rng = np.random.default_rng(seed)
    with tf.Graph().as_default():
        tensors = [tf.random_normal([1], seed=i + 1) for i in range(3)]
        for _ in range(40):
            i, j = rng.integers(len(tensors), size=2)
            with tf.device(f"/job:w/task:{rng.integers(3)}"):
                tensors.append(tensors[i] + tensors[j])
        found = cut(tensors[-5:])
    rows = {p.task: [op for op in p.graph.get_operations() if op.type in ("Send", "Recv")] for p in found.parts}
    sent: set[tuple[str, str]] = set()
    at = dict.fromkeys(rows, 0)
    for _ in itertools.count():
        moved = False
        for task, ops in rows.items():
            while at[task] < len(ops):
                op = ops[at[task]]
                if op.type == "Send":
                    sent.add((op.get_attr("edge"), op.get_attr("task")))
                elif (op.get_attr("edge"), str(task)) not in sent:
                    break
                at[task] += 1
                moved = True
        if not moved:
            break
    assert {task: len(ops) for task, ops in rows.items()} == at
    assert sum(p.sends for p in found.parts) == sum(len(p.receives) for p in found.parts)


def test_cutting_is_linear():
    """Ten times the operations are looked at ten times as often: counted in operations made."""
    counts = []
    for size in (100, 1000):
        with tf.Graph().as_default():
            x = tf.random_normal([1], seed=1)
            for i in range(size):
                with tf.device(f"/job:w/task:{i % 3}"):
                    x = tf.sin(x)
            found = cut([x])
            counts.append(sum(len(p.graph.get_operations()) for p in found.parts))
    assert counts[1] / counts[0] == pytest.approx(10, rel=0.05)


def test_what_a_task_reads_before_it_waits_is_a_part_of_its_own():
    """Rows of a table are gathered in a part that receives nothing; what is sent back is written in the part behind it."""
    with tf.Graph().as_default():
        with tf.device("/job:w/task:1"):
            table = tf.Variable(tf.zeros([100, 4]), name="table")
        ids = tf.placeholder(tf.int64, [3])
        with tf.device("/job:w/task:0"):
            loss = tf.reduce_sum((tf.nn.embedding_lookup(table, ids) - 1.0) ** 2)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        found = cut([loss], [train], [ids])
    first, second = [p for p in found.parts if p.task.index == 1]
    assert not first.receives and [op.type for op in first.targets] == ["Send"]
    assert any("Apply" in op.type for op in second.graph.get_operations()) and second.receives
    assert not any(op.type == "Gather" for op in second.graph.get_operations())


def test_a_table_whose_rows_go_by_received_ids_is_read_where_they_are_gathered():
    with tf.Graph().as_default():
        with tf.device("/job:w/task:1"):
            table = tf.Variable(tf.zeros([100, 4]), name="table")
        with tf.device("/job:w/task:0"):
            ids = tf.placeholder(tf.int64, [3]) * 2
            loss = tf.reduce_sum((tf.nn.embedding_lookup(table, ids) - 1.0) ** 2)
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        found = cut([loss], [train])
        again = table.assign_add(tf.ones([100, 4])).op
        ordered = cut([loss], [train, again])
    (only,) = [p for p in found.parts if p.task.index == 1]
    assert {"Gather", "ReadVariableOp"} <= {op.type for op in only.graph.get_operations()}
    assert all(
        list(op.inputs[1].shape) == [3, 4] for p in found.parts for op in p.graph.get_operations() if sends_rows(op)
    )
    (only,) = [p for p in ordered.parts if p.task.index == 1]  # what is written behind the read stays behind it
    kinds = [op.type for op in only.graph.get_operations()]
    assert kinds.index("ReadVariableOp") < kinds.index("AssignAddVariableOp")


def sends_rows(op):
    return op.type == "Send" and op.inputs[1].dtype == tf.float32 and op.inputs[1].shape.ndims


def test_a_fetched_variable_is_read_behind_what_is_received():
    with tf.Graph().as_default():
        with tf.device("/job:w/task:1"):
            v = tf.Variable(1.0, name="v")
        with tf.device("/job:w/task:0"):
            change = tf.identity(v) + 1.0
        add = v.assign_add(change).op
        read = tf.get_default_graph().as_graph_element(v)
        found = cut([read], [add])
    assert len([p for p in found.parts if p.task.index == 1]) == 1
