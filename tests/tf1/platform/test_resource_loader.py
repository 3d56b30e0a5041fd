"""``tf.resource_loader`` and ``tf.sysconfig``: files beside the caller, versions, headers."""

from __future__ import annotations

import os

import graphdock as tf
import pytest

HERE = os.path.dirname(os.path.abspath(__file__))


def test_files_beside_the_caller() -> None:
    assert tf.resource_loader.get_data_files_path() == HERE
    assert tf.resource_loader.get_root_dir_with_all_resources() == HERE
    path = tf.resource_loader.get_path_to_datafile("test_app.py")
    assert path == os.path.join(HERE, "test_app.py") == tf.resource_loader.readahead_file_path(path)
    with open(path, "rb") as file:
        assert tf.resource_loader.load_resource("test_app.py") == file.read()
    with pytest.raises(OSError, match="no_such_file"):
        tf.resource_loader.load_resource("no_such_file")


def test_facts_of_the_build() -> None:
    assert tf.version.GIT_VERSION == tf.GIT_VERSION == f"v{tf.VERSION}"
    assert tf.GRAPH_DEF_VERSION == 134 and tf.GRAPH_DEF_VERSION_MIN_PRODUCER == 0
    assert os.path.isfile(os.path.join(tf.sysconfig.get_include(), "graphdock", "kernel.h"))
    assert tf.sysconfig.get_compile_flags() == [f"-I{tf.sysconfig.get_include()}"]
    assert tf.sysconfig.get_link_flags() == []
    with pytest.raises(tf.errors.UnimplementedError, match="no library to link"):
        tf.sysconfig.get_lib()


def test_the_horizon_of_compatibility() -> None:
    assert tf.compat.forward_compatible(2019, 1, 1) and not tf.compat.forward_compatible(2020, 1, 1)
    with tf.compat.forward_compatibility_horizon(2020, 6, 1):
        assert tf.compat.forward_compatible(2020, 1, 1)
    assert not tf.compat.forward_compatible(2020, 1, 1)


def test_variable_op_scope_is_a_variable_scope() -> None:
    with tf.Graph().as_default(), tf.variable_op_scope([], None, "layer", reuse=tf.AUTO_REUSE) as scope:
        assert tf.get_variable("w", []).op.name == "layer/w" and scope.reuse is tf.AUTO_REUSE
