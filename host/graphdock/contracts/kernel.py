"""The kernel contract: what a kernel declares, what it is told, and what it hands back. A kernel is declared in one of two ways.

**One function.** ``build(ctx)`` returns a :class:`Bound`, or just its ``compute``. It is called once per node and instance of a
plan (as many instances as steps run at once), so that what it makes may hold state. The first call is made while the plan is
made, under the planner's lock; what it states (``args``, ``scratch``, ``retains``, ``capture_safe``) holds for all instances, and
its result serves the first of them. Later calls are made on the thread of the step that needs another instance, under a lock of
the plan. On a device with queues a kernel is built once more than there are instances.

**Two functions.** ``prepare(ctx)`` is called once per node of a plan, under the planner's lock, before memory is planned: here is
the time to compile, tune, and choose a layout. It takes no device memory, and returns a :class:`Prepared`, which states the same
facts at once. ``Prepared.ready`` is a future where compiling goes on meanwhile; the futures of all kernels of a plan are awaited
together. ``Prepared.bind(ctx)`` is called once per instance, where later calls of ``build`` are, and is told each buffer whose
address never changes. A kernel that can't after all raises KernelRefused in ``prepare``, or lets its future fail.

``compute`` is called once per step, or once per iteration of a loop, strictly positionally: the inputs, then the planned outputs,
then the scratch buffers; on the thread that runs the step, never twice at once for one Bound. It may be a bare ufunc: a Python
wrapper around one costs a fifth of its time.

**Waiting.** All outputs of an op with the effect ``waits`` are fresh, and ``compute`` may return a ``concurrent.futures.Future`` of
them in place of them. Who hands something over calls ``set_running_or_notify_cancel`` of the Future first: where that is False the
step that waited has stopped, and nothing is lost. A kernel that waits on its own, inside ``compute``, can't be woken.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from graphdock.contracts.device import Device
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.kernel_facts import check_by_itself
from graphdock.contracts.lazy_dataclass import defaults_of, lazy_dataclass
from graphdock.dtypes import DType
from graphdock.errors import InternalError, InvalidArgumentError
from graphdock.shape import Dims

if TYPE_CHECKING:
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    from graphdock.contracts.native import Native

__all__ = [
    "ArgInfo",
    "BindContext",
    "Bound",
    "BuildContext",
    "Candidate",
    "Decision",
    "FRESH",
    "PartialWriteError",
    "In",
    "KEYWORDS",
    "KernelDef",
    "KernelModule",
    "Lit",
    "Mode",
    "NotCompiled",
    "Out",
    "OutInfo",
    "PLANNED",
    "PrepareContext",
    "Prepared",
    "Scratch",
    "UNDECIDED",
    "ViewRule",
    "build_kernel",
    "inplace",
    "view",
]

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@lazy_dataclass(frozen=True, slots=True)
class Mode:
    """Source of an output's memory. ``input`` is the index of the input that a view or in-place output shares."""

    kind: str
    input: int = -1


#: The host hands compute a contiguous buffer to write.
PLANNED = Mode("planned")
#: compute returns the buffer (several outputs: a tuple, in order); the shape may be unknown before. Every kernel accepts it.
#: Where all inputs are contiguous, so is the buffer; a kernel of ``layout="strided"`` may otherwise keep their order.
FRESH = Mode("fresh")


#: In a PrepareContext: storage is not planned yet.
UNDECIDED = Mode("undecided")


@functools.cache
def view(input: int) -> Mode:
    """compute returns a view of that input and copies nothing."""
    return Mode("view", input)


@functools.cache
def inplace(input: int) -> Mode:
    """The output buffer is that input's: compute is handed the same buffer twice."""
    return Mode("inplace", input)


@lazy_dataclass(frozen=True, slots=True)
class ViewRule:
    """Rule for when an output can be a view of an input.

    Attributes:
      input: name of the input.
      needs_contiguous: only of a contiguous input (reshape); a strided one is then copied, in mode ``planned``.
      contiguous: the view of a contiguous input is contiguous (reshape, yes; transpose, no).
    """

    input: str
    needs_contiguous: bool = False
    contiguous: bool = False


