"""Every error graphdock raises, in one tree.

    GraphdockError
    ├── InvalidArgumentError (ValueError)     a value, dtype, shape, rank or name the caller gave is wrong
    │   ├── ShapeError                        shapes that do not fit the op
    │   ├── DTypeError (TypeError)            a dtype that does not fit the op
    │   ├── ConfigError                       session configuration, environment or command line
    │   ├── OpSpecError                       an OpDef YAML file; carries file, line and column
    │   ├── PlanError                         a plan graph that breaks the grammar of the IR
    │   └── ManifestError                     a plugin's graphdock-plugin.toml
    ├── NotFoundError (LookupError)           a name that is looked up and is not there
    │   ├── UnknownOpError                    an op type that no loaded plugin declares
    │   ├── UnknownBackendError               a backend that no installed plugin provides
    │   └── KernelNotFoundError               no kernel for a node on any device that it may run on
    ├── AlreadyExistsError                    a name or registration that exists
    ├── FailedPreconditionError               the state forbids the call: closed session, finalized graph
    │   ├── UninitializedError                a variable that was read before it was assigned
    │   ├── PluginError                       a plugin that failed to load and is needed now
    │   └── KernelTieError                    two kernels of equal rank
    ├── GradientError (LookupError)           an op on the path from the loss has no gradient
    │   └── GradientNotFilled                 ... because its stub still waits for a person
    ├── OutOfRangeError                       an index or an iteration beyond the end
    ├── ResourceExhaustedError                a device is out of memory
    ├── UnavailableError                      something that may be there later
    │   ├── DeviceUnavailable                 a probe found no device; carries reason and hint (not a fault)
    │   └── DeviceLostError                   a device that stopped working; every later call of it raises this
    ├── AbortedError                          a step was stopped because another part of it failed
    ├── CancelledError                        a step was stopped on purpose: its session was closed
    ├── DeadlineExceededError                 a step ran past its deadline
    ├── UnimplementedError                    a feature that this version declares but does not have
    │   └── KernelRefused                     a kernel that can't compute a node after all; another one is chosen
    └── InternalError                         graphdock broke a promise of its own

The names are TensorFlow's status names. A message says what happened, what was expected and got, the op and the user's own
line that made it, and what to do; those parts are fields of the object.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "ConfigError",
    "DTypeError",
    "DeadlineExceededError",
    "DeviceLostError",
    "DeviceUnavailable",
    "FailedPreconditionError",
    "GradientError",
    "GradientNotFilled",
    "GraphdockError",
    "InternalError",
    "InvalidArgumentError",
    "KernelNotFoundError",
    "KernelRefused",
    "KernelTieError",
    "ManifestError",
    "NotFoundError",
    "OpSpecError",
    "OutOfRangeError",
    "PlanError",
    "PluginError",
    "ResourceExhaustedError",
    "ShapeError",
    "UnavailableError",
    "UnimplementedError",
    "UninitializedError",
    "UnknownBackendError",
    "UnknownOpError",
    "did_you_mean",
]


class GraphdockError(Exception):
    """Base of every error graphdock raises.

    Args:
      message: what happened, naming the thing.
      op: name of the operation concerned, such as ``"layer_1/MatMul"``.
      site: the user's own line that made that operation, ``"train.py:14"``.
      expected: what was expected, in words.
      got: what was found instead.
      hint: what to do about it.
    """

    def __init__(
        self,
        message: str,
        *,
        op: str | None = None,
        site: str | None = None,
        expected: str | None = None,
        got: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.op = op
        self.site = site
        self.expected = expected
        self.got = got
        self.hint = hint

    def __str__(self) -> str:
        text = self.message
        if self.expected is not None and self.got is not None:
            text += f"\n  expected {self.expected}, got {self.got}"
        elif self.expected is not None:
            text += f"\n  expected {self.expected}"
        elif self.got is not None:
            text += f"\n  got {self.got}"
        if self.op is not None:
            text += f"\n  op: {self.op}" + (f", made at {self.site}" if self.site else "")
        elif self.site is not None:
            text += f"\n  at {self.site}"
        if self.hint is not None:
            text += f"\n  hint: {self.hint}"
        return text


class InvalidArgumentError(GraphdockError, ValueError):
    """A value, dtype, shape, rank or name the caller gave is wrong."""


class ShapeError(InvalidArgumentError):
    """Shapes that do not fit the op."""


class DTypeError(InvalidArgumentError, TypeError):
    """A dtype that does not fit the op."""


class ConfigError(InvalidArgumentError):
    """A session configuration, environment variable or command-line value that is wrong."""


class OpSpecError(InvalidArgumentError):
    """An OpDef YAML file that is wrong. ``file``, ``line`` and ``column`` (from 1) say where."""

    def __init__(self, message: str, *, file: str = "<spec>", line: int = 0, column: int = 0, hint: str | None = None):
        super().__init__(f"{file}:{line}:{column}: {message}", hint=hint)
        self.file, self.line, self.column = file, line, column


class PlanError(InvalidArgumentError):
    """A plan graph that breaks the grammar of the IR (see :mod:`graphdock.contracts.ir`)."""


class ManifestError(InvalidArgumentError):
    """A plugin manifest that is missing a field or holds a wrong one."""


class NotFoundError(GraphdockError, LookupError):
    """A name that was looked up is not there."""


class UnknownOpError(NotFoundError):
    """No loaded plugin declares this op type."""


class UnknownBackendError(NotFoundError, ConfigError):
    """No installed plugin provides this backend."""


class KernelNotFoundError(NotFoundError):
    """No kernel for a node on any device it may run on; the message lists each candidate and why it lost."""


class AlreadyExistsError(GraphdockError):
    """A name or registration that exists already."""


class FailedPreconditionError(GraphdockError):
    """The state of the object forbids the call."""


class UninitializedError(FailedPreconditionError):
    """A variable was read before it was assigned."""


class PluginError(FailedPreconditionError):
    """A plugin that is needed now failed to load; ``__cause__`` is its first error."""


class KernelTieError(FailedPreconditionError):
    """Two kernels of equal rank match a node; the message names both packages and the line that settles it."""


class GradientError(GraphdockError, LookupError):
    """An op on the path from the loss has no gradient."""


class GradientNotFilled(GradientError):
    """A generated gradient stub that nobody has filled in yet."""

    def __init__(self, op_type: str, input_name: str) -> None:
        super().__init__(
            f"the gradient of {op_type} with respect to {input_name!r} is a stub that is not filled in",
            hint="replace the stub's body, or set the input's gradient in the spec",
        )


class OutOfRangeError(GraphdockError):
    """An index or an iteration beyond the end."""


class ResourceExhaustedError(GraphdockError):
    """A device has no memory left for an allocation."""


class UnavailableError(GraphdockError):
    """Something that may be there later is not there now."""


class DeviceUnavailable(UnavailableError):
    """A probe found no device. Not a fault: the plugin's stage becomes ``no device``."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason, hint=hint)
        self.reason = reason


