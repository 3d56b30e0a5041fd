"""Convolutions of images with what follows them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.contracts import Found, Pattern

from graphdock_std.nn.fused import convolved
from graphdock_std.patterns.operands import PARTS, ROW, any_of
from graphdock_std.patterns.products import FOLLOWS, activation_of

#: What of a convolution both sides are told.
_WINDOW = ("strides", "padding", "explicit_paddings", "data_format", "dilations")


def _summed(input: Any, filter: Any, bias: Any, **window: Any) -> Any:
    """A bias along the last dim."""
    return _ops.apply_op("Conv2D", input=input, filter=filter, **window) + bias


def _followed(
    input: Any,
    filter: Any,
    bias: Any,
    *,
    made: Callable[..., Any],
    follow: Callable[[Any], Any] | None,
    **window: Any,
) -> Any:
    y = made(input, filter, bias, **window)
    return y if follow is None else follow(y)


def _fused(input: Any, filter: Any, bias: Any, **attrs: Any) -> Any:
    return _ops.apply_op("FusedConv2D", input=input, filter=filter, bias=bias, **attrs)[0]


def convolutions() -> Iterator[Pattern]:
    """Each activation before none: what has one would be found without it."""
    operands = {"input": any_of(4), "filter": any_of(4), "bias": ROW}
    follows = {name: follow for name, (follow, _) in FOLLOWS.items()}
    for name, follow in ({**follows, "relu6": lambda x: _tf.nn.relu6(x), "": None}).items():
        activation = activation_of(name) or "none"
        for kind, made in (("bias_add", convolved), ("add", _summed)):
            yield Pattern(
                "_".join(filter(None, ("conv2d", kind, name))),
                "Conv2D",
                operands,
                functools.partial(_followed, made=made, follow=follow),
                functools.partial(_fused, activation=activation),
                not_on=PARTS,
                check=_of_channels if made is convolved else _of_last_channels,
                attrs=_WINDOW,
            )


def _of_channels(found: Found) -> str | None:
    return None if found.shapes["bias"] == found.shapes["filter"][-1:] else "the bias is not a number per channel"


def _of_last_channels(found: Found) -> str | None:
    """Likewise of a bias that is added along the last dim."""
    return _of_channels(found) if found.attrs["data_format"] == "NHWC" else "the bias is added along another dim"
