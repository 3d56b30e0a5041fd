"""Names of what cuts, joins, makes and indexes tensors, and is written by hand."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "batch_gather": "graphdock_std.array.indexing:batch_gather",
    "boolean_mask": "graphdock_std.array.indexing:boolean_mask",
    "broadcast_static_shape": "graphdock_std.array.rearrange:broadcast_static_shape",
    "concat": "graphdock_std.array.functions:concat",
    "diag": "graphdock_std.array.functions:diag",
    "diag_part": "graphdock_std.array.functions:diag_part",
    "expand_dims": "graphdock_std.array.functions:expand_dims",
    "eye": "graphdock_std.array.functions:eye",
    "gather": "graphdock_std.array.indexing:gather",
    "gather_nd": "graphdock_std.array.indexing:gather_nd",
    "guarantee_const": "graphdock_std.array.rearrange:guarantee_const",
    "manip.gather_nd": "graphdock_std.array.indexing:gather_nd",
    "matrix_transpose": "graphdock_std.array.functions:matrix_transpose",
    "meshgrid": "graphdock_std.array.functions:meshgrid",
    "one_hot": "graphdock_std.array.indexing:one_hot",
    "ones": "graphdock_std.array.functions:ones",
    "pad": "graphdock_std.array.functions:pad",
    "parallel_stack": "graphdock_std.array.rearrange:parallel_stack",
    "range": "graphdock_std.array.functions:range",
    "rank": "graphdock_std.array.functions:rank",
    "repeat": "graphdock_std.array.rearrange:repeat",
    "reverse_sequence": "graphdock_std.array.rearrange:reverse_sequence",
    "sequence_mask": "graphdock_std.array.functions:sequence_mask",
    "shape_n": "graphdock_std.array.rearrange:shape_n",
    "size": "graphdock_std.array.functions:size",
    "sparse_to_dense": "graphdock_std.array.scatter:sparse_to_dense",
    "split": "graphdock_std.array.functions:split",
    "squeeze": "graphdock_std.array.functions:squeeze",
    "stack": "graphdock_std.array.functions:stack",
    "strided_slice": "graphdock_std.array.indexing:strided_slice",
    "transpose": "graphdock_std.array.functions:transpose",
    "unstack": "graphdock_std.array.functions:unstack",
    "where": "graphdock_std.array.indexing:where",
    "where_v2": "graphdock_std.array.indexing:where_v2",
    "zeros": "graphdock_std.array.functions:zeros",
    "linalg.eye": "graphdock_std.array.functions:eye",
    "linalg.transpose": "graphdock_std.array.functions:matrix_transpose",
}

#: Public names that mean nothing in a formula: classes, seeds, what takes a variable or keeps one.
ENDPOINTS = {
    "newaxis": "graphdock_std.array.functions:newaxis",
    "batch_scatter_update": "graphdock_std.array.scatter:batch_scatter_update",
    "scatter_add": "graphdock_std.array.scatter:scatter_add",
    "scatter_div": "graphdock_std.array.scatter:scatter_div",
    "scatter_max": "graphdock_std.array.scatter:scatter_max",
    "scatter_min": "graphdock_std.array.scatter:scatter_min",
    "scatter_mul": "graphdock_std.array.scatter:scatter_mul",
    "scatter_nd_add": "graphdock_std.array.scatter:scatter_nd_add",
    "scatter_nd_sub": "graphdock_std.array.scatter:scatter_nd_sub",
    "scatter_nd_update": "graphdock_std.array.scatter:scatter_nd_update",
    "scatter_sub": "graphdock_std.array.scatter:scatter_sub",
    "scatter_update": "graphdock_std.array.scatter:scatter_update",
}

#: Operator methods of a tensor that are more than one op: ``/`` casts integers first, an index becomes several ops.
OPERATORS = {
    "__getitem__": "graphdock_std.array.indexing:getitem",
}
