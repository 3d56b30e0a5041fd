"""Random graphs with every region evaluated from its program, against a NumPy interpreter."""

from __future__ import annotations

import types

import graphdock as tf
import pytest
from graphdock.contracts import hookimpl
from graphdock.plugin.host import Host
from graphdock_testing.region_reference import ReferenceCompiler

#: Fused by llvm and not.
WAYS = [{"backends": ("llvm", "cpu")}, {"backends": ("llvm", "cpu"), "fusion": False}]
#: Where dims of feeds are unknown.
GENERIC = [{**way, "shape_policy": "generic"} for way in WAYS]


@pytest.mark.parametrize("start", range(0, 12, 4))
def test_regions_of_random_graphs_compute_what_their_nodes_do(random_graph, process_host, start):
    compiler = ReferenceCompiler()
    for seed in range(start, start + 4):
        run(random_graph, process_host(Host()), compiler, seed)
    assert len({str(p) for p in compiler.programs_built}) > 5


@pytest.mark.parametrize("start", range(0, 12, 3))
@pytest.mark.sampled(2)
def test_compiled_regions_of_random_graphs_compute_what_their_nodes_do(random_graph, start):
    pytest.importorskip("llvmlite")
    for seed in range(start, start + 3):
        compare(random_graph, seed)


@pytest.mark.parametrize("start", range(0, 6, 3))
def test_regions_of_random_graphs_of_unknown_dims_compute_what_their_nodes_do(random_graph, process_host, start):
    compiler = ReferenceCompiler()
    for seed in range(start, start + 3):
        run(random_graph, process_host(Host()), compiler, seed, unknown=True)
    assert any(a.extent is None for p in compiler.programs_built for a in p.axes)


@pytest.mark.parametrize("start", range(0, 4, 2))
def test_compiled_regions_of_random_graphs_of_unknown_dims_compute_what_their_nodes_do(random_graph, start):
    pytest.importorskip("llvmlite")
    for seed in range(start, start + 2):
        compare(random_graph, seed, GENERIC, unknown=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", range(12, 1012, 20))
def test_many_compiled_regions_of_random_graphs_of_unknown_dims_compute_what_their_nodes_do(random_graph, start):
    pytest.importorskip("llvmlite")
    for seed in range(start, start + 20):
        compare(random_graph, seed, GENERIC, unknown=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", range(12, 2012, 20))
def test_many_compiled_regions_of_random_graphs_compute_what_their_nodes_do(random_graph, start):
    pytest.importorskip("llvmlite")
    for seed in range(start, start + 20):
        compare(random_graph, seed)


def run(random_graph, host, compiler, seed, unknown=False):
    hook = hookimpl(specname="register_region_compilers")(lambda: [compiler])
    host.register("lab", types.SimpleNamespace(register_region_compilers=hook, __name__="lab"))
    policy = "generic" if unknown else "exact"
    compare(random_graph, seed, [{"backends": ("lab", "cpu"), "shape_policy": policy}], host, unknown)


def compare(random_graph, seed, ways=WAYS, host=None, unknown=False):
    """Every value of a random program in each way, two steps long, and the interpreter's. ``unknown``: the dims of its feeds."""
    program = random_graph.Generator(900 + seed).grow(50)
    expected = program.evaluate(program.feeds)
    with tf.Graph().as_default() as graph:
        tensors = program.build(unknown=lambda i: "dims" if unknown else None)
        feeds = {tensors[i]: a for i, a in program.feeds.items()}
        for fields in ways:
            with tf.Session(graph=graph, config=tf.SessionConfig(**fields), host=host) as sess:
                for _ in range(2):  # the second one calls runs of native code
                    got = sess.run([tensors[i] for i in sorted(tensors)], feeds)
            for i, value in zip(sorted(tensors), got, strict=True):
                random_graph.assert_close(value, expected[i], f"{seed}, {fields}: v{i} of\n{program.listing()}")
