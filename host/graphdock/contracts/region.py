"""Region compilers: a plugin takes connected nodes of a placed plan and returns one kernel for them.

When kernels are chosen, connected nodes of one device are offered to the compilers for its type, in the order of the session's
``backends``. What one claims becomes a single node of a synthetic op, with a kernel like any other: storage, in-place outputs, host
arguments, recording and ``explain`` treat it as they treat every node. The rest is offered again. ``fusion = false`` in the
configuration offers nothing.

Threads: ``claim``, ``prepare`` and ``build`` run under the planner's lock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from graphdock.contracts.ir import PlanNode, Region
from graphdock.contracts.kernel import Bound, BuildContext, KernelDef, PrepareContext, Prepared

__all__ = ["Arrangement", "Claim", "Refusal", "RegionCompiler", "RegisteredCompiler"]


@dataclass(frozen=True, slots=True)
class Claim:
    """The compiler takes these nodes of the candidate, at this estimated cost of one run in microseconds.

    Nodes that are predicted to take 10 us less by themselves, each by its own kernel, as traced steps tell, or else
    ``Device.rates``, are left as they are, and ``explain`` says so: they are not offered again with those around them. Where that
    is not known, and of loops, the claim stands.

    No path may leave the nodes and come back to them: they must be able to run as one. Constants and parts (``Region.parts``) among
    them are ignored; each region has its own copies.
    """

    nodes: tuple[PlanNode, ...]
    cost_us: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """The compiler takes nothing of the candidate; ``reason``, which is not empty, is printed by ``explain``."""

    reason: str


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Elements of a tensor in another order, as a kernel reads them: a weight in panels, say.

    Attributes:
      key: equal where the order is, of one tensor. ``shape``: of the array that they fill, of the tensor's dtype.
      kernel: makes it, of the tensor; for the op ``Arranged`` of one input and output. ``fill(array, room)``: makes it in an array
        that stays for more than a step, every element of it. Both arrays are the host's.
    """

    key: Hashable
    shape: tuple[int, ...]
    kernel: KernelDef
    fill: Callable[[Any, Any], object]


