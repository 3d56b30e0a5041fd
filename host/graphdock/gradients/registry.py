"""Gradient functions that users register, and which function an operation's gradient comes from.

The order: the name that ``gradient_override_map`` gave the operation, the user's registration for its op type, the
op's spec.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.opdef import resolve
from graphdock.errors import AlreadyExistsError, GradientError, did_you_mean
from graphdock.graph.operation import Operation
from graphdock.locks import new_lock

__all__ = [
    "GradientSource",
    "NoGradient",
    "NotDifferentiable",
    "RegisterGradient",
    "gradient_of",
    "restore",
    "snapshot",
]

Function = TypeVar("Function", bound=Callable[..., Any])

_lock = new_lock()
#: Name -> function, or None for one that has no derivative.
_registered: dict[str, Callable[..., Any] | None] = {}
_announced: set[str] = set()


class RegisterGradient:
    """Decorator: the function builds the gradient of ops of this type, instead of the formula of the op's spec.

    Args:
      op_type: an op type, or a name that ``Graph.gradient_override_map`` maps an op type to.

    The function takes the operation and one tensor per output, the gradient of the loss by that output (zeros where
    none arrives), and returns a tensor or None per input. It serves every graph of the process.

    A function that is defined again at the same place, as an edited cell of a notebook defines it, replaces the one before.

    Raises:
      AlreadyExistsError: another function is registered under that name.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError(f"RegisterGradient takes the name of an op type, not {op_type!r}")
        self._op_type = op_type

    def __call__(self, function: Function) -> Function:
        _register(self._op_type, function)
        return function


def NotDifferentiable(op_type: str) -> None:
    """Say that ops of this type have no derivative: gradients stop there. Raises AlreadyExistsError."""
    _register(op_type, None)


#: TensorFlow's older name.
NoGradient = NotDifferentiable


def _register(name: str, function: Callable[..., Any] | None) -> None:
    with _lock:
        if name in _registered:
            from graphdock.ops.replacing import same_place  # of what is registered twice only

            before = _registered[name]
            if function is not None and before is not None and same_place(before, function):
                _registered[name] = function
                return
            raise AlreadyExistsError(
                f"a gradient of {name!r} is registered already: {_describe(before)}",
                hint="register it once; a second formula for some operations goes under another name, "
                "chosen with Graph.gradient_override_map",
            )
        _registered[name] = function


def _describe(function: Callable[..., Any] | None) -> str:
    if function is None:
        return "NotDifferentiable"
    code = getattr(function, "__code__", None)
    where = f" at {code.co_filename}:{code.co_firstlineno}" if code is not None else ""
    return f"{getattr(function, '__qualname__', repr(function))}{where}"


def snapshot() -> Any:
    """Return what is registered now; for :func:`restore`, so that a test leaves nothing behind."""
    with _lock:
        return dict(_registered), set(_announced)


def restore(state: Any) -> None:
    """Put the registrations back to a snapshot."""
    with _lock:
        _registered.clear()
        _registered.update(state[0])
        _announced.clear()
        _announced.update(state[1])


@lazy_dataclass(frozen=True, slots=True)
class GradientSource:
    """Source of an operation's gradient.

    Attributes:
      function: builds it; None where gradients stop.
      label: its name for messages.
      by_user: registered by a user: every input may have a gradient, absent output gradients are zeros.
      missing: why there is no gradient at all; None when there is one, or when gradients stop here.
    """

    function: Callable[..., Any] | None
    label: str
    by_user: bool = False
    missing: str | None = None


def gradient_of(op: Operation) -> GradientSource:
    """The gradient function of an operation.

    Raises:
      GradientError: ``gradient_override_map`` names a gradient that nobody registered.
    """
    override = op.gradient_type
    if override is not None:
        if override not in _registered:
            raise GradientError(
                f"gradient_override_map gives {op.type} the gradient {override!r}, which is not registered",
                op=op.name,
                site=op.site,
                hint=did_you_mean(override, _registered),
            )
        function = _registered[override]
        return GradientSource(function, _describe(function), by_user=True)
    opdef = op.op_def
    if op.type in _registered:
        function = _registered[op.type]
        if opdef.gradient is not None and op.type not in _announced:
            _announced.add(op.type)
            import logging  # few sessions say anything

            logging.getLogger("graphdock").info(
                "the gradient of %s is the one registered by the user (%s), not its spec's",
                op.type,
                _describe(function),
            )
        return GradientSource(function, _describe(function), by_user=True)
    if opdef.gradient is not None:
        return GradientSource(resolve(opdef.gradient), opdef.gradient)
    if "no_gradient" in opdef.traits or (opdef.gradient_kinds and set(opdef.gradient_kinds.values()) <= {"none"}):
        return GradientSource(None, "none")
    return GradientSource(None, "none", missing=f"nothing says what the gradient of {op.type} is")
