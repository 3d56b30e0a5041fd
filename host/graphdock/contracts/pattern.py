"""Patterns: what people write in several ops is found in a plan, and computed by one declared op instead.

A pattern is written twice, with the functions that users call: as they write it, and with the op that stands for it::

    def by_hand(x, gamma, epsilon):
        return x * tf.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + epsilon) * gamma

    Pattern(
        "rms_norm",
        anchor="Rsqrt",
        inputs={"x": Operand((None, None)), "gamma": Operand((None,)), "epsilon": CONSTANT},
        pattern=by_hand,
        replacement=lambda x, gamma, epsilon: tf.nn.rms_norm(x, gamma, epsilon=epsilon),
    )

Its gradient is not written. Both sides are differentiated by the gradients of their ops; where a plan holds the gradient of the
pattern too, that of the replacement stands for it. A pattern is used where every op of the replacement has a kernel on the device
that its nodes prefer, and where nothing else reads what lies within it. ``explain`` says of each what was found, and why not.

Patterns come with the ops that they lead to; ``fusion = false`` in the configuration looks for none.

Threads: ``check`` and ``worth`` are called under the planner's lock, ``pattern`` and ``replacement`` under the host's. What these
two build is kept for all sessions of the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.shape import Dims

__all__ = ["CONSTANT", "Found", "Operand", "Pattern", "PatternLibrary", "RegisteredPattern"]


@lazy_dataclass(frozen=True, slots=True)
class Operand:
    """Input of a pattern.

    Attributes:
      shape: its rank, and the dims that are known; None is any size.
      dtype: None is the pattern's own; the name of one of its ``attrs`` is what the anchor has there.
      constant: only a value that is known when the plan is made; ``replacement`` gets it as a NumPy array.
      drawn: type of the random op that it has to be made by. ``replacement`` gets not the numbers but the stream that they are
        drawn from, so that it can draw the same, and draw them again: a vector of five uint64, as the op of type ``stream``,
        which takes nothing, gives it in the place of the random op. (A function of a pattern draws nothing: that is not pure.)
    """

    shape: Dims
    dtype: str | None = None
    constant: bool = False
    drawn: str = ""
    stream: str = ""


#: A number that is known when the plan is made, of the pattern's own dtype.
CONSTANT = Operand((), constant=True)


@lazy_dataclass(frozen=True, slots=True)
class Found:
    """Match of a pattern.

    Of an operand that is drawn ``shapes`` has the dims of the numbers.

    Attributes:
      dtype: of the anchor. ``shapes``: input -> its dims. ``constants``: input -> array, of those that are constant.
      device_type: that the nodes prefer. ``attrs``: those of the anchor that the pattern names.
    """

    dtype: str
    shapes: Mapping[str, tuple[int, ...]]
    constants: Mapping[str, Any]
    device_type: str
    attrs: Mapping[str, Any] = field(default_factory=dict)


@lazy_dataclass(frozen=True, slots=True)
class Pattern:
    """Several ops that one declared op computes.

    Attributes:
      name: unique in its plugin.
      anchor: the type of an op of the pattern, best a rare one: the search begins there.
      inputs: parameter of both functions -> what it is.
      pattern: builds what is looked for, of pure ops, and returns one tensor, or a tuple of those that others may read.
      replacement: builds what stands for it; as many, of the same dtypes and shapes.
      dtypes: of the anchor's first output, for which the pattern is looked for.
      not_on: device types that compute the parts as fast; it is not looked for there.
      rank: of the anchor's first output, where it follows from the pattern; elsewhere the pattern is not even traced.
      check: why a place isn't for this pattern, or None. worth: why one that is, is as well off without it, or None.
      sample: ``sample(rng)`` gives inputs that ``check`` takes, for conformance, which draws the others: input -> dims or array.
      late: it is looked for in what all others have left, and in what stands for them, gradients among it; its own gradients
        are not.
      attrs: attributes of the anchor that may have any value; both functions get them as keyword arguments, as the anchor has them.
      listed: it is looked for only where the session's ``backends`` list its plugin: one for kernels that the plugin brings.
    """

    name: str
    anchor: str
    inputs: Mapping[str, Operand]
    pattern: Callable[..., Any]
    replacement: Callable[..., Any]
    dtypes: tuple[str, ...] = ("float32", "float16", "bfloat16")
    not_on: tuple[str, ...] = ()
    rank: int | None = None
    check: Callable[[Found], str | None] | None = None
    worth: Callable[[Found], str | None] | None = None
    sample: Callable[[Any], Mapping[str, Any]] | None = None
    late: bool = False
    attrs: tuple[str, ...] = ()
    listed: bool = False


@lazy_dataclass(frozen=True, slots=True)
class PatternLibrary:
    """Patterns that are imported when a plan first holds an anchor of theirs on a device type that they are for.

    Attributes:
      patterns: where they are, as ``"package.module:NAME"``.
      anchors: of all of them. ``not_on``: device types that none of them is for. ``listed``: as of a Pattern, of all of them.
    """

    patterns: str
    anchors: tuple[str, ...]
    not_on: tuple[str, ...] = ()
    listed: bool = False


@lazy_dataclass(frozen=True, slots=True)
class RegisteredPattern:
    """A pattern and who brought it: ``plugin`` is the entry-point name, ``package`` the import package."""

    plugin: str
    package: str
    pattern: Pattern

    @property
    def full_name(self) -> str:
        """``std.rms_norm``; what ``explain`` writes."""
        return f"{self.plugin}.{self.pattern.name}"
