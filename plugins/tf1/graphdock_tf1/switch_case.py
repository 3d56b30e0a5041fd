"""A branch by its number (``tf.switch_case``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import graphdock as _tf
from graphdock.errors import ArgumentTypeError, InvalidArgumentError


def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case"
) -> Any:
    """Run the function of a number; only the branch that is taken computes.

    Args:
      branch_index: int32 scalar tensor.
      branch_fns: functions in their order; or a dict or list of pairs of number and function.
      default: runs where no function has the number; the one of the largest number where it is None.

    Returns:
      What the function returned, as of ``tf.cond``.

    Raises:
      ArgumentTypeError: a branch is no function, or ``branch_index`` no int32. InvalidArgumentError: there are none, a number
        stands twice, or numbers are not those from 0 on.

    Source: TensorFlow 1.15.
    """
    pairs = list(branch_fns.items() if isinstance(branch_fns, Mapping) else branch_fns)
    if pairs and all(callable(function) for function in pairs):
        pairs = list(enumerate(pairs))
    if not pairs:
        raise InvalidArgumentError("switch_case: branch_fns is empty")
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], int) and callable(pair[1])):
            raise ArgumentTypeError(
                "switch_case: branch_fns holds functions, or pairs of int and function", got=repr(pair)
            )
    functions = dict(pairs)
    if sorted(number for number, _ in pairs) != list(range(len(pairs))):
        raise InvalidArgumentError(
            "switch_case: the numbers of branches must be those from 0 on, each once", got=repr([n for n, _ in pairs])
        )
    with _tf.name_scope(name):
        index = _tf.convert_to_tensor(branch_index, name="branch_index")
        if index.dtype is not _tf.int32:
            raise ArgumentTypeError("switch_case: branch_index must be an int32 scalar", got=index.dtype.name)
        last = default or functions.pop(len(functions) - 1)
        if not functions:
            return last()
        return _tf.case([(_tf.equal(index, n), functions[n]) for n in sorted(functions)], default=last)
