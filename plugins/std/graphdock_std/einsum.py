"""``tf.einsum``: sums of products by index letters, as transposes, reshapes and batched matrix products."""

from __future__ import annotations

import math
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape


def einsum(equation: str, *inputs: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Einstein summation, such as ``einsum("bij,bjk->bik", a, b)``.

    Args:
      equation: one group of letters per input, joined by commas; ``->`` and the letters of the result, which default to
        the letters that occur once, in alphabetical order.
      inputs: tensors of one dtype and of known rank.

    Raises:
      InvalidArgumentError: an equation that does not fit the inputs, a letter twice in one group, or an ellipsis.
      ShapeError: a letter that stands for dims of different sizes.
    """
    groups, result = _parse(equation, len(inputs))
    with _ops.name_scope(name, "Einsum"):
        first = _ops.convert_to_tensor(inputs[0])
        tensors = [first, *(_ops.convert_to_tensor(x, first.dtype) for x in inputs[1:])]
        for group, tensor in zip(groups, tensors, strict=True):
            shape = static_shape(tensor)
            if shape is None or len(shape) != len(group):
                raise InvalidArgumentError(
                    f"einsum {equation!r}: an input of {group!r} must have rank {len(group)}", got=str(tensor.shape)
                )
        letters, product = groups[0], tensors[0]
        for i in range(1, len(tensors)):
            later = set(result).union(*groups[i + 1 :])
            letters, product = _pair(letters, product, groups[i], tensors[i], later)
        gone = [i for i, letter in enumerate(letters) if letter not in result]
        if gone:
            product = _tf.reduce_sum(product, gone)
            letters = "".join(letter for letter in letters if letter in result)
        return _ordered(letters, product, result)


def _parse(equation: str, count: int) -> tuple[list[str], str]:
    text = equation.replace(" ", "")
    left, arrow, result = text.partition("->")
    groups = left.split(",")
    every = "".join(groups)
    if not arrow:
        result = "".join(sorted(c for c in set(every) if every.count(c) == 1))
    problem = None
    if len(groups) != count:
        problem = f"it has {len(groups)} groups for {count} inputs"
    elif not all(c.isascii() and c.isalpha() for c in every + result):
        problem = "a group is made of letters only"
    elif any(len(set(g)) != len(g) for g in (*groups, result)):
        problem = "a letter stands twice in one group"
    elif not set(result) <= set(every):
        problem = f"{', '.join(sorted(set(result) - set(every)))} of the result is in no input"
    if problem is not None:
        raise InvalidArgumentError(f"einsum {equation!r}: {problem}")
    return groups, result


def _pair(a: str, x: Any, b: str, y: Any, later: set[str]) -> tuple[str, Any]:
    """The product of two tensors, summed over letters that nothing later needs; its letters come with it."""
    a, x = _without(a, x, set(b) | later)
    b, y = _without(b, y, set(a) | later)
    batch = [c for c in a if c in b and c in later]
    summed = [c for c in a if c in b and c not in later]
    rows, columns = [c for c in a if c not in b], [c for c in b if c not in a]
    sizes = {**_sizes(b, y), **_sizes(a, x)}
    if not summed and not rows and not columns:
        return a, x * _ordered(b, y, a)
    left = _matrices(a, x, (batch, rows, summed), sizes)
    right = _matrices(b, y, (batch, summed, columns), sizes)
    product = _tf.matmul(left, right)
    order = batch + rows + columns
    return "".join(order), _reshaped(product, [sizes[c] for c in order])


def _without(letters: str, x: Any, needed: set[str]) -> tuple[str, Any]:
    """``x`` summed over the letters that nobody else needs."""
    gone = [i for i, c in enumerate(letters) if c not in needed]
    if not gone:
        return letters, x
    return "".join(c for c in letters if c in needed), _tf.reduce_sum(x, gone)


def _sizes(letters: str, x: Any) -> dict[str, Any]:
    """Letter -> its size: a number, or a scalar tensor where it is not known."""
    shape = static_shape(x)
    assert shape is not None
    dynamic = _ops.shape(x) if None in shape else None
    return {c: dynamic[i] if d is None else d for i, (c, d) in enumerate(zip(letters, shape, strict=True))}  # type: ignore[index]


def _matrices(letters: str, x: Any, parts: tuple[list[str], list[str], list[str]], sizes: dict[str, Any]) -> Any:
    """``x`` as [*batch, rows, columns], where rows and columns are groups of letters made one dim each."""
    batch, rows, columns = parts
    x = _ordered(letters, x, "".join(batch + rows + columns))
    if len(rows) == len(columns) == 1:
        return x
    flat = [_product([sizes[c] for c in group]) for group in (rows, columns)]
    return _reshaped(x, [*(sizes[c] for c in batch), *flat])


def _ordered(letters: str, x: Any, wanted: str) -> Any:
    return x if letters == wanted else _tf.transpose(x, [letters.index(c) for c in wanted])


def _product(dims: list[Any]) -> Any:
    known = math.prod(d for d in dims if isinstance(d, int))
    unknown = [d for d in dims if not isinstance(d, int)]
    if not unknown:
        return known
    total = unknown[0]
    for d in unknown[1:]:
        total = total * d
    return total if known == 1 else total * known


def _reshaped(x: Any, dims: list[Any]) -> Any:
    """``x`` in a shape of numbers and scalar tensors; a single unknown dim is left to reshape."""
    shape = static_shape(x)
    if shape is not None and list(shape) == dims:
        return x
    unknown = [i for i, d in enumerate(dims) if not isinstance(d, int)]
    if len(unknown) == 1 and 0 not in dims:
        dims = [-1 if i in unknown else d for i, d in enumerate(dims)]
    return _tf.reshape(x, dims if dims else [])
