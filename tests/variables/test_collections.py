"""Collections of a graph, and what scopes and bodies see of them."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.variables.collections import model_variables, moving_average_variables, outermost_graph


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as g:
        yield g


def test_a_collection_keeps_order_and_is_read_as_a_copy():
    for value in (3, 1, 2):
        tf.add_to_collection("mine", value)
    found = tf.get_collection("mine")
    found.append(9)
    assert tf.get_collection("mine") == [3, 1, 2] and tf.get_collection("other") == []
    tf.get_collection_ref("mine").append(4)
    assert tf.get_collection("mine") == [3, 1, 2, 4]


def test_variables_stand_in_theirs():
    both = tf.Variable(1.0)
    fixed = tf.Variable(1.0, trainable=False)
    local = tf.Variable(1.0, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    kinds = [tf.GraphKeys.MODEL_VARIABLES, tf.GraphKeys.MOVING_AVERAGE_VARIABLES]
    other = tf.Variable(1.0, trainable=False, collections=kinds)
    assert tf.global_variables() == [both, fixed] and tf.trainable_variables() == [both]
    assert tf.local_variables() == [local] and model_variables() == [other] == moving_average_variables()


def test_a_scope_is_a_prefix_of_names():
    with tf.name_scope("a"):
        inside = tf.Variable(1.0)
    outside = tf.Variable(1.0)
    assert tf.global_variables("a/") == [inside] and tf.global_variables() == [inside, outside]


def test_graphs_share_nothing():
    tf.add_to_collection("mine", 1)
    with tf.Graph().as_default():
        assert tf.get_collection("mine") == []


def test_in_a_body_the_collections_are_those_of_the_outermost_graph(graph):
    def branch():
        tf.add_to_collection("mine", "inside")
        assert outermost_graph() is graph
        return tf.constant(1.0)

    tf.cond(tf.constant(True), branch, branch)
    assert tf.get_collection("mine") == ["inside", "inside"]


def test_the_names_of_collections_are_those_of_tensorflow():
    keys = tf.GraphKeys
    assert (keys.ASSET_FILEPATHS, keys.EVAL_STEP) == ("asset_filepaths", "eval_step")
    assert (keys.RESOURCES, keys.LOCAL_RESOURCES) == ("resources", "local_resources")
    assert keys.TRAINABLE_RESOURCE_VARIABLES == "trainable_resource_variables"
    assert keys.CONCATENATED_VARIABLES == "concatenated_variables"
    assert (keys.COND_CONTEXT, keys.WHILE_CONTEXT) == ("cond_context", "while_context")
