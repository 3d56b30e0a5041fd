"""Names of linear algebra that are written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "batch_matmul": "graphdock_std.linalg.functions:matmul",
    "cholesky_solve": "graphdock_std.linalg.solve:cholesky_solve",
    "matrix_diag": "graphdock_std.linalg.diagonals:matrix_diag",
    "matrix_diag_part": "graphdock_std.linalg.diagonals:matrix_diag_part",
    "matrix_set_diag": "graphdock_std.linalg.diagonals:matrix_set_diag",
    "linalg.diag": "graphdock_std.linalg.diagonals:matrix_diag",
    "linalg.diag_part": "graphdock_std.linalg.diagonals:matrix_diag_part",
    "linalg.set_diag": "graphdock_std.linalg.diagonals:matrix_set_diag",
    "matmul": "graphdock_std.linalg.functions:matmul",
    "matrix_solve_ls": "graphdock_std.linalg.solve:matrix_solve_ls",
    "norm": "graphdock_std.linalg.functions:norm",
    "self_adjoint_eig": "graphdock_std.linalg.solve:self_adjoint_eig",
    "self_adjoint_eigvals": "graphdock_std.linalg.solve:self_adjoint_eigvals",
    "svd": "graphdock_std.linalg.solve:svd",
    "trace": "graphdock_std.linalg.functions:trace",
    "linalg.adjoint": "graphdock_std.linalg.functions:adjoint",
    "linalg.cholesky_solve": "graphdock_std.linalg.solve:cholesky_solve",
    "linalg.eigh": "graphdock_std.linalg.solve:self_adjoint_eig",
    "linalg.eigvalsh": "graphdock_std.linalg.solve:self_adjoint_eigvals",
    "linalg.expm": "graphdock_std.linalg.solve:expm",
    "linalg.global_norm": "graphdock_std.math.clipping:global_norm",
    "linalg.logdet": "graphdock_std.linalg.solve:logdet",
    "linalg.lstsq": "graphdock_std.linalg.solve:matrix_solve_ls",
    "linalg.lu_matrix_inverse": "graphdock_std.linalg.solve:lu_matrix_inverse",
    "linalg.lu_reconstruct": "graphdock_std.linalg.solve:lu_reconstruct",
    "linalg.lu_solve": "graphdock_std.linalg.solve:lu_solve",
    "linalg.matmul": "graphdock_std.linalg.functions:matmul",
    "linalg.matrix_rank": "graphdock_std.linalg.solve:matrix_rank",
    "linalg.matrix_transpose": "graphdock_std.array.functions:matrix_transpose",
    "linalg.matvec": "graphdock_std.linalg.functions:matvec",
    "linalg.norm": "graphdock_std.linalg.functions:norm",
    "linalg.normalize": "graphdock_std.linalg.functions:normalize",
    "linalg.pinv": "graphdock_std.linalg.solve:pinv",
    "linalg.svd": "graphdock_std.linalg.solve:svd",
    "linalg.tensor_diag": "graphdock_std.array.functions:diag",
    "linalg.tensor_diag_part": "graphdock_std.array.functions:diag_part",
    "linalg.trace": "graphdock_std.linalg.functions:trace",
    "linalg.tridiagonal_matmul": "graphdock_std.linalg.solve:tridiagonal_matmul",
    "linalg.tridiagonal_solve": "graphdock_std.linalg.solve:tridiagonal_solve",
}

#: The operator ``@``, which is a function of several ops.
OPERATORS = {
    "__matmul__": "graphdock_std.linalg.functions:matmul",
}
