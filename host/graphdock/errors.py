"""Every error of graphdock's own, in one tree.

    GD000 GraphdockError
    ├── GD100 InvalidArgumentError (ValueError)   a value, dtype, shape, rank or name the caller gave is wrong
    │   ├── GD101 ShapeError                      shapes that do not fit the op
    │   ├── GD102 DTypeError (TypeError)          a dtype that does not fit the op
    │   ├── GD103 ConfigError                     session configuration, environment or command line
    │   ├── GD104 OpSpecError                     an OpDef YAML file; carries file, line and column
    │   ├── GD105 PlanError                       a plan graph that breaks the grammar of the IR
    │   ├── GD106 ManifestError                   a plugin's graphdock-plugin.toml
    │   └── GD107 ArgumentTypeError (TypeError)   an argument of the wrong Python type
    ├── GD200 NotFoundError (KeyError, ValueError) a name that is looked up and is not there
    │   ├── GD201 UnknownOpError                  an op type that no loaded plugin declares
    │   ├── GD202 UnknownBackendError             a backend that no installed plugin provides
    │   └── GD203 KernelNotFoundError             no kernel for a node on any device that it may run on
    ├── GD300 AlreadyExistsError (ValueError)     a name or registration that exists
    ├── GD400 FailedPreconditionError (RuntimeError) the state forbids the call: closed session, finalized graph
    │   ├── GD401 UninitializedError              a variable that was read before it was assigned
    │   ├── GD402 PluginError                     a plugin that is needed now and failed to load, or broke a contract
    │   └── GD403 KernelTieError                  two kernels of equal rank
    ├── GD500 GradientError (LookupError)         an op on the path from the loss has no gradient
    │   └── GD501 GradientNotFilled               ... because its stub still waits for a person
    ├── GD600 OutOfRangeError                     a number that does not fit its dtype, or no more elements
    ├── GD700 ResourceExhaustedError              a device is out of memory, or a disk full
    ├── GD800 UnavailableError                    something that may be there later
    │   ├── GD801 DeviceUnavailable               a probe found no device; carries reason and hint (not a fault)
    │   └── GD802 DeviceLostError                 a device that stopped working; every later call of it raises this
    ├── GD900 AbortedError                        a step was stopped because another part of it failed
    ├── GD910 CancelledError                      a step was stopped on purpose: its session was closed
    ├── GD920 DeadlineExceededError               a step ran past its deadline
    ├── GD930 UnimplementedError                  a feature that this version declares but does not have
    │   └── GD931 KernelRefused                   a kernel that can't compute a node after all; another one is chosen
    ├── GD940 UnknownError                        user code inside a step raised what has no class of its own here
    ├── GD950 DataLossError                       a file, such as a checkpoint, that is damaged, cut off or of no known format
    ├── GD960 PermissionDeniedError               a file or folder that may not be read or written
    └── GD990 InternalError                       graphdock broke a promise of its own

The names are TensorFlow's status names, and each class is besides of Python's kind that TensorFlow 1 raises there: programs catch
``ValueError`` of a shape, ``KeyError`` of a name, ``RuntimeError`` of a closed session. A message says what happened, what was
expected and got, the op and the user's own line that made it, and what to do; those parts are fields of the object. It ends with
the code of its class, of which ``graphdock error CODE`` prints a page.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "ArgumentTypeError",
    "CancelledError",
    "ConfigError",
    "DTypeError",
    "DataLossError",
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
    "OpError",
    "OpSpecError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "PlanError",
    "PluginError",
    "ResourceExhaustedError",
    "ShapeError",
    "UnavailableError",
    "UnimplementedError",
    "UninitializedError",
    "UnknownBackendError",
    "UnknownError",
    "UnknownOpError",
    "also",
    "did_you_mean",
    "format_error",
    "prefixed",
]


class GraphdockError(Exception):
    """Base of every error graphdock raises.

    Args:
      message: what happened, naming the thing.
      status: for TensorFlow's form ``Error(node_def, op, message)``: what stands after its first argument.
      op: name of the operation concerned, such as ``"layer_1/MatMul"``.
      site: the user's own line that made that operation, ``"train.py:14"``.
      expected: what was expected, in words.
      got: what was found instead.
      hint: what to do about it.

    Attributes:
      code: of the class, the same in every version; a subclass outside of this module has its base's. ``graphdock error CODE``
        prints the page that says what causes such an error, and what cures it.
      error_code: TensorFlow's number of the status, such as ``tf.errors.INVALID_ARGUMENT``.
      op: the name of the operation concerned; the Operation itself once a session has raised it.
      node_def: what that Operation is, as plain data, or None.
      step: names the step that failed, where that is another one than the call that raises this.
    """

    code: ClassVar[str] = "GD000"
    error_code: ClassVar[int] = 2

    def __init__(
        self,
        message: Any,
        *status: Any,
        op: Any = None,
        site: str | None = None,
        expected: str | None = None,
        got: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.node_def: Any = None
        self._bare = len(status) >= 2
        if self._bare:
            self.node_def, op, message = message, status[0], status[1]
        super().__init__(message)
        self.message: str = message
        self.op = op
        self.site = site
        self.expected = expected
        self.got = got
        self.hint = hint
        self.step: str | None = None

    @classmethod
    def unknown(cls, message: str, name: str, known: Iterable[str], hint: str | None = None) -> Self:
        """The error about a name that is none of those known: lists them, and suggests the nearest unless a ``hint`` is given."""
        known = list(known)
        return cls(message, expected="one of " + (", ".join(known) or "none"), hint=hint or did_you_mean(name, known))

    @property
    def op_name(self) -> str | None:
        """The name of the operation, whether ``op`` is that or the Operation itself."""
        return self.op if self.op is None else str(getattr(self.op, "name", self.op))

    @property
    def text(self) -> str:
        """The message and its parts, for what goes into another message."""
        text = self.message
        if self.expected is not None and self.got is not None:
            text += f"\n  expected {self.expected}, got {self.got}"
        elif self.expected is not None:
            text += f"\n  expected {self.expected}"
        elif self.got is not None:
            text += f"\n  got {self.got}"
        if self.op is not None:
            text += f"\n  op: {self.op_name}" + (f", made at {self.site}" if self.site else "")
        elif self.site is not None:
            text += f"\n  at {self.site}"
        if self.step is not None:
            text += f"\n  in {self.step}, which had returned before its work was done"
        if self.hint is not None:
            text += f"\n  hint: {self.hint}"
        return text

    def __str__(self) -> str:
        if self._bare:
            return str(self.message)
        return f"{self.text}\n  see: graphdock error {self.code}"


class InvalidArgumentError(GraphdockError, ValueError):
    """A value, dtype, shape, rank or name the caller gave is wrong."""

    code: ClassVar[str] = "GD100"
    error_code: ClassVar[int] = 3


class ShapeError(InvalidArgumentError):
    """Shapes that do not fit the op."""

    code: ClassVar[str] = "GD101"


class DTypeError(InvalidArgumentError, TypeError):
    """A dtype that does not fit the op."""

    code: ClassVar[str] = "GD102"


class ConfigError(InvalidArgumentError):
    """A session configuration, environment variable or command-line value that is wrong."""

    code: ClassVar[str] = "GD103"


class OpSpecError(InvalidArgumentError):
    """An OpDef YAML file that is wrong. ``file``, ``line`` and ``column`` (from 1) say where."""

    code: ClassVar[str] = "GD104"

    def __init__(self, message: str, *, file: str = "<spec>", line: int = 0, column: int = 0, hint: str | None = None):
        super().__init__(f"{file}:{line}:{column}: {message}", hint=hint)
        self.file, self.line, self.column = file, line, column


class PlanError(InvalidArgumentError):
    """A plan graph that breaks the grammar of the IR (see :mod:`graphdock.contracts.ir`)."""

    code: ClassVar[str] = "GD105"


class ManifestError(InvalidArgumentError):
    """A plugin manifest that is missing a field or holds a wrong one."""

    code: ClassVar[str] = "GD106"


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """An argument of the wrong Python type: a number where a name, a graph or a tensor belongs."""

    code: ClassVar[str] = "GD107"


class NotFoundError(GraphdockError, KeyError, ValueError):
    """A name that was looked up is not there."""

    code: ClassVar[str] = "GD200"
    error_code: ClassVar[int] = 5


class UnknownOpError(NotFoundError):
    """No loaded plugin declares this op type."""

    code: ClassVar[str] = "GD201"


class UnknownBackendError(NotFoundError, ConfigError):
    """No installed plugin provides this backend."""

    code: ClassVar[str] = "GD202"


class KernelNotFoundError(NotFoundError):
    """No kernel for a node on any device it may run on; the message lists each candidate and why it lost."""

    code: ClassVar[str] = "GD203"


class AlreadyExistsError(GraphdockError, ValueError):
    """A name or registration that exists already."""

    code: ClassVar[str] = "GD300"
    error_code: ClassVar[int] = 6


class FailedPreconditionError(GraphdockError, RuntimeError):
    """The state of the object forbids the call."""

    code: ClassVar[str] = "GD400"
    error_code: ClassVar[int] = 9


class UninitializedError(FailedPreconditionError):
    """A variable was read before it was assigned."""

    code: ClassVar[str] = "GD401"


class PluginError(FailedPreconditionError):
    """A plugin that is needed now failed to load, or what it brought broke its contract; ``__cause__`` is its error."""

    code: ClassVar[str] = "GD402"


class KernelTieError(FailedPreconditionError):
    """Two kernels of equal rank match a node; the message names both packages and the line that settles it."""

    code: ClassVar[str] = "GD403"


class GradientError(GraphdockError, LookupError):
    """An op on the path from the loss has no gradient."""

    code: ClassVar[str] = "GD500"


class GradientNotFilled(GradientError):
    """A generated gradient stub that nobody has filled in yet."""

    code: ClassVar[str] = "GD501"

    def __init__(self, op_type: str, input_name: str) -> None:
        super().__init__(
            f"the gradient of {op_type} with respect to {input_name!r} is a stub that is not filled in",
            hint="replace the stub's body, or set the input's gradient in the spec",
        )


class OutOfRangeError(GraphdockError):
    """A number that does not fit into its dtype, or an input that has no more elements."""

    code: ClassVar[str] = "GD600"
    error_code: ClassVar[int] = 11


class ResourceExhaustedError(GraphdockError):
    """A device or a disk has no room left."""

    code: ClassVar[str] = "GD700"
    error_code: ClassVar[int] = 8


class UnavailableError(GraphdockError):
    """Something that may be there later is not there now."""

    code: ClassVar[str] = "GD800"
    error_code: ClassVar[int] = 14


class DeviceUnavailable(UnavailableError):
    """A probe found no device. Not a fault: the plugin's stage becomes ``no device``."""

    code: ClassVar[str] = "GD801"

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason, hint=hint)
        self.reason = reason


