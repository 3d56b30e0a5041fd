"""Names of what cuts, joins, makes and indexes tensors, and is written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "batch_gather": "graphdock_std.indexing:batch_gather",
    "boolean_mask": "graphdock_std.indexing:boolean_mask",
    "broadcast_static_shape": "graphdock_std.rearrange:broadcast_static_shape",
    "concat": "graphdock_std.array:concat",
    "diag": "graphdock_std.array:diag",
    "diag_part": "graphdock_std.array:diag_part",
    "expand_dims": "graphdock_std.array:expand_dims",
    "eye": "graphdock_std.array:eye",
    "gather": "graphdock_std.indexing:gather",
    "gather_nd": "graphdock_std.indexing:gather_nd",
    "guarantee_const": "graphdock_std.rearrange:guarantee_const",
    "manip.gather_nd": "graphdock_std.indexing:gather_nd",
    "matrix_transpose": "graphdock_std.array:matrix_transpose",
    "meshgrid": "graphdock_std.array:meshgrid",
    "one_hot": "graphdock_std.indexing:one_hot",
    "ones": "graphdock_std.array:ones",
    "pad": "graphdock_std.array:pad",
    "parallel_stack": "graphdock_std.rearrange:parallel_stack",
    "range": "graphdock_std.array:range",
    "rank": "graphdock_std.array:rank",
    "repeat": "graphdock_std.rearrange:repeat",
    "reverse_sequence": "graphdock_std.rearrange:reverse_sequence",
    "sequence_mask": "graphdock_std.array:sequence_mask",
    "shape_n": "graphdock_std.rearrange:shape_n",
    "size": "graphdock_std.array:size",
    "sparse_to_dense": "graphdock_std.scatter:sparse_to_dense",
    "split": "graphdock_std.array:split",
    "squeeze": "graphdock_std.array:squeeze",
    "stack": "graphdock_std.array:stack",
    "strided_slice": "graphdock_std.indexing:strided_slice",
    "transpose": "graphdock_std.array:transpose",
    "unstack": "graphdock_std.array:unstack",
    "where": "graphdock_std.indexing:where",
    "where_v2": "graphdock_std.indexing:where_v2",
    "zeros": "graphdock_std.array:zeros",
    "linalg.eye": "graphdock_std.array:eye",
    "linalg.transpose": "graphdock_std.array:matrix_transpose",
}

#: Public names that mean nothing in a formula: classes, seeds, what takes a variable or keeps one.
ENDPOINTS = {
    "newaxis": "graphdock_std.array:newaxis",
    "batch_scatter_update": "graphdock_std.scatter:batch_scatter_update",
    "scatter_add": "graphdock_std.scatter:scatter_add",
    "scatter_div": "graphdock_std.scatter:scatter_div",
    "scatter_max": "graphdock_std.scatter:scatter_max",
    "scatter_min": "graphdock_std.scatter:scatter_min",
    "scatter_mul": "graphdock_std.scatter:scatter_mul",
    "scatter_nd_add": "graphdock_std.scatter:scatter_nd_add",
    "scatter_nd_sub": "graphdock_std.scatter:scatter_nd_sub",
    "scatter_nd_update": "graphdock_std.scatter:scatter_nd_update",
    "scatter_sub": "graphdock_std.scatter:scatter_sub",
    "scatter_update": "graphdock_std.scatter:scatter_update",
}

#: Operator methods of a tensor that are more than one op: ``/`` casts integers first, an index becomes several ops.
OPERATORS = {
    "__getitem__": "graphdock_std.indexing:getitem",
}
