"""GraphDefs as TensorFlow writes them, node by node."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

pytest.importorskip("google.protobuf")


class Made:
    """Builds a GraphDef of TensorFlow, and imports it."""

    def __init__(self):
        from graphdock.messages import make

        self.message = make("GraphDef")
        self.message.versions.producer = 134

    def node(self, name, op, *inputs, into=None, **attrs):
        """Add a node. A number is an ``i``, a string an ``s``; ``DT_FLOAT`` of T and dtype is said as the dtype itself."""
        made = (self.message.node if into is None else into).add(name=name, op=op)
        made.input.extend(inputs)
        for attr, value in attrs.items():
            fill(made.attr[attr], value)
        return made

    def const(self, name, value, *inputs, into=None):
        from graphdock_tensorflow.graphs.values import tensor_proto

        made = self.node(name, "Const", *inputs, into=into)
        made.attr["value"].tensor.CopyFrom(tensor_proto(np.asarray(value)))
        made.attr["dtype"].type = made.attr["value"].tensor.dtype
        return made

    def function(self, name, inputs, outputs):
        """Add a function: argument -> dtype, and result -> (dtype, tensor in it). Returns its list of nodes."""
        from graphdock_tensorflow.graphs.values import number_of

        made = self.message.library.function.add()
        made.signature.name = name
        for arg, dtype in inputs.items():
            made.signature.input_arg.add(name=arg, type=number_of(dtype.name))
        for arg, (dtype, tensor) in outputs.items():
            made.signature.output_arg.add(name=arg, type=number_of(dtype.name))
            made.ret[arg] = tensor
        return made.node_def

    def read(self, **more):
        from graphdock_tensorflow.graphs.reading import read_graph

        return read_graph(self.message, tf.default_host().ops, **more)

    def run(self, fetches, feeds=None, **more):
        """What a session computes of the imported graph; all of its variables are initialised by ``init``, if there is one."""
        with tf.Graph().as_default() as graph, tf.Session() as sess:
            tf.import_graph_def(self.message, name="", **more)
            if "init" in {op.name for op in graph.get_operations()}:
                sess.run("init")
            return sess.run(fetches, feeds)


def fill(attr, value):
    from graphdock_tensorflow.graphs.values import number_of, shape_proto

    if isinstance(value, tf.DType):
        attr.type = number_of(value.name)
    elif isinstance(value, bool):
        attr.b = value
    elif isinstance(value, int):
        attr.i = value
    elif isinstance(value, float):
        attr.f = value
    elif isinstance(value, tf.TensorShape):
        attr.shape.CopyFrom(shape_proto(None if value.ndims is None else value.as_list()))
    elif isinstance(value, tuple):
        attr.func.name = value[0]
    elif isinstance(value, list):
        attr.list.SetInParent()
        for item in value:
            attr.list.type.append(number_of(item.name)) if isinstance(item, tf.DType) else attr.list.i.append(item)
    else:
        attr.s = value.encode()


@pytest.fixture
def made():
    return Made()