class RegionCompiler(ABC):
    """Compiles regions for one device type.

    Attributes:
      name: unique in its plugin; kernels of its regions are called ``plugin.name``.
      device_type: of the regions that it is offered.
      layout: ``contiguous`` or ``strided``, as of a KernelDef.
      programs: whether it prints region programs. It is then offered whatever has one, reductions, broadcasts and reshapes too, and
        finds it in ``Region.program``, in ``claim`` that of the candidate and in ``prepare`` and ``build`` that of the region.
        Otherwise it is offered elementwise nodes, and reads the graph.
      updates: whether it takes nodes that write variables, whose programs have outputs with ``into``; one by itself, too. The
        kernel gets the variable's own memory in the place of its handle.
      products: whether it takes products of matrices, in whose programs dims of inputs stand in any order; with what follows them,
        and one by itself, too.
      parts: whether it reads parts of tensors, and transposed matrices, where they lie (``RegionInput.strides``). The graphs that
        it is offered then hold copies of the nodes that only say where a part lies (``Region.parts``), which it does not claim.
        One that takes loops, too, is offered those that cut, turn and join tensors: steps may be a :class:`LoopCopy`.
      loops: whether it takes loops as one: those whose conditions and bodies are regions that it takes, where one node may be a
        region (``Region.step``), of shapes that stay, without random numbers, that write no variables. It finds each in
        ``Region.loop``, and claims its only node. A loop may never end: its kernel calls ``BindContext.check`` now and then. For
        a variable that the loop reads the kernel gets the variable's own memory.
      histories: whether it takes loops that read or make histories (``LoopProgram.scans`` and ``kept``), or such within, too.
        Its kernel is given a list of buffers or a :class:`RowHistory` for each that is read, and returns one or the other for
        each that is made, whose modes are ``fresh``; for a history of histories a list of such, or a :class:`RaggedHistory`,
        and for one of tensors of different lengths a list, or a :class:`TensorHistory`.
      unknown_dims: whether it takes programs with axes whose extent only the step knows (``Axis.extent`` is None). All dims on one
        axis are the same then; a kernel finds the extent in the shape of an input that has the axis, of which there is one. Of a
        part ``RegionInput.spans`` say where.
      gathers: whether it reads rows of tensors where indices say (``RegionInput.indices``): with what reads these rows, and
        with ``reductions`` by itself. Its kernel raises the error of an index out of range (``RegionProgram.check_indices``).
      largest: nodes of one candidate, at most; of more than so many connected ones each part is a candidate by itself, so that
        planning stays linear.
      single: whether it takes one elementwise node by itself that reads what a kernel of its plugin makes, and whose result another
        one of them reads; control edges do not count. For kernels that are native code (``Prepared.native``): their calls are one
        where nothing else stands between them.
      reductions: whether it takes one node by itself that reduces, such as a softmax, a sum, or the norm that a pattern put in the
        place of several nodes; or that reads more than two tensors, as ``AddN`` and ``Select``. With others such nodes are offered
        without it.
    """

    name: str = "region"
    device_type: str
    layout: str = "contiguous"
    largest: int = 512
    programs: bool = False
    updates: bool = False
    products: bool = False
    parts: bool = False
    reductions: bool = False
    loops: bool = False
    histories: bool = False
    unknown_dims: bool = False
    single: bool = False
    gathers: bool = False

    @abstractmethod
    def claim(self, candidate: Region) -> Claim | Refusal:
        """The part of the candidate that this compiler would take: nodes of ``candidate.graph``. Must not change the candidate."""

    def prepare(self, region: Region, ctx: PrepareContext) -> Prepared:
        """Facts of a claimed region's kernel that a plan needs; ``ctx`` describes the region as if it were one node.

        Its inputs and outputs are those of ``region.graph``, in order, named ``in0, in1, ...`` and ``out0, out1, ...``. It runs
        once per plan, and starts the compilation (``Prepared.ready``). Where it raises KernelRefused, or the compilation fails,
        the nodes are put back, and other compilers and then kernels get them. Another error is a PluginError that names the
        compiler. A compiler has this or ``build``.
        """
        raise NotImplementedError

    def build(self, region: Region, ctx: BuildContext) -> Bound:
        """A Bound for a claimed region, of a compiler that has nothing to prepare: it can't fail.

        It runs for every instance of a plan, so that what is dear is kept between calls.
        """
        raise NotImplementedError

    def arranged(self, region: Region) -> Mapping[int, Arrangement | str]:
        """Inputs of a claimed region that its kernel would rather have in another order, by their numbers (``RegionInput.source``);
        of others, why they are read as they lie, which ``explain`` says of weights.

        One that regions share is made once, as a node of the plan, one of a constant when the plan is made, and one of a variable
        that the plan does not write when it was written; ``Region.arranged`` tells a region before it is prepared that it gets
        that array in the place of the tensor. What one region wants of another value is not made.
        """
        return {}

    def inplace(self, region: Region) -> Mapping[str, tuple[str, ...]]:
        """Output name (``out0``) -> names of inputs (``in0``) whose buffer it may take over, as of a KernelDef: the kernel then
        reads and writes one buffer.

        Of programs only what ``RegionOutput.inplace`` allows: that nothing outside reads the input any more. What the kernel reads
        there after it has written, along other axes, say, is its own to see to. Another answer is an error.
        """
        return {}


@dataclass(frozen=True, slots=True)
class RegisteredCompiler:
    """A region compiler and who brought it: ``plugin`` is the entry-point name, ``package`` the import package."""

    plugin: str
    package: str
    compiler: RegionCompiler

    @property
    def full_name(self) -> str:
        """``llvm.region``; what ``explain`` writes."""
        return f"{self.plugin}.{self.compiler.name}"
