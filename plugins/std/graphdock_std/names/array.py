"""Names of what cuts, joins, makes and indexes tensors, and is written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "concat": "graphdock_std.array:concat",
    "diag": "graphdock_std.array:diag",
    "diag_part": "graphdock_std.array:diag_part",
    "expand_dims": "graphdock_std.array:expand_dims",
    "eye": "graphdock_std.array:eye",
    "gather": "graphdock_std.indexing:gather",
    "matrix_transpose": "graphdock_std.array:matrix_transpose",
    "meshgrid": "graphdock_std.array:meshgrid",
    "one_hot": "graphdock_std.indexing:one_hot",
    "ones": "graphdock_std.array:ones",
    "pad": "graphdock_std.array:pad",
    "range": "graphdock_std.array:range",
    "rank": "graphdock_std.array:rank",
    "sequence_mask": "graphdock_std.array:sequence_mask",
    "size": "graphdock_std.array:size",
    "split": "graphdock_std.array:split",
    "squeeze": "graphdock_std.array:squeeze",
    "stack": "graphdock_std.array:stack",
    "strided_slice": "graphdock_std.indexing:strided_slice",
    "transpose": "graphdock_std.array:transpose",
    "unstack": "graphdock_std.array:unstack",
    "where": "graphdock_std.indexing:where",
    "zeros": "graphdock_std.array:zeros",
    "linalg.eye": "graphdock_std.array:eye",
    "linalg.transpose": "graphdock_std.array:matrix_transpose",
}

#: Public names that mean nothing in a formula: classes, seeds, what takes a variable or keeps one.
ENDPOINTS = {
    "newaxis": "graphdock_std.array:newaxis",
    "scatter_add": "graphdock_std.scatter:scatter_add",
    "scatter_sub": "graphdock_std.scatter:scatter_sub",
    "scatter_update": "graphdock_std.scatter:scatter_update",
}

#: Operator methods of a tensor that are more than one op: ``/`` casts integers first, an index becomes several ops.
OPERATORS = {
    "__getitem__": "graphdock_std.indexing:getitem",
}
