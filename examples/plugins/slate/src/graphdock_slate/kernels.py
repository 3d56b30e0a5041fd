"""The device, and which kernel of its library computes which op."""

from graphdock.native import NativeDevice

__all__ = ["DEVICE", "KERNELS"]

DEVICE = NativeDevice("slate", "_native/slate", package="graphdock_slate")
FLOAT = {"T": ("float32",)}


def product_shape(a, b, transpose_a, transpose_b):
    rows, inner = a[::-1] if transpose_a else a
    same, columns = b[::-1] if transpose_b else b
    if inner != same:
        raise ValueError(f"inner dims {inner} and {same} differ")
    return rows, columns


def of_matrices(node):
    ranks = [None if v.shape is None else len(v.shape) for v in node.inputs]
    return None if ranks == [2, 2] else "it multiplies matrices, not stacks of them"


KERNELS = [
    DEVICE.kernel("Add", "add", types=FLOAT),
    DEVICE.kernel("Sub", "sub", types=FLOAT),
    DEVICE.kernel("Mul", "mul", types=FLOAT),
    DEVICE.kernel("Relu", "relu", types=FLOAT),
    DEVICE.kernel(
        "MatMul",
        "mat_mul",
        attrs=("transpose_a", "transpose_b"),
        shape=product_shape,
        types=FLOAT,
        check=of_matrices,
    ),
]
