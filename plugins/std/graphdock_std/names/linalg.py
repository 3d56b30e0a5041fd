"""Names of linear algebra that are written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "batch_matmul": "graphdock_std.linalg:matmul",
    "matmul": "graphdock_std.linalg:matmul",
    "norm": "graphdock_std.linalg:norm",
    "trace": "graphdock_std.linalg:trace",
    "linalg.adjoint": "graphdock_std.linalg:adjoint",
    "linalg.matmul": "graphdock_std.linalg:matmul",
    "linalg.matrix_transpose": "graphdock_std.array:matrix_transpose",
    "linalg.matvec": "graphdock_std.linalg:matvec",
    "linalg.norm": "graphdock_std.linalg:norm",
    "linalg.normalize": "graphdock_std.linalg:normalize",
    "linalg.tensor_diag": "graphdock_std.array:diag",
    "linalg.tensor_diag_part": "graphdock_std.array:diag_part",
    "linalg.trace": "graphdock_std.linalg:trace",
}

#: The operator ``@``, which is a function of several ops.
OPERATORS = {
    "__matmul__": "graphdock_std.linalg:matmul",
}
