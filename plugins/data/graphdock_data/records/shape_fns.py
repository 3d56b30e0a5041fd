"""Shapes of what is read from records."""

from __future__ import annotations

from typing import Any


def unknown(ctx: Any) -> list[Any]:
    """Nothing is known before it is read."""
    return [None]


def _counted(ctx: Any, *pairs: tuple[str, int, int]) -> None:
    for what, count, other in pairs:
        if count != other:
            raise ctx.fail(f"{what}: {count} of one and {other} of the other")


def _sparse(count: int, rank: int) -> tuple[list[Any], list[Any], list[Any]]:
    """Indices, values and shapes of sparse features."""
    return [(None, rank)] * count, [(None,)] * count, [(rank,)] * count


def parse_example(ctx: Any) -> list[Any]:
    """Dense features have the batch's size before their own shape; a feature of blocks has an unknown second dim."""
    attrs = ctx.attrs
    dense, kinds = attrs["dense_shapes"], attrs["sparse_types"]
    _counted(
        ctx,
        ("sparse_keys and sparse_types", attrs["Nsparse"], len(kinds)),
        ("dense_keys and dense_shapes", attrs["Ndense"], len(dense)),
        ("dense_defaults and dense_shapes", len(attrs["Tdense"]), len(dense)),
    )
    serialized = ctx.shape("serialized")
    batch = serialized[0] if serialized else None
    indices, values, shapes = _sparse(len(kinds), 2)
    return [*indices, *values, *shapes, *[None if dims is None else (batch, *dims) for dims in dense]]


def parse_single_example(ctx: Any) -> list[Any]:
    """Dense features have their own shape."""
    attrs = ctx.attrs
    dense, kinds = attrs["dense_shapes"], attrs["sparse_types"]
    _counted(
        ctx,
        ("sparse_keys and sparse_types", len(attrs["sparse_keys"]), len(kinds)),
        ("num_sparse and sparse_types", attrs["num_sparse"], len(kinds)),
        ("dense_keys and dense_shapes", len(attrs["dense_keys"]), len(dense)),
        ("dense_defaults and dense_shapes", len(attrs["Tdense"]), len(dense)),
    )
    indices, values, shapes = _sparse(len(kinds), 1)
    return [*indices, *values, *shapes, *dense]


def parse_single_sequence_example(ctx: Any) -> list[Any]:
    """Dense lists have an unknown length before the shape of their elements."""
    attrs = ctx.attrs
    context, lists = attrs["context_dense_shapes"], attrs["feature_list_dense_shapes"]
    _counted(
        ctx,
        ("context_sparse_keys and types", attrs["Ncontext_sparse"], len(attrs["context_sparse_types"])),
        ("context_dense_keys and shapes", attrs["Ncontext_dense"], len(context)),
        ("context_dense_defaults and shapes", len(attrs["Tcontext_dense"]), len(context)),
        ("feature_list_sparse_keys and types", attrs["Nfeature_list_sparse"], len(attrs["feature_list_sparse_types"])),
        ("feature_list_dense_keys and shapes", attrs["Nfeature_list_dense"], len(lists)),
        ("feature_list_dense_types and shapes", len(attrs["feature_list_dense_types"]), len(lists)),
    )
    indices, values, shapes = _sparse(attrs["Ncontext_sparse"], 1)
    rows, elements, sizes = _sparse(attrs["Nfeature_list_sparse"], 2)
    dense = [None if dims is None else (None, *dims) for dims in lists]
    return [*indices, *values, *shapes, *context, *rows, *elements, *sizes, *dense]


def parse_sequence_example(ctx: Any) -> list[Any]:
    """Dense features have the batch's size in front, dense lists a length that is not known behind it."""
    attrs = ctx.attrs
    context, lists = attrs["context_dense_shapes"], attrs["feature_list_dense_shapes"]
    _counted(
        ctx,
        ("context_sparse_keys and types", attrs["Ncontext_sparse"], len(attrs["context_sparse_types"])),
        ("context_dense_keys and shapes", len(attrs["context_dense_keys"]), len(context)),
        ("context_dense_defaults and shapes", len(attrs["Tcontext_dense"]), len(context)),
        ("feature_list_sparse_keys and types", attrs["Nfeature_list_sparse"], len(attrs["feature_list_sparse_types"])),
        ("feature_list_dense_keys and shapes", attrs["Nfeature_list_dense"], len(lists)),
        ("feature_list_dense_types and shapes", len(attrs["feature_list_dense_types"]), len(lists)),
    )
    serialized = ctx.shape("serialized")
    batch = serialized[0] if serialized else None
    indices, values, shapes = _sparse(attrs["Ncontext_sparse"], 2)
    rows, elements, sizes = _sparse(attrs["Nfeature_list_sparse"], 3)
    one = [None if dims is None else (batch, *dims) for dims in context]
    many = [None if dims is None else (batch, None, *dims) for dims in lists]
    return [*indices, *values, *shapes, *one, *rows, *elements, *sizes, *many, *[(batch,)] * len(lists)]
