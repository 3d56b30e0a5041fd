"""An executor that walks a placed plan node by node with NumPy, and a factory of sessions on ``toy://`` targets."""

import numpy as np
from graphdock.contracts import Executor, Program, SessionFactory, Transport, errors

from graphdock_toy.device import count

__all__ = ["ToyExecutor", "ToyProgram", "ToySessions"]

#: Op -> function of the node and its inputs' arrays.
_OPS = {
    "Const": lambda node: node.attrs["value"],
    "Identity": lambda node, x: x,
    "Add": lambda node, x, y: np.add(x, y),
    "Sub": lambda node, x, y: np.subtract(x, y),
    "Mul": lambda node, x, y: np.multiply(x, y),
    "MatMul": lambda node, a, b: np.matmul(
        a.T if node.attrs["transpose_a"] else a, b.T if node.attrs["transpose_b"] else b
    ),
    "Relu": lambda node, x: np.maximum(x, 0),
    "toy.Scale": lambda node, x: x * x.dtype.type(node.attrs["factor"]),
}


class ToyProgram(Program):
    def __init__(self, graph):
        self.graph = graph

    def run(self, step, feeds):
        count("executor")
        values = dict(zip(self.graph.inputs, feeds, strict=True))
        for node in self.graph.nodes:
            (out,) = node.outputs
            values[out] = np.asarray(_OPS[node.op](node, *(values[i] for i in node.inputs)), out.dtype.np)
        return [np.array(values[v])[()] for v in self.graph.outputs]


class ToyExecutor(Executor):
    name = "toy"

    def compile(self, placed):
        for node in placed.graph.nodes:
            if node.op not in _OPS:
                raise errors.UnimplementedError(
                    f"the toy executor does not know {node.op}", op=node.name, site=node.site
                )
        return ToyProgram(placed.graph)


class ToySessions(SessionFactory):
    """``Session("toy://anywhere")`` is a session of this process on the toy device."""

    scheme = "toy"

    def open(self, target, graph, config, host):
        import graphdock as tf

        config = tf.SessionConfig() if config is None else config
        session = tf.Session(graph=graph, config=config.replace(backends=("toy", "cpu")))
        session.target = target
        return session


class ToyNetwork(Transport):
    """A network on which nobody is reached."""

    scheme = "toy"

    def call(self, address, method, arguments):
        raise errors.UnavailableError(f"the toy network does not reach {address}")

    def post(self, address, method, arguments):
        return None
