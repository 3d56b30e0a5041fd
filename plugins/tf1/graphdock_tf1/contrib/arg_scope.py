"""``arg_scope``: default arguments of functions, for all calls within a block."""

from __future__ import annotations

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from graphdock.errors import ArgumentTypeError, InvalidArgumentError

_F = TypeVar("_F", bound=Callable[..., Any])


class _Stack(threading.local):
    """The scopes of this thread: function's key -> its arguments."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, dict[str, Any]]] = [{}]


_stack = _Stack()
#: Key of a function -> the arguments that a scope may set.
_arguments: dict[str, tuple[str, ...]] = {}


def _key(function: Any) -> str:
    return getattr(function, "_key_op", None) or str(function)


def add_arg_scope(func: _F) -> _F:
    """Decorate a function so that ``arg_scope`` can set its arguments."""

    @functools.wraps(func)
    def with_scope(*args: Any, **keywords: Any) -> Any:
        return func(*args, **{**_stack.scopes[-1].get(key, {}), **keywords})

    key = f"{func.__module__}.{func.__qualname__}"
    with_scope._key_op = key  # type: ignore[attr-defined]
    told = inspect.signature(func).parameters.values()
    _arguments[key] = tuple(p.name for p in told if p.default is not p.empty)
    return with_scope  # type: ignore[return-value]


def has_arg_scope(func: Any) -> bool:
    """Return whether ``add_arg_scope`` decorates it."""
    return _key(func) in _arguments


def arg_scoped_arguments(func: Any) -> tuple[str, ...]:
    """The arguments that a scope may set: those with a default.

    Raises:
      InvalidArgumentError: ``add_arg_scope`` does not decorate it.
    """
    _refuse_plain(func)
    return _arguments[_key(func)]


def current_arg_scope() -> dict[str, dict[str, Any]]:
    """The scope that holds here: key of a function -> arguments."""
    return _stack.scopes[-1]


@contextlib.contextmanager
def arg_scope(
    list_ops_or_scope: Sequence[Any] | Mapping[str, Mapping[str, Any]], **kwargs: Any
) -> Iterator[dict[str, dict[str, Any]]]:
    """Default arguments of functions, for all calls within the block; those within set theirs over those around.

        with slim.arg_scope([slim.conv2d], padding="SAME", activation_fn=tf.nn.elu) as scope:
            net = slim.conv2d(images, 64, [3, 3])
        with slim.arg_scope(scope):  # the same again
            net = slim.conv2d(net, 64, [3, 3])

    Args:
      list_ops_or_scope: functions that ``add_arg_scope`` decorates, or a scope to enter again.
      kwargs: arguments and their defaults; none for a scope.

    Raises:
      InvalidArgumentError: a function is not decorated, or there are arguments beside a scope.
      ArgumentTypeError: neither a list nor a scope.
    """
    if isinstance(list_ops_or_scope, Mapping):
        if kwargs:
            raise InvalidArgumentError("a scope that is entered again takes no arguments", got=", ".join(kwargs))
        made = {key: dict(given) for key, given in list_ops_or_scope.items()}
    elif isinstance(list_ops_or_scope, list | tuple):
        made = dict(_stack.scopes[-1])
        for function in list_ops_or_scope:
            _refuse_plain(function)
            made[_key(function)] = {**made.get(_key(function), {}), **kwargs}
    else:
        raise ArgumentTypeError("arg_scope takes a list of functions, or a scope", got=repr(list_ops_or_scope))
    _stack.scopes.append(made)
    try:
        yield made
    finally:
        _stack.scopes.pop()


def _refuse_plain(function: Any) -> None:
    if not has_arg_scope(function):
        name = getattr(function, "__name__", repr(function))
        raise InvalidArgumentError(
            f"{name} is not decorated with add_arg_scope", hint="@slim.add_arg_scope above its def"
        )
