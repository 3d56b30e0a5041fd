"""Functions that take what another one takes: a signature, its types and its defaults are written once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


def bound(name: str, signature: inspect.Signature, args: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Each argument of a call, defaults among them, by its name.

    Raises:
      TypeError: the function that is called ``name`` does not take them.
    """
    try:
        given = signature.bind(*args, **keywords)
    except TypeError as error:
        raise TypeError(f"{name}() {error}") from None
    given.apply_defaults()
    return given.arguments


def changed(signature: inspect.Signature, without: Sequence[str] = (), **defaults: Any) -> inspect.Signature:
    """A signature without some arguments, and with other defaults.

    Raises:
      TypeError: it does not have one of them.
    """
    unknown = sorted({*without, *defaults} - signature.parameters.keys())
    if unknown:
        raise TypeError(f"{signature} has no {', '.join(unknown)}")
    kept = [p for name, p in signature.parameters.items() if name not in without]
    return signature.replace(parameters=[p.replace(default=defaults.get(p.name, p.default)) for p in kept])


def signed(function: Any, signature: inspect.Signature) -> Any:
    """A function that shows a signature as its own, as ``inspect`` and ``help`` read it."""
    function.__signature__ = signature
    function.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    function.__annotations__["return"] = signature.return_annotation
    return function


def like(model: _F, *, without: Sequence[str] = (), **defaults: Any) -> Callable[[Callable[..., Any]], _F]:
    """Decorate a function so that it takes what ``model`` takes, and returns what it returns.

    The function itself is called with keywords: each argument by its name, defaults among them.

    Args:
      model: a function with the signature, in the same module or one whose types the function's own module has.
      without: arguments that the function does not take. A type checker does not see that they are left out.
      defaults: those that are not the model's.
    """
    signature = changed(inspect.signature(model), without, **defaults)

    def decorate(body: Callable[..., Any]) -> _F:
        @functools.wraps(body)
        def made(*args: Any, **keywords: Any) -> Any:
            return body(**bound(body.__name__, signature, args, keywords))

        return signed(made, signature)  # type: ignore[no-any-return]

    return decorate