class DeviceLostError(UnavailableError):
    """A device stopped working for good: what is in flight on it fails, and so does every later call. Its variables are gone.

    Args:
      device: its name, such as ``"cuda:0"``.
      reason: what the driver says.
    """

    code: ClassVar[str] = "GD802"

    def __init__(self, device: str, reason: str, *, op: str | None = None, site: str | None = None) -> None:
        hint = "its variables are gone; start a new process, and restore them from a checkpoint"
        super().__init__(f"{device} is lost: {reason}", op=op, site=site, hint=hint)
        self.device = device
        self.reason = reason


class AbortedError(GraphdockError):
    """A step was stopped because another part of it failed."""

    code: ClassVar[str] = "GD900"
    error_code: ClassVar[int] = 10


class CancelledError(GraphdockError):
    """A step was stopped on purpose: its session was closed, or its caller cancelled it."""

    code: ClassVar[str] = "GD910"
    error_code: ClassVar[int] = 1


class DeadlineExceededError(GraphdockError):
    """A step ran past its deadline."""

    code: ClassVar[str] = "GD920"
    error_code: ClassVar[int] = 4


class UnimplementedError(GraphdockError, NotImplementedError):
    """A feature that this version declares but does not have."""

    code: ClassVar[str] = "GD930"
    error_code: ClassVar[int] = 12


