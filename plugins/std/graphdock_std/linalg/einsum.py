"""``tf.einsum``: sums of products by index letters, as transposes, reshapes and batched matrix products."""

from __future__ import annotations

import math
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.typing import TensorLike

from graphdock_std.grad_support import static_shape

#: What stands for the dims of an ellipsis while an equation is worked on, the last one first.
_ELLIPSIS = "".join(chr(c) for c in range(0x2160, 0x2180))


def einsum(equation: str, *inputs: TensorLike, name: str | None = None) -> _ops.Tensor:
    """Einstein summation, such as ``einsum("bij,bjk->bik", a, b)``.

    Args:
      equation: one group of letters per input, joined by commas; ``->`` and the letters of the result, which default to
        the letters that occur once, in alphabetical order, behind the ellipsis if there is one. A letter twice in one group is the
        diagonal; ``...`` stands for any dims, which broadcast.
      inputs: tensors of one dtype and of known rank, any number.

    Raises:
      InvalidArgumentError: an equation that does not fit the inputs.
      ShapeError: a letter that stands for dims of different sizes.
    """
    groups, result = _parse(equation, len(inputs))
    with _ops.name_scope(name, "einsum"):
        first = _ops.convert_to_tensor(inputs[0])
        tensors = [first, *(_ops.convert_to_tensor(x, first.dtype) for x in inputs[1:])]
        groups, result = _without_ellipses(equation, groups, result, [static_shape(t) for t in tensors])
        for group, tensor in zip(groups, tensors, strict=True):
            shape = static_shape(tensor)
            if shape is None or len(shape) != len(group):
                raise InvalidArgumentError(
                    f"einsum {equation!r}: an input of {group!r} must have rank {len(group)}", got=str(tensor.shape)
                )
        _check_sizes(equation, groups, tensors)
        reduced = [_diagonal(g, t) for g, t in zip(groups, tensors, strict=True)]
        reduced = _broadcast_ones(reduced)
        letters, product = reduced[0]
        for i in range(1, len(reduced)):
            later = set(result).union(*(g for g, _ in reduced[i + 1 :]))
            letters, product = _pair(letters, product, *reduced[i], later)
        letters, product = _without(letters, product, set(result))
        missing = [c for c in result if c not in letters]
        if missing:  # every operand has 1 there
            product = _tf.reshape(product, _tf.concat([[1] * len(missing), _ops.shape(product)], 0))
            letters = "".join(missing) + letters
        return _ordered(letters, product, result)


def _parse(equation: str, count: int) -> tuple[list[str], str | None]:
    """The groups, and the letters of the result; None where the equation does not say."""
    text = equation.replace(" ", "")
    stray = "." in text.replace("...", "")
    text = text.replace("...", ".")
    left, arrow, right = text.partition("->")
    groups = left.split(",")
    every = "".join(groups)
    result = right if arrow else None
    problem = None
    if len(groups) != count:
        problem = f"it has {len(groups)} groups for {count} inputs"
    elif stray or not all(c == "." or (c.isascii() and c.isalpha()) for c in every + right):
        problem = "a group is made of letters and ... only"
    elif any(g.count(".") > 1 for g in (*groups, right)):
        problem = "an ellipsis stands twice in one group"
    elif len(set(right)) != len(right):
        problem = "a letter stands twice in the result"
    elif not set(right) <= set(every):
        problem = f"{', '.join(sorted(set(right) - set(every)))} of the result is in no input"
    if problem is not None:
        raise InvalidArgumentError(f"einsum {equation!r}: {problem}")
    if result is None:
        result = ("." if "." in every else "") + "".join(sorted(c for c in set(every) - {"."} if every.count(c) == 1))
    return groups, result


def _without_ellipses(equation: str, groups: list[str], result: str, shapes: list[Any]) -> tuple[list[str], str]:
    """The groups with a letter for each dim of an ellipsis; the ellipsis of the result is the longest."""
    longest, found = 0, []
    for group, shape in zip(groups, shapes, strict=True):
        if "." not in group:
            found.append(group)
            continue
        if shape is None or len(shape) < len(group) - 1:
            raise InvalidArgumentError(
                f"einsum {equation!r}: an input of {group.replace('.', '...')!r} needs a known rank of {len(group) - 1} or more",
                got="an unknown rank" if shape is None else f"rank {len(shape)}",
            )
        count = len(shape) - len(group) + 1
        longest = max(longest, count)
        found.append(group.replace(".", _ELLIPSIS[:count][::-1]))
    return found, result.replace(".", _ELLIPSIS[:longest][::-1])


def _check_sizes(equation: str, groups: list[str], tensors: list[Any]) -> None:
    """Raise ShapeError where a letter stands for two sizes; the dims of ellipses may be 1."""
    sizes: dict[str, int] = {}
    for group, tensor in zip(groups, tensors, strict=True):
        for letter, dim in zip(group, static_shape(tensor) or (), strict=True):
            if dim is None or (dim == 1 and letter in _ELLIPSIS):
                continue
            if sizes.setdefault(letter, dim) != dim:
                what = "..." if letter in _ELLIPSIS else letter
                raise ShapeError(f"einsum {equation!r}: {what} stands for dims of {sizes[letter]} and {dim}")


def _diagonal(group: str, x: Any) -> tuple[str, Any]:
    """The tensor with each letter once: the diagonal over the axes of a letter that stands twice."""
    for letter in dict.fromkeys(group):
        while group.count(letter) > 1:
            at = [i for i, c in enumerate(group) if c == letter][:2]
            order = [i for i in range(len(group)) if i not in at] + at
            x = _tf.matrix_diag_part(_tf.transpose(x, order))
            group = "".join(group[i] for i in order[:-1])
    return group, x


def _broadcast_ones(parts: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The operands without those dims of an ellipsis that are 1, which is what broadcasting them means."""
    out = []
    for group, x in parts:
        shape = static_shape(x)
        assert shape is not None
        ones = [i for i, (c, d) in enumerate(zip(group, shape, strict=True)) if c in _ELLIPSIS and d == 1]
        if ones:
            x = _tf.squeeze(x, ones)
            group = "".join(c for i, c in enumerate(group) if i not in ones)
        out.append((group, x))
    return out


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