@lazy_dataclass(frozen=True, slots=True)
class ArgInfo:
    """One input as the plan knows it.

    Attributes:
      shape: None per unknown dim, None for an unknown rank.
      value: the read-only array it always is, or None.
      contiguous: row-major without gaps. Always true for a kernel of ``layout="contiguous"``; of others, in a PrepareContext, only
        where it is certain already.
      variable: it is a resource handle; compute gets the variable's own buffer and may write it.
    """

    name: str
    dtype: DType
    shape: Dims
    memory_space: str
    value: Any = None
    contiguous: bool = True
    variable: bool = False


@lazy_dataclass(frozen=True, slots=True)
class OutInfo:
    """One output and the mode granted to it. ``shape`` has no unknown dim when the mode is ``planned`` or ``inplace``.

    ``used`` is false when nothing in the plan reads the output: the kernel may then leave its buffer as it is.
    """

    name: str
    dtype: DType
    shape: Dims
    memory_space: str
    mode: Mode
    used: bool = True


@lazy_dataclass(frozen=True, slots=True)
class BuildContext:
    """All a kernel may know. ``node.attrs`` are complete; ``node.site`` is the user's line, for messages.

    Attributes:
      threads: on so many threads ``compute`` may work, the one that calls it among them. None of them is at work any more when it
        returns or raises.
      functions: function attribute -> function of arrays; ask :meth:`function`.
    """

    node: PlanNode
    inputs: tuple[ArgInfo, ...]
    outputs: tuple[OutInfo, ...]
    device: Device
    queue: Any = None
    threads: int = 1
    functions: Callable[[Any], Callable[..., Sequence[Any]]] | None = field(default=None, kw_only=True)

    def attr(self, name: str) -> Any:
        return self.node.attrs[name]

    def function(self, name: str) -> Callable[..., Sequence[Any]]:
        """A function attribute as a function of host arrays, which returns a tuple of them.

        It takes an array for each parameter, then for each tensor that the function captures, but for handles, which need not be
        inputs of the op. It is planned at
        its first call and for each new set of shapes; a call is a step of its own, which locks what it touches, and may come from
        any thread, also after the step that made it. Not while a plan is made. Its method ``anew()`` gives the same function, whose
        random ops with seeds draw from their beginning.

        Raises:
          InternalError: the kernel is built outside of a session.
        """
        if self.functions is None:
            raise InternalError(f"the function {name!r} of {self.node.op} can't be called outside of a session")
        return self.functions(self.node.attrs[name])

    def input(self, name: str) -> ArgInfo:
        """The input of that name (the first, for a list argument)."""
        for info in self.inputs:
            if info.name == name:
                return info
        raise KeyError(name)

    @property
    def fresh(self) -> bool:
        """Return whether output 0 must be returned instead of written."""
        return bool(self.outputs) and self.outputs[0].mode is FRESH


def _goes_on() -> None:
    """A step that nothing stops."""


@lazy_dataclass(frozen=True, slots=True)
class BindContext(BuildContext):
    """Facts that ``bind`` is given: all that ``build`` is, and where buffers are.

    Attributes:
      buffers: one per input, then per planned or in-place output, then per scratch buffer: the buffer itself where it is the same
        in every step of this instance, else None. ``compute`` is called with all of them all the same.
      debug: the session holds its kernels to what they promise; one that takes memory by itself watches it then.
      check: raises the error of a step that must stop; a kernel that may compute for long calls it now and then.
      versions: one per input, or none at all: a function where the input is a variable's own buffer, which the plan only reads.
        Called by ``compute``, it gives another number after each step that may have written the variable: what was made of its
        elements, such as a copy in another layout, holds while the number does.
    """

    buffers: tuple[Any, ...] = ()
    debug: bool = False
    check: Callable[[], None] = _goes_on
    versions: tuple[Callable[[], int] | None, ...] = field(default=(), kw_only=True)