class KernelRefused(UnimplementedError):
    """A kernel that can't compute a node after all, raised by its ``prepare``. Another one is chosen, and the reason recorded."""

    code: ClassVar[str] = "GD931"


class UnknownError(GraphdockError):
    """User code that a step called, such as a ``tf.py_func``, raised what no other class stands for; or a server can't listen."""

    code: ClassVar[str] = "GD940"
    error_code: ClassVar[int] = 2


class DataLossError(GraphdockError):
    """A file, such as a checkpoint, is damaged, cut off, or of no known format."""

    code: ClassVar[str] = "GD950"
    error_code: ClassVar[int] = 15


class PermissionDeniedError(GraphdockError):
    """A file or folder may not be read or written."""

    code: ClassVar[str] = "GD960"
    error_code: ClassVar[int] = 7


class InternalError(GraphdockError):
    """graphdock broke a promise of its own; please report it."""

    code: ClassVar[str] = "GD990"
    error_code: ClassVar[int] = 13


#: TensorFlow's name of the base.
OpError = GraphdockError

#: TensorFlow's numbers of statuses.
OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


def exception_type_from_error_code(error_code: int) -> type[GraphdockError]:
    """The class of a status, such as ``tf.errors.NOT_FOUND``. Raises KeyError for a number that no class has."""
    kinds = {kind.error_code: kind for kind in reversed(GraphdockError.__subclasses__()) if "error_code" in vars(kind)}
    return kinds[error_code]


