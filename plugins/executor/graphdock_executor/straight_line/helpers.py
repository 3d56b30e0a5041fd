"""Helpers that generated steps call by name besides kernels: small functions of the runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from graphdock.contracts.kernel import PartialWriteError
from graphdock.contracts.runtime.resources import Variable, unset
from graphdock.contracts.scalar_formula import wrap
from graphdock.errors import InvalidArgumentError

__all__ = ["HELPERS", "poison", "quiet", "read_only"]


def quiet() -> None:
    """No floating-point warnings in the current context."""
    np.seterr(all="ignore")


def read_only(array: Any) -> Any:
    """A view of an array that can't be written."""
    view = array.view()
    view.flags.writeable = False
    return view


def poison(buffer: Any) -> None:
    """Fill a dead buffer with what no correct result contains."""
    if isinstance(buffer, np.ndarray) and buffer.dtype.kind != "O":
        buffer.reshape(-1).view(np.uint8).fill(0xFF) if buffer.flags.c_contiguous else None


def fetch_any(array: Any) -> Any:
    """A fetched value of unknown rank: a scalar of its own, or a copy."""
    return array[()] if array.ndim == 0 else array.copy()


def same_lengths(*histories: list[Any]) -> None:
    """Raise unless a loop's histories are of one length (debug mode)."""
    lengths = [len(h) for h in histories]
    if min(lengths) != max(lengths):
        raise InvalidArgumentError("a loop reads histories of different lengths", got=str(lengths))


def _finite(array: Any, name: str) -> None:
    if not np.isfinite(array).all():
        raise InvalidArgumentError(f"{name} holds NaN or infinity (check_numerics)")


def _raise_unset(variable: Variable) -> None:
    raise unset(variable)


def _settled(settle: Callable[[], None], function: Callable[..., Any], *args: Any) -> Any:
    """Call what gives a queue work, and wait for that work."""
    result = function(*args)
    settle()
    return result


def _all_or_nothing(kernel: Callable[..., Any], variables: Sequence[Variable], *args: Any) -> Any:
    """Call a kernel that writes into variables' own memory. Those that it leaves half written have no value any more."""
    try:
        return kernel(*args)
    except PartialWriteError as torn:
        for variable in variables:
            variable.destroy()
        error = torn.__cause__ or torn
    raise error


def _own_copy(array: Any) -> Any:
    """A contiguous copy of its own."""
    return np.array(array, order="C", copy=True)


def _transfer(name: str) -> Callable[..., Any]:
    """A function of :mod:`graphdock_executor.transfers`, which a step of one memory space does not need."""

    def transfer(*args: Any) -> Any:
        from graphdock_executor import transfers

        return getattr(transfers, name)(*args)

    return transfer


#: Name in the source -> function.
HELPERS: Mapping[str, Callable[..., Any]] = {
    "run_on_copies": _transfer("run_on_copies"),
    "fetch_any": fetch_any,
    "fill": np.copyto,
    "finite": _finite,
    "own_copy": _own_copy,
    "len": len,
    "poison": poison,
    "pull": _transfer("pull"),
    "push": _transfer("push"),
    "same_lengths": same_lengths,
    "settled": _settled,
    "unset": _raise_unset,
    "all_or_nothing": _all_or_nothing,
    "wrap": wrap,
}