@lazy_dataclass(frozen=True, slots=True)
class PrepareContext:
    """Facts that ``prepare`` is given. ``outputs`` have the mode :data:`UNDECIDED`; which of them are ``used`` is known.

    Attributes:
      measure: ``measure(candidates) -> index`` of the quickest. Each is called as ``candidate(queue, *inputs, *outputs)`` on lent
        buffers of the node's shapes, with unspecified contents, on a lent queue (None on a synchronous device); one kernel at a
        time is measured per device. 0 where nothing may be measured: to explain a plan, in a ``deterministic`` session, or where
        a shape is not known. A candidate that raises is out; when all do, the kernel is refused.
      options: the session's options of the kernel's plugin, as its manifest declares them, defaults filled in;
        none where the plugin is not among the session's ``backends``.
      deterministic: the session is; what was measured once, and kept, must not count then.
      infer: ``infer(shapes, elements)`` gives the outputs' shapes by the op's rule, ``elements`` being host arrays by input.
      threads: on so many threads the kernel may compute, as of a :class:`BuildContext`.
    """

    node: PlanNode
    inputs: tuple[ArgInfo, ...]
    outputs: tuple[OutInfo, ...]
    device: Device
    measure: Callable[[Sequence[Callable[..., Any]]], int]
    options: Mapping[str, Any] = field(default_factory=dict)
    deterministic: bool = False
    infer: Callable[[Sequence[Dims], Mapping[int, Any]], Sequence[Dims]] | None = None
    threads: int = 1

    def attr(self, name: str) -> Any:
        return self.node.attrs[name]


class NotCompiled(Exception):
    """Raised by ``prepare``: code is wanted that ``compile`` makes, which takes long.

    ``compile()`` is called once, on any thread; then ``prepare`` is called again and finds the code. That is at once, or, where
    steps need not wait, while they run without the kernel, which counts as one that refuses until then. An error of ``compile`` is
    one of ``prepare``; an error beside steps is raised by the next of them, which compiles again.
    """

    def __init__(self, compile: Callable[[], Any]) -> None:
        super().__init__("code is not compiled yet")
        self.compile = compile


@lazy_dataclass(frozen=True, slots=True)
class In:
    """In ``Bound.args``: input ``index``."""

    index: int


@lazy_dataclass(frozen=True, slots=True)
class Out:
    """In ``Bound.args``: planned output ``index``."""

    index: int


@lazy_dataclass(frozen=True, slots=True)
class Lit:
    """In ``Bound.args``: this very object."""

    value: Any


@lazy_dataclass(frozen=True, slots=True)
class Scratch:
    """A buffer that lives for one call. In ``Bound.scratch`` it is declared; compute gets it after the outputs."""

    dtype: DType
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if any(d < 0 for d in self.shape):
            raise InvalidArgumentError(
                "a scratch buffer has no such shape", expected="dims of 0 or more", got=repr(self.shape)
            )


@lazy_dataclass(frozen=True, slots=True)
class Bound:
    """A kernel made for one node.

    Attributes:
      compute: called with ``args``, positionally.
      args: what it is called with; None means all inputs, then the planned and in-place outputs, then the scratch buffers.
        Scratch ``i`` is ``Out(len(outputs) + i)``.
      scratch: buffers planned for the call.
      retains: inputs that are kept beyond the step and must therefore be buffers of their own.
      capture_safe: only queues work on buffers whose address never changes.
      within: a context in which a step of such a plan runs, on its thread: how many threads a library uses, say. It is entered
        once, however many kernels name it, and by several threads at once where they run steps.
    """

    compute: Callable[..., Any]
    args: tuple[In | Out | Lit, ...] | None = None
    scratch: tuple[Scratch, ...] = ()
    retains: tuple[int, ...] = ()
    capture_safe: bool = True
    within: AbstractContextManager[Any] | None = None

    def __post_init__(self) -> None:
        if not callable(self.compute):
            raise TypeError(f"its build or bind returned {self.compute!r:.80}, and is to return a function")


def _unbound(*buffers: Any) -> Any:
    raise InternalError("a kernel was called that is not bound to an instance")


Build: TypeAlias = Callable[[BuildContext], "Bound | Callable[..., Any]"]


