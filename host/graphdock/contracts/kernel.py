"""The kernel contract: what a kernel declares, what it is told when it is built, and what it hands back.

``build(ctx)`` runs once per node of a plan and returns a :class:`Bound`; ``Bound.compute`` is called once per step, strictly
positionally: the inputs, then the planned outputs, then the scratch buffers. It may be a bare ufunc: a Python wrapper around one
costs a fifth of its time. Whatever depends only on the node is done in ``build``.

Threads: ``build`` runs under the planner's lock; ``compute`` on the thread that runs the step, never twice at once for one Bound.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from graphdock.contracts.device import Device
from graphdock.contracts.ir import PlanNode
from graphdock.dtypes import DType
from graphdock.shape import Dims

__all__ = [
    "ArgInfo",
    "Bound",
    "BuildContext",
    "Candidate",
    "Decision",
    "FRESH",
    "In",
    "KernelDef",
    "Lit",
    "Mode",
    "Out",
    "OutInfo",
    "PLANNED",
    "Scratch",
    "ViewRule",
    "inplace",
    "view",
]

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Mode:
    """How an output gets its memory. ``input`` is the index of the input that a view or in-place output shares."""

    kind: str
    input: int = -1


#: The host hands compute a contiguous buffer to write.
PLANNED = Mode("planned")
#: compute returns the buffer (several outputs: a tuple, in order); the shape may be unknown before. Every kernel accepts it.
FRESH = Mode("fresh")


def view(input: int) -> Mode:
    """compute returns a view of that input and copies nothing."""
    return Mode("view", input)


def inplace(input: int) -> Mode:
    """The output buffer is that input's: compute is handed the same buffer twice."""
    return Mode("inplace", input)


@dataclass(frozen=True, slots=True)
class ViewRule:
    """When an output can be a view of an input.

    Attributes:
      input: name of the input.
      needs_contiguous: only of a contiguous input (reshape); a strided one is then copied, in mode ``planned``.
      contiguous: the view of a contiguous input is contiguous (reshape, yes; transpose, no).
    """

    input: str
    needs_contiguous: bool = False
    contiguous: bool = False


@dataclass(frozen=True, slots=True)
class ArgInfo:
    """One input as the plan knows it.

    Attributes:
      shape: None per unknown dim, None for an unknown rank.
      value: the read-only array it always is, or None.
      contiguous: row-major without gaps. Always true for a kernel of ``layout="contiguous"``.
      variable: it is a resource handle; compute gets the variable's own buffer and may write it.
    """

    name: str
    dtype: DType
    shape: Dims
    memory_space: str
    value: Any = None
    contiguous: bool = True
    variable: bool = False


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class BuildContext:
    """All a kernel may know. ``node.attrs`` are complete; ``node.site`` is the user's line, for messages."""

    node: PlanNode
    inputs: tuple[ArgInfo, ...]
    outputs: tuple[OutInfo, ...]
    device: Device
    queue: Any = None

    def attr(self, name: str) -> Any:
        return self.node.attrs[name]

    def input(self, name: str) -> ArgInfo:
        """The input of that name (the first, for a list argument)."""
        for info in self.inputs:
            if info.name == name:
                return info
        raise KeyError(name)

    @property
    def fresh(self) -> bool:
        """Whether output 0 must be returned instead of written."""
        return bool(self.outputs) and self.outputs[0].mode is FRESH


@dataclass(frozen=True, slots=True)
class In:
    """In ``Bound.args``: input ``index``."""

    index: int


@dataclass(frozen=True, slots=True)
class Out:
    """In ``Bound.args``: planned output ``index``."""

    index: int


@dataclass(frozen=True, slots=True)
class Lit:
    """In ``Bound.args``: this very object."""

    value: Any


@dataclass(frozen=True, slots=True)
class Scratch:
    """A buffer that lives for one call. In ``Bound.scratch`` it is declared; compute gets it after the outputs."""

    dtype: DType
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """A kernel made for one node.

    Attributes:
      compute: called with ``args``, positionally.
      args: what it is called with; None means all inputs, then the planned and in-place outputs, then the scratch buffers.
        Scratch ``i`` is ``Out(len(outputs) + i)``.
      scratch: buffers planned for the call.
      retains: inputs that are kept beyond the step and must therefore be buffers of their own.
      capture_safe: only queues work on buffers whose address never changes.
      may_block: may wait for another step; such a plan holds no locks while it runs.
    """

    compute: Callable[..., Any]
    args: tuple[In | Out | Lit, ...] | None = None
    scratch: tuple[Scratch, ...] = ()
    retains: tuple[int, ...] = ()
    capture_safe: bool = True
    may_block: bool = False


Build: TypeAlias = Callable[[BuildContext], "Bound | Callable[..., Any]"]


@functools.cache  # asked for every node of every plan
def _snake(op: str) -> str:
    bare = op.rpartition(".")[2]
    return "".join(
        ("_" if c.isupper() and i and not bare[i - 1].isupper() else "") + c.lower() for i, c in enumerate(bare)
    )


@dataclass(frozen=True, slots=True)
class KernelDef:
    """A kernel for one op on one device type. Data only, so that a manifest can hold it.

    Attributes:
      op: op type. ``device``: device type, or ``"host"`` for an op that runs on host memory whatever the device.
      build: ``BuildContext -> Bound`` (or just the callable).
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
    """

    op: str
    device: str
    build: Build
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

    @property
    def short_name(self) -> str:
        """``name``, or the op's name in snake case: ``clipnorm.ClipNorm`` -> ``clip_norm``."""
        if self.name:
            return self.name
        return _snake(self.op)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One kernel (or decomposition) that was considered: its full name, and the reason why it lost; None for the winner."""

    name: str
    device: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Why a node runs where and how it does: the one record that errors, ``kernels`` and ``explain`` print.

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
