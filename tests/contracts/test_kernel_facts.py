"""Names in a KernelDef that nothing has: refused when it is made, or when its op is first asked for a kernel."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock import ops
from graphdock.contracts import KernelDef, ViewRule
from graphdock.contracts.kernel_facts import check_against, unknown_names
from graphdock.errors import InvalidArgumentError
from graphdock.plugin.host import Host, default_host
from graphdock_testing.conformance import Conformance


def build(ctx):
    return np.matmul


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"types": ["float32"]}, ("wrong types", "type variable", "float32")),
        ({"types": {"T": ["flot32"]}}, ("types['T']", "did you mean 'float32'?")),
        ({"types": {"T": "float32"}}, ("types['T']", "a list")),
        ({"attrs": {"transpose_a": False}}, ("attrs['transpose_a']", "a list")),
        ({"attrs": ["transpose_a"]}, ("wrong attrs",)),
        ({"inplace": {"y": "a"}}, ("inplace['y']", "a list")),
        ({"inplace": ("product",)}, ("wrong inplace",)),
        ({"views": ("product",)}, ("wrong views",)),
        ({"host": "a"}, ("wrong host", "a tuple of names")),
        ({"modes": ("planed",)}, ("wrong modes", "did you mean 'planned'?")),
        ({"modes": "planned"}, ("wrong modes",)),
        ({"layout": "stridden"}, ("wrong layout", "did you mean 'strided'?")),
        ({"device": "CPU"}, ("wrong device", "lower case")),
        ({"device": ""}, ("wrong device",)),
    ],
)
def test_a_value_that_is_right_for_no_op_is_refused_when_the_kernel_is_made(fields, words):
    with pytest.raises(InvalidArgumentError) as caught:
        KernelDef("MatMul", **{"device": "cpu", "build": build, **fields})
    assert all(word in str(caught.value) for word in ("MatMul", *words))


NAMES = [
    ({"types": {"TT": ["float32"]}}, "types", "'TT'", "type variable", "did you mean 'T'?"),
    ({"attrs": {"transpose_aa": [True]}}, "attrs", "'transpose_aa'", "attribute", "did you mean 'transpose_a'?"),
    ({"host": ("aa",)}, "host", "'aa'", "input or output", "did you mean 'a'?"),
    ({"inplace": {"yy": ("a",)}}, "inplace", "'yy'", "output", "did you mean 'y'?"),
    ({"inplace": {"y": ("aa",)}}, "inplace", "'aa'", "input", "did you mean 'a'?"),
    ({"views": {"yy": ViewRule("a")}}, "views", "'yy'", "output", "did you mean 'y'?"),
    ({"views": {"y": ViewRule("z")}}, "views", "'z'", "input", "it has a, b"),
]


@pytest.mark.parametrize(("fields", "field", "name", "noun", "end"), NAMES)
def test_a_name_that_the_op_does_not_have_is_said_with_the_nearest(fields, field, name, noun, end):
    (text,) = unknown_names(KernelDef("MatMul", "cpu", build, **fields), default_host().ops.get("MatMul"))
    assert text == f"{field} of kernel mat_mul names {name}, and MatMul has no such {noun}; {end}"


def test_every_kernel_of_cpu_names_what_its_op_has():
    host = default_host()
    host.backend("cpu")
    mine = [item for item in host.kernels.all() if item.plugin == "cpu"]
    assert len(mine) > 100
    for item in mine:
        check_against(item.kernel, host.ops.get(item.kernel.op), "cpu")


@pytest.fixture
def host():
    """One whose plugin ``odd`` names a type variable that MatMul does not have."""
    found = Host()
    found.backend("cpu")
    found.kernels.add(KernelDef("MatMul", "cpu", build, name="odd", types={"TT": ["int8"]}), "odd", "graphdock_odd")
    return found


def product(host, backends):
    graph = tf.Graph(host=host)
    with graph.as_default():
        y = tf.matmul(tf.constant([[2.0]]), tf.constant([[3.0]]))
    with tf.Session(graph=graph, config=tf.SessionConfig(backends=backends)) as session:
        return session.run(y)


def test_a_session_that_would_take_the_kernel_says_what_is_wrong_with_it(host):
    host.kernels.add(KernelDef("Abs", "cpu", build, name="abs2", types={"U": ["int8"]}), "cpu", "graphdock_cpu")
    graph = tf.Graph(host=host)
    with graph.as_default():
        y = tf.abs(tf.placeholder(tf.float32, []))
    with tf.Session(graph=graph) as session, pytest.raises(InvalidArgumentError, match="plugin 'cpu'.*'U', and Abs"):
        session.run(y, {graph.get_operations()[0].outputs[0]: -1.0})


def test_a_kernel_of_a_backend_that_is_not_listed_ends_nobody(host):
    assert product(host, ["cpu"]) == [[6.0]]


def test_a_kernel_of_a_script_is_refused_where_it_stands():
    with tf.Graph(host=Host()).as_default(), pytest.raises(InvalidArgumentError, match="did you mean 'T'"):
        ops.RegisterKernel("MatMul", types={"TT": ["float32"]})(build)


def test_conformance_begins_with_the_names(host):
    host.kernels.add(KernelDef("Abs", "cpu", build, name="abs2", types={"U": ["int8"]}), "cpu", "graphdock_cpu")
    with pytest.raises(InvalidArgumentError, match="types of kernel abs2 names 'U'"):
        Conformance("cpu", host=host)
