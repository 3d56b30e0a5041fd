"""Random graphs with every region evaluated from its program, against a NumPy interpreter."""

from __future__ import annotations

import types

import graphdock as tf
import pytest
from graphdock.contracts import hookimpl
from graphdock.plugin.host import Host
from graphdock_testing.region_reference import ReferenceCompiler


@pytest.mark.parametrize("start", range(0, 12, 4))
def test_regions_of_random_graphs_compute_what_their_nodes_do(random_graph, process_host, start):
    compiler = ReferenceCompiler()
    for seed in range(start, start + 4):
        run(random_graph, process_host(Host()), compiler, seed)
    assert len({str(p) for p in compiler.programs_built}) > 5


def run(random_graph, host, compiler, seed):
    hook = hookimpl(specname="register_region_compilers")(lambda: [compiler])
    host.register("lab", types.SimpleNamespace(register_region_compilers=hook, __name__="lab"))
    program = random_graph.Generator(900 + seed).grow(50)
    with tf.Graph().as_default() as graph:
        tensors = program.build()
        feeds = {tensors[i]: a for i, a in program.feeds.items()}
        with tf.Session(graph=graph, config=tf.SessionConfig(backends=["lab", "cpu"]), host=host) as sess:
            got = sess.run([tensors[i] for i in sorted(tensors)], feeds)
    expected = program.evaluate(program.feeds)
    for i, value in zip(sorted(tensors), got, strict=True):
        random_graph.assert_close(value, expected[i], f"v{i} of\n{program.listing()}")