def error_code_from_exception_type(cls: type[GraphdockError]) -> int:
    """TensorFlow's number of an error class's status; UNKNOWN for a class that is none of graphdock's."""
    return cls.error_code if issubclass(cls, GraphdockError) else UNKNOWN


def prefixed(what: str, error: GraphdockError, site: str | None = None) -> GraphdockError:
    """The same error, whose message begins with ``what``; with a line of the user's where it has none."""
    parts = {"expected": error.expected, "got": error.got, "hint": error.hint}
    return type(error)(f"{what}: {error.message}", op=error.op, site=error.site or site, **parts)


def also(error: GraphdockError, cause: Exception) -> GraphdockError:
    """``error``, which is of the class of ``cause`` too and has its attributes, so that a program catches it by that class.

    Where Python can't join the two classes, as with those of OSError, ``error`` as it is.
    """
    if not isinstance(error, type(cause)):
        try:
            error.__class__ = _joined(type(error), type(cause))
        except TypeError:
            return error
    for name, value in vars(cause).items():
        if name != "__notes__":  # those are printed with the cause
            vars(error).setdefault(name, value)
    return error


def _joined(kind: type[GraphdockError], other: type[Exception]) -> type[GraphdockError]:
    """A class of both, under the name of the first, whose pickled errors are those of the first."""
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    return type(kind.__name__, (kind, other), {**names, "__reduce__": lambda self: (kind, self.args, vars(self))})


def format_error(error: BaseException) -> str:
    """An error's class and words, for what goes into another message."""
    return f"{type(error).__name__}: {error.text if isinstance(error, GraphdockError) else error}"


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint at the nearest known name, or None; see :mod:`graphdock.suggest`, which is imported for mistakes alone."""
    from graphdock.suggest import did_you_mean as nearest

    return nearest(name, known)
