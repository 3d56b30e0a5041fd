"""Tests about the machine, GraphDefs and benchmarks."""

from __future__ import annotations

import graphdock as tf
import pytest


def test_gpus_are_found_where_sessions_find_them() -> None:
    there = tf.test.is_gpu_available()
    assert bool(tf.test.gpu_device_name()) == there
    assert tf.test.is_gpu_available(cuda_only=True) <= there
    assert not tf.test.is_gpu_available(min_cuda_compute_capability=(99, 0))
    assert tf.test.is_built_with_gpu_support() == tf.test.is_built_with_cuda() >= there
    assert not tf.test.is_built_with_rocm()


def test_a_file_beside_the_script(monkeypatch) -> None:
    import sys

    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/somewhere/script.py", raising=False)
    assert tf.test.test_src_dir_path("data/x.txt") == "/somewhere/data/x.txt"


def _graph_def(value: float, first: str = "a") -> tf.GraphDef:
    with tf.Graph().as_default() as graph:
        for name in (first, "b" if first == "a" else "a"):
            tf.constant(value, name=name)
        return graph.as_graph_def()


def test_graph_defs_are_compared_whatever_their_order() -> None:
    tf.test.assert_equal_graph_def(_graph_def(1.0), _graph_def(1.0, first="b"))
    with pytest.raises(AssertionError, match="node 'a' differs"):
        tf.test.assert_equal_graph_def(_graph_def(1.0), _graph_def(2.0))
    with pytest.raises(AssertionError, match="has no node 'a'"):
        tf.test.assert_equal_graph_def(tf.GraphDef(), _graph_def(2.0))
    with pytest.raises(TypeError, match=r"Expected tf.GraphDef for expected"):
        tf.test.assert_equal_graph_def(tf.GraphDef(), None)


def test_a_benchmark_counts_and_reports(capsys) -> None:
    class Adding(tf.test.Benchmark):
        def benchmark_add(self):
            with tf.Graph().as_default(), tf.Session() as sess:
                v = tf.Variable(0)
                sess.run(v.initializer)
                report = self.run_op_benchmark(sess, v.assign_add(1), min_iters=3, extras={"size": 1})
                return report, sess.run(v)

    report, count = Adding().benchmark_add()
    assert count == 5 and report["iters"] == 3 and report["wall_time"] > 0
    assert "entry { name: 'Adding.benchmark_add' iters: 3" in capsys.readouterr().out


def test_mock_is_the_standard_librarys() -> None:
    from unittest import mock

    assert tf.test.mock is mock
