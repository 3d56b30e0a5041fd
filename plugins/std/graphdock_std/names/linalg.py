"""Names of linear algebra that are written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "batch_matmul": "graphdock_std.linalg:matmul",
    "cholesky_solve": "graphdock_std.linalg_solve:cholesky_solve",
    "matrix_diag": "graphdock_std.diagonals:matrix_diag",
    "matrix_diag_part": "graphdock_std.diagonals:matrix_diag_part",
    "matrix_set_diag": "graphdock_std.diagonals:matrix_set_diag",
    "linalg.diag": "graphdock_std.diagonals:matrix_diag",
    "linalg.diag_part": "graphdock_std.diagonals:matrix_diag_part",
    "linalg.set_diag": "graphdock_std.diagonals:matrix_set_diag",
    "matmul": "graphdock_std.linalg:matmul",
    "matrix_solve_ls": "graphdock_std.linalg_solve:matrix_solve_ls",
    "norm": "graphdock_std.linalg:norm",
    "self_adjoint_eig": "graphdock_std.linalg_solve:self_adjoint_eig",
    "self_adjoint_eigvals": "graphdock_std.linalg_solve:self_adjoint_eigvals",
    "svd": "graphdock_std.linalg_solve:svd",
    "trace": "graphdock_std.linalg:trace",
    "linalg.adjoint": "graphdock_std.linalg:adjoint",
    "linalg.cholesky_solve": "graphdock_std.linalg_solve:cholesky_solve",
    "linalg.eigh": "graphdock_std.linalg_solve:self_adjoint_eig",
    "linalg.eigvalsh": "graphdock_std.linalg_solve:self_adjoint_eigvals",
    "linalg.expm": "graphdock_std.linalg_solve:expm",
    "linalg.global_norm": "graphdock_std.clipping:global_norm",
    "linalg.logdet": "graphdock_std.linalg_solve:logdet",
    "linalg.lstsq": "graphdock_std.linalg_solve:matrix_solve_ls",
    "linalg.lu_matrix_inverse": "graphdock_std.linalg_solve:lu_matrix_inverse",
    "linalg.lu_reconstruct": "graphdock_std.linalg_solve:lu_reconstruct",
    "linalg.lu_solve": "graphdock_std.linalg_solve:lu_solve",
    "linalg.matmul": "graphdock_std.linalg:matmul",
    "linalg.matrix_rank": "graphdock_std.linalg_solve:matrix_rank",
    "linalg.matrix_transpose": "graphdock_std.array:matrix_transpose",
    "linalg.matvec": "graphdock_std.linalg:matvec",
    "linalg.norm": "graphdock_std.linalg:norm",
    "linalg.normalize": "graphdock_std.linalg:normalize",
    "linalg.pinv": "graphdock_std.linalg_solve:pinv",
    "linalg.svd": "graphdock_std.linalg_solve:svd",
    "linalg.tensor_diag": "graphdock_std.array:diag",
    "linalg.tensor_diag_part": "graphdock_std.array:diag_part",
    "linalg.trace": "graphdock_std.linalg:trace",
    "linalg.tridiagonal_matmul": "graphdock_std.linalg_solve:tridiagonal_matmul",
    "linalg.tridiagonal_solve": "graphdock_std.linalg_solve:tridiagonal_solve",
}

#: The operator ``@``, which is a function of several ops.
OPERATORS = {
    "__matmul__": "graphdock_std.linalg:matmul",
}