@lazy_dataclass(frozen=True, slots=True)
class Prepared:
    """Facts of a kernel that a plan needs before its memory is planned.

    Attributes:
      bind: ``BindContext -> compute``, once per instance.
      args, scratch, retains, capture_safe, within: as of a :class:`Bound`.
      modes: kinds of mode it accepts besides ``fresh``, of those in ``KernelDef.modes``; None for all of them.
      ready: the compilation, awaited before memory is planned; its failure is a refusal. None when there is nothing to wait for.
      like, joins: where kernels of one ``like`` are called one behind the other in what their device records, and write variables
        and planned buffers alone, none of which another one of them reads or writes: ``joins(computes)`` gives one function that
        does what all do, called with the arguments of the last one, or None. ``like`` is None for a kernel that is not joined.
      native: how native code calls it; an executor may then make one call of several kernels, of which none is bound but for its
        first call, for traces and in debug mode. Only without ``args`` and streams, and where no output is returned unless it
        says the shapes (``Native.sized``).
      source: the text that was compiled, for ``explain --source``; None where there is none.
    """

    bind: Callable[[BindContext], Callable[..., Any]]
    args: tuple[In | Out | Lit, ...] | None = None
    scratch: tuple[Scratch, ...] = ()
    retains: tuple[int, ...] = ()
    capture_safe: bool = True
    modes: tuple[str, ...] | None = None
    ready: Future[Any] | None = None
    like: Hashable = None
    joins: Callable[[Sequence[Callable[..., Any]]], Callable[..., Any] | None] | None = None
    within: AbstractContextManager[Any] | None = None
    native: Native | None = None
    source: Callable[[], str] | None = None

    def facts(self, compute: Callable[..., Any] = _unbound) -> Bound:
        """Its facts, as a Bound; of a kernel that is bound already, with its ``compute``."""
        return Bound(compute, self.args, self.scratch, self.retains, self.capture_safe, self.within)


Prepare: TypeAlias = Callable[[PrepareContext], Prepared]


class PartialWriteError(Exception):
    """Raised by a kernel of mode ``all_or_nothing`` that could not end what it had begun to write, ``from`` the error that kept it.

    The step raises that error; the variables whose memory the kernel was handed have no value then.
    """


@functools.cache  # asked for every node of every plan
def snake_case(op: str) -> str:
    """As the wrapper of the op is called: ``TopKMask`` -> ``top_k_mask``."""
    bare = op.rpartition(".")[2]
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", bare).lower()


@lazy_dataclass(frozen=True, slots=True)
class KernelDef:
    """A kernel for one op on one device type. Data only, so that a manifest can hold it.

    Attributes:
      op: op type. ``device``: device type, or ``"host"`` for an op that runs on host memory whatever the device.
      build: ``BuildContext -> Bound`` (or just the callable). ``prepare``: ``PrepareContext -> Prepared``. One of the two.
      name: unique in its plugin; default: the op's name in snake case. The full name is ``plugin.name``.
      types: type variable -> dtype names it takes; an absent variable takes all that the op allows.
      attrs: attribute -> values it takes.
      layout: ``contiguous`` (the host guarantees it) or ``strided`` (inputs may be strided views; NumPy takes them).
      host: names of inputs and outputs that lie in host memory whatever the device.
      priority: decides between kernels of one backend; a tie is an error.
      label: a kernel with a label is chosen only by a pin.
      check: ``PlanNode -> None`` when it can, else the reason why not.
      inplace: output name -> names of inputs whose buffer it may take over.
      views: output name -> ViewRule.
      modes: kinds of mode it accepts besides ``fresh``; ``("fresh",)`` for one that can't write into given memory.
        ``"all_or_nothing"``: of each output it takes ``planned``, and writes none before nothing is left that may be refused; so it
        may be handed variables' memory. What keeps it from ending what it has begun to write it raises as PartialWriteError.
      deterministic: it gives the same bits on every run; others are not chosen in a session that is ``deterministic``.
      probe: raises when something that it needs is not here, such as its library, else says what it found, or None. ``graphdock
        doctor``, which prints that, and ``graphdock plugins --probe`` call it; a session never does.

    Raises:
      InvalidArgumentError: it has both ``build`` and ``prepare``, or neither; or a value that is right for no op, such as the
        name of a dtype that there is not.
    """

    op: str
    device: str
    build: Build | None = None
    name: str = ""
    types: Mapping[str, Sequence[str]] = field(default_factory=lambda: _EMPTY)
    attrs: Mapping[str, Sequence[Any]] = field(default_factory=lambda: _EMPTY)
    layout: str = "contiguous"
    host: tuple[str, ...] = ()
    priority: int = 0
    label: str = ""
    check: Callable[[PlanNode], str | None] | None = None
    inplace: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _EMPTY)
    views: Mapping[str, ViewRule] = field(default_factory=lambda: _EMPTY)
    modes: tuple[str, ...] = ("planned", "fresh")
    prepare: Prepare | None = None
    deterministic: bool = True
    probe: Callable[[], str | None] | None = None

    def __post_init__(self) -> None:
        if (self.build is None) == (self.prepare is None):
            raise InvalidArgumentError(
                f"the kernel for {self.op} on {self.device} is declared in {'no' if self.build is None else 'more than one'} way",
                expected="build or prepare",
            )
        check_by_itself(self)

    @property
    def short_name(self) -> str:
        """``name``, or the op's name in snake case: ``clipnorm.ClipNorm`` -> ``clip_norm``."""
        if self.name:
            return self.name
        return snake_case(self.op)


