"""Nodes of constants alone are folded with graphdock's own kernels wherever the session runs."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host


@pytest.fixture
def folded(toy, process_host):
    """``folded(backends)``: the op types and the result of ``x + sqrt([4, 9])``, of which the toy device has no Sqrt."""

    def run(backends, block=()):
        process_host(Host(block=block))
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [2])
            y = x + tf.sqrt(tf.constant([4.0, 9.0]))
            config = tf.SessionConfig(backends=backends, fallback="forbid")
            with tf.Session(graph=graph, config=config) as session:
                ops = [row.op for row in session.explain(y).rows if row.kernel != "transfer"]
                return ops, session.run(y, {x: np.zeros(2)}).tolist()

    return run


@pytest.mark.parametrize("backends", [["cpu"], ["toy", "cpu"], ["toy"]])
def test_constants_fold_whichever_backends_are_listed(folded, backends):
    assert folded(backends) == (["Add"], [2.0, 3.0])


def test_what_is_blocked_folds_nothing(folded):
    with pytest.raises(tf.errors.KernelNotFoundError, match="no kernel for Sqrt"):
        folded(["toy"], block=["cpu"])


def test_another_packages_kernels_fold_nothing(folded, toy, builder):
    """Installing a package changes no program that does not name it, even one with a device on host memory that comes first."""
    source = builder.device_source("aaa", "return [DeviceInfo('aaa')]")
    source = source.replace("super().__init__(info)", "super().__init__(info); self.memory_space = 'host'")
    sevens = "lambda ctx: lambda x, y: y.fill(7)"
    source += (
        "\n@hookimpl(specname='register_kernels')\ndef register_kernels():\n"
        f"    return [KernelDef('Sqrt', d, {sevens}, name='sevens_' + d, priority=99) for d in ('cpu', 'aaa')]\n"
    )
    toy.plugin("aaa", source, manifest=builder.device_manifest("aaa"))
    assert folded(["toy"]) == (["Add"], [2.0, 3.0])
    assert folded(["toy", "aaa"])[1] == [7.0, 7.0], "named, it does"
