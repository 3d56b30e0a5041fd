"""Functions of ``tf.layers``, made of layers; ``training``, which may be a tensor; formats of data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, ParamSpec, Protocol

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.arguments import check_type
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_tf1.layers.base import snake_case
from graphdock_tf1.signatures import bound, changed, signed

_P = ParamSpec("_P")


class LayerFunction(Protocol[_P]):
    """A function that makes a layer and calls it: it takes the inputs, then what the layer's class takes."""

    def __call__(self, inputs: TensorLike, *args: _P.args, **keywords: _P.kwargs) -> _tf.Tensor:
        """The output of a new layer."""
        raise NotImplementedError


def layer_function(
    kind: Callable[_P, Any], takes: Callable[..., Any] | None = None, without: Sequence[str] = (), **defaults: Any
) -> LayerFunction[_P]:
    """The function of a class of layers, such as ``tf.layers.dense`` of ``tf.layers.Dense``, with the class's documentation.

    It takes ``inputs``, the arguments of the class by their names and in their order, and ``reuse`` where the layer has variables
    (its class takes ``trainable``).

    Args:
      kind: the class. The function's name is its own in snake case.
      takes: a class that has its arguments written down; default: ``kind``.
      without: arguments that the function does not take.
      defaults: those of the function that are not the class's.
    """
    own = changed(inspect.signature(takes or kind), without, **defaults).parameters.values()
    word = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter("inputs", word, annotation="TensorLike"), *(p for p in own if p.kind is word)]
    if any(p.name == "trainable" for p in parameters):
        parameters.append(inspect.Parameter("reuse", word, default=None, annotation="Any"))
    signature = inspect.Signature(parameters, return_annotation="_tf.Tensor")
    name = snake_case(kind.__name__)

    def made(*args: Any, **keywords: Any) -> Any:
        return called(kind, bound(name, signature, args, keywords))

    made.__name__ = made.__qualname__ = name
    made.__module__, made.__doc__ = kind.__module__, kind.__doc__
    return signed(made, signature)  # type: ignore[no-any-return]


def called(kind: Callable[..., Any], given: Mapping[str, Any], *call: str) -> Any:
    """The output of a new layer.

    Args:
      kind: its class.
      given: arguments of the function: ``inputs``, those of the class, ``name`` and ``reuse``.
      call: names of those that go to the call.
    """
    rest = {k: v for k, v in given.items() if k not in ("inputs", "reuse", *call)}
    layer = kind(**rest, _scope=rest["name"], _reuse=given.get("reuse"))
    return layer(given["inputs"], **{k: given[k] for k in call})


def static_bool(value: Any) -> bool | None:
    """The value of a bool, or of a constant tensor; None where it is known in the step only.

    Raises:
      ArgumentTypeError: something else.
    """
    if isinstance(value, _tf.Tensor | _tf.Variable):
        tensor = _ops.convert_to_tensor(value)
        return bool(tensor.op.get_attr("value")) if tensor.op.type == "Const" else None
    if hasattr(value, "item"):
        value = value.item()
    check_type(value, (bool, int), "a flag", "a bool, or a scalar tensor of dtype bool")
    return bool(value)


def choose(flag: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """``then()`` or ``otherwise()``, by a flag that is known now or in the step; a ``tf.cond`` only for the latter."""
    known = static_bool(flag)
    if known is None:
        return _tf.cond(flag, then, otherwise)
    return then() if known else otherwise()


def numbers(value: int | Sequence[int], count: int, name: str, least: int = 1) -> tuple[int, ...]:
    """``count`` numbers, from one or as many.

    Raises:
      InvalidArgumentError: another number of them, or one below ``least``.
    """
    given = tuple(value) if hasattr(value, "__len__") else (value,) * count
    if len(given) != count or not all(isinstance(v, Real) and int(v) == v and v >= least for v in given):
        raise InvalidArgumentError(f"{name} must be one integer, or {count}, of at least {least}", got=repr(value))
    return tuple(int(v) for v in given)


def padding_of(value: Any, *more: str) -> str:
    """``valid``, ``same`` or one ``more``, in small letters.

    Raises:
      InvalidArgumentError: another word.
    """
    word = str(value).lower()
    if word not in ("valid", "same", *more):
        raise InvalidArgumentError("no such padding", expected=" or ".join(("valid", "same", *more)), got=repr(value))
    return word


def data_format_of(value: Any, rank: int) -> str:
    """``NHWC`` or ``NCHW``, with as many letters as ``rank``, of ``channels_last`` or ``channels_first``.

    Raises:
      InvalidArgumentError: another word.
    """
    word = str(value).lower()
    if word not in ("channels_last", "channels_first"):
        raise InvalidArgumentError("no such data_format", expected="channels_last or channels_first", got=repr(value))
    space = "DHW"[5 - rank :]
    return f"NC{space}" if word == "channels_first" else f"N{space}C"
