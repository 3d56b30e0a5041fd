"""The encoder of examples/transformer.py as an ONNX graph, as exporters write it, with fused normalisation and GELU."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from benchmarks.network_sessions import initial_value

__all__ = ["encoder"]


class _Graph:
    """Nodes and weights in the order in which they are added; values go by name."""

    def __init__(self) -> None:
        self.nodes: list[object] = []
        self.weights: list[object] = []

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def value(self, name: str, array: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, name: str, *shape: int) -> str:
        return self.value(name, initial_value(name, shape))

    def integers(self, *numbers: int) -> str:
        return self.value(f"integers_{len(self.weights)}", np.array(numbers, np.int64))


def _dense(g: _Graph, x: str, name: str, inputs: int, outputs: int) -> str:
    y = g.add("MatMul", x, g.weight(f"{name}/w", inputs, outputs))
    return g.add("Add", y, g.weight(f"{name}/b", outputs))


def _norm(g: _Graph, x: str, name: str, width: int) -> str:
    scales = g.weight(f"{name}/g", width), g.weight(f"{name}/b", width)
    return g.add("LayerNormalization", x, *scales, axis=-1, epsilon=1e-5)


def _attention(g: _Graph, x: str, name: str, batch: int, length: int, width: int, heads: int) -> str:
    size = width // heads
    qkv = _dense(g, x, f"{name}/qkv", width, 3 * width)
    parts = g.add("Reshape", qkv, g.integers(batch, length, 3, heads, size))
    q, k, v = (g.add("Gather", parts, g.value(f"{name}/{n}", np.array(n, np.int64)), axis=2) for n in range(3))
    q, v = (g.add("Transpose", part, perm=[0, 2, 1, 3]) for part in (q, v))
    k = g.add("Transpose", k, perm=[0, 2, 3, 1])
    scores = g.add("Mul", g.add("MatMul", q, k), g.value(f"{name}/scale", np.array(size**-0.5, np.float32)))
    y = g.add("Transpose", g.add("MatMul", g.add("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    return _dense(g, g.add("Reshape", y, g.integers(batch, length, width)), f"{name}/out", width, width)


def encoder(batch: int, length: int, vocabulary: int, width: int, heads: int, layers: int) -> bytes:
    """The model, from ``tokens`` [batch, length] to ``y`` [batch, length, width], with the weights of initial_value."""
    g = _Graph()
    rows = g.add("Gather", g.weight("tokens", vocabulary, width), "tokens_fed")
    x = _norm(g, g.add("Add", rows, g.weight("positions", length, width)), "norm", width)
    for n in range(layers):
        layer = f"layer{n}"
        x = _norm(
            g,
            g.add("Add", x, _attention(g, x, f"{layer}/attention", batch, length, width, heads)),
            f"{layer}/norm1",
            width,
        )
        inner = g.add("Gelu", _dense(g, x, f"{layer}/up", width, 4 * width))
        x = _norm(g, g.add("Add", x, _dense(g, inner, f"{layer}/down", 4 * width, width)), f"{layer}/norm2", width)
    fed = helper.make_tensor_value_info("tokens_fed", TensorProto.INT32, [batch, length])
    made = helper.make_tensor_value_info(x, TensorProto.FLOAT, [batch, length, width])
    graph = helper.make_graph(g.nodes, "encoder", [fed], [made], g.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return bytes(model.SerializeToString())