class DeviceLostError(UnavailableError):
    """A device stopped working for good: what is in flight on it fails, and so does every later call. Its variables are gone.

    Args:
      device: its name, such as ``"cuda:0"``.
      reason: what the driver says.
    """

    def __init__(self, device: str, reason: str, *, op: str | None = None, site: str | None = None) -> None:
        hint = "its variables are gone; start a new process, and restore them from a checkpoint"
        super().__init__(f"{device} is lost: {reason}", op=op, site=site, hint=hint)
        self.device = device
        self.reason = reason


class AbortedError(GraphdockError):
    """A step was stopped because another part of it failed."""


class CancelledError(GraphdockError):
    """A step was stopped on purpose: its session was closed, or its caller cancelled it."""


class DeadlineExceededError(GraphdockError):
    """A step ran past its deadline."""


class UnimplementedError(GraphdockError):
    """A feature that this version declares but does not have."""


class KernelRefused(UnimplementedError):
    """A kernel that can't compute a node after all, raised by its ``prepare``. Another one is chosen, and the reason recorded."""


class InternalError(GraphdockError):
    """graphdock broke a promise of its own; please report it."""


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The nearest known name as a hint, ``"did you mean 'MatMul'?"``, or None when none is near."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if not near:
        folded = {k.lower().replace("_", ""): k for k in known}
        match = folded.get(name.lower().replace("_", ""))
        near = [match] if match else []
    return f"did you mean {near[0]!r}?" if near else None