#: What one who makes a KernelDef through a decorator or a library may say of it by keyword.
KEYWORDS = tuple(name for name in defaults_of(KernelDef) if name not in ("op", "device", "build"))


def build_kernel(kernel: KernelDef, ctx: BuildContext) -> Bound:
    """A kernel made for one node at once, whichever way it is declared. For what has no plan: folding, tests, tools.

    Raises:
      KernelRefused: it can't compute this node. And whatever it raises.
    """
    if kernel.prepare is None:
        assert kernel.build is not None
        made = kernel.build(ctx)
        return made if isinstance(made, Bound) else Bound(made)
    undecided = tuple([replace(out, mode=UNDECIDED) for out in ctx.outputs])
    prepared = kernel.prepare(
        PrepareContext(ctx.node, ctx.inputs, undecided, ctx.device, lambda candidates: 0, threads=ctx.threads)
    )
    if prepared.ready is not None:
        prepared.ready.result()
    places = len(ctx.inputs) + sum(o.mode.kind in ("planned", "inplace") for o in ctx.outputs) + len(prepared.scratch)
    told = BindContext(
        ctx.node, ctx.inputs, ctx.outputs, ctx.device, ctx.queue, ctx.threads, (None,) * places, functions=ctx.functions
    )
    return prepared.facts(prepared.bind(told))


@lazy_dataclass(frozen=True, slots=True)
class KernelModule:
    """A module that holds a list ``KERNELS`` of KernelDefs, the same on every machine.

    What the list says stands in the plugin's manifest, written by ``graphdock opgen manifest``; kernels are listed and chosen by
    that. The module is imported once, when one of its kernels is chosen or its ``check`` is asked, on the thread that plans, under
    the planner's lock, and compared with the manifest. It is imported at once, while the plugin loads, where the plugin has no
    manifest, or one without rows of it.

    Attributes:
      name: dotted, such as ``graphdock_mychip.kernels.math``.

    Raises:
      InvalidArgumentError: the name is none of a module.
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not all(part.isidentifier() for part in self.name.split(".")):
            raise InvalidArgumentError("a KernelModule names no module", expected="package.module", got=repr(self.name))


@lazy_dataclass(frozen=True, slots=True)
class Candidate:
    """One kernel (or decomposition) that was considered: its full name, and the reason why it lost; None for the winner."""

    name: str
    device: str
    reason: str | None = None


@lazy_dataclass(frozen=True, slots=True)
class Decision:
    """Reason why a node runs where and how it does: the one record that errors, ``kernels`` and ``explain`` print.

    Attributes:
      kernel: full name of the winner, ``plugin.name``; ``host`` for ops that the host interprets.
      rule: ``pin``, ``backends``, ``priority``, ``only``, ``own package``, ``host``, ``decomposition`` or ``fallback``.
      why: one line for people.
      candidates: all that were considered, winner first.
    """

    kernel: str
    rule: str
    why: str
    candidates: tuple[Candidate, ...] = ()
