"""Work of a kernel on the GPU, told as a small program: launches, fills, copies and matrix products over operands.

A kernel of this package is a function of one argument, a :class:`Work`, which knows attributes, shapes and host values, and takes
down what is to be done. It runs once per plan where all of that is known when the plan is made, and then costs a step nothing but
the launches; else it runs in the step, once for each set of shapes and host values::

    @kernel("Softplus", types={"T": FLOATS})
    def softplus(w: Work) -> None:
        x = w.input(0)
        y = w.output(x.shape)
        w.launch(source("softplus.cuh", TYPE=w.ctype(x)), "softplus", blocks(x.size), 256, x, y, i64(x.size))

A kernel whose output's shape depends on values is told by a function of a :class:`graphdock_cuda.immediate.Run`, which also reads.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from graphdock.contracts import DType, KernelRefused, PlanNode, dtypes, errors

from graphdock_cuda.compiled import Source
from graphdock_cuda.driver.api import Convolution, Gemm
from graphdock_cuda.launch import Param

if TYPE_CHECKING:
    from graphdock_cuda.device import CudaDevice
    from graphdock_cuda.error_words import MakeError

__all__ = ["CTYPES", "ErrorWord", "Operand", "Step", "Stream", "Table", "Together", "Work", "blocks"]

#: Types of elements as the sources spell them; see ``source/base.cuh``.
CTYPES = {
    "bool": "bool",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "half_t",
    "bfloat16": "bfloat16_t",
    "float32": "float",
    "float64": "double",
    "complex64": "complex64",
    "complex128": "complex128",
}


@dataclass(frozen=True, slots=True)
class Operand:
    """An array of the node, or a part of one, without its address.

    Attributes:
      kind: ``input``, ``output`` or ``scratch``; ``index`` counts each kind. ``offset``: bytes from its begin.
    """

    kind: str
    index: int
    dtype: DType
    shape: tuple[int, ...]
    offset: int = 0

    @property
    def size(self) -> int:
        """Return how many elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.dtype.size * self.size

    @property
    def rank(self) -> int:
        return len(self.shape)

    def at(self, elements: int, shape: Sequence[int] | None = None) -> Operand:
        """From that element on."""
        return replace(
            self, offset=self.offset + elements * self.dtype.size, shape=self.shape if shape is None else tuple(shape)
        )

    def reshaped(self, *shape: int) -> Operand:
        """The same elements in another shape."""
        return replace(self, shape=shape)


@dataclass(frozen=True, slots=True)
class Stream:
    """In a launch: the node's random stream, five parameters: key (2), outer, iteration, address of the ordinal."""


@dataclass(frozen=True, slots=True)
class ErrorWord:
    """In a launch: two parameters, the address of the queue's error word and the code to write there."""

    make: MakeError


@dataclass(frozen=True, slots=True)
class Table:
    """In a launch: one parameter by value, ``length`` addresses, those of ``operands`` and null ones behind them."""

    operands: tuple[Operand, ...]
    length: int


#: What a launch takes: an array's address, bytes, or something that the engine fills in.
Arg = Operand | Param | Stream | ErrorWord | Table


@dataclass(frozen=True, slots=True)
class Together:
    """Merging of launches of one source, of several nodes, into one: a kernel that takes a table by value, a row per launch.

    Attributes:
      entry: the kernel: ``entry(table, *shared, i64 count)``. ``most``: rows of its table.
      row: addresses of a row, then ``size``, 8 bytes, and the number of the row's first block; it has the blocks of its launch.
      shared: what all launches must have at the same addresses.
    """

    entry: str
    row: tuple[Operand, ...]
    size: Param
    shared: tuple[Operand, ...]
    most: int


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do.

    Attributes:
      kind: ``launch``, ``fill``, ``copy``, ``gemm`` or ``convolution``.
      args: of a launch its arguments; of a fill the target; of a copy target and source; of a product A, B, D, bias, aux and
        workspace; of a convolution x, w, y and workspace.
      what: byte of a fill, bytes of a copy; plan of a product or a convolution.
      together: how a launch is made one with others like it.
    """

    kind: str
    args: tuple[Any, ...]
    source: Source | None = None
    entry: str = ""
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    shared: int = 0
    what: Any = None
    together: Together | None = None


def blocks(size: int, per_block: int = 256, at_most: int = 1 << 30) -> int:
    """Blocks for so many elements, at least one."""
    return max(1, min(at_most, -(-size // per_block)))


class Work:
    """Work of one node, for one set of shapes and host values.

    Attributes:
      node: attributes complete. ``device``: for facts (``architecture``). ``options``: the session's, of this plugin.
      steps: what was told so far. ``scratch_bytes``: of all scratch buffers that are held at once; ``out_shapes``: as ``output``
        was told.
    """

    def __init__(
        self,
        node: PlanNode,
        device: CudaDevice,
        inputs: Sequence[tuple[str, DType, tuple[int, ...]]],
        outputs: Sequence[tuple[str, DType, tuple[int, ...] | None]],
        values: dict[int, np.ndarray],
        options: Mapping[str, Any] = MappingProxyType({}),
        unused: Collection[int] = (),
    ) -> None:
        self.node = node
        self.device = device
        self.options = options
        self._names = [name for name, _, _ in inputs]
        self._inputs = [Operand("input", i, dtype, tuple(shape)) for i, (_, dtype, shape) in enumerate(inputs)]
        self._outputs = list(outputs)
        self._unused = unused
        self._values = values
        self.steps: list[Step] = []
        self.scratch_bytes = 0
        self._scratch_end = 0
        self.out_shapes: dict[int, tuple[int, ...]] = {}

    # -- what is known

    def attr(self, name: str) -> Any:
        return self.node.attrs[name]

    @property
    def inputs(self) -> list[Operand]:
        """All inputs in order; those in host memory among them, which no launch takes."""
        return list(self._inputs)

    @property
    def multiprocessors(self) -> int:
        """Return how many blocks run side by side, at least: 1 where that is not known."""
        return self.device.info.multiprocessors or 1

    def named(self, name: str) -> list[Operand]:
        """The inputs of one argument."""
        return [x for n, x in zip(self._names, self._inputs, strict=True) if n == name]

    def input(self, which: int | str) -> Operand:
        """An input by position, or the first one of an argument."""
        return self._inputs[which if isinstance(which, int) else self._names.index(which)]

    def host(self, which: int | str) -> np.ndarray:
        """The value of an input that lies in host memory."""
        index = which if isinstance(which, int) else self._names.index(which)
        return self._values[index]

    def has(self, name: str) -> bool:
        """Return whether an argument has any input."""
        return name in self._names

    @property
    def output_count(self) -> int:
        return len(self._outputs)

    def out_dtype(self, index: int = 0) -> DType:
        return self._outputs[index][1]

    def used(self, index: int) -> bool:
        """Return whether anything reads an output; one that nothing reads may be left as it is."""
        return index not in self._unused

    def ctype(self, of: Operand | DType) -> str:
        """The element type as sources spell it."""
        return CTYPES[(of.dtype if isinstance(of, Operand) else of).name]

    def refuse(self, reason: str) -> KernelRefused:
        """For ``raise``: this kernel can't. While a plan is made, another one is chosen then."""
        return KernelRefused(reason, op=self.node.origin, site=self.node.site)

    # -- memory

    def output(self, shape: Sequence[int], index: int = 0) -> Operand:
        """An output, whose shape the kernel tells."""
        told = tuple(int(d) for d in shape)
        _, dtype, static = self._outputs[index]
        if static is not None and tuple(static) != told:
            raise errors.InternalError(
                f"the kernel of {self.node.op} on cuda makes another shape than the op's shape rule",
                expected=str(list(static)),
                got=str(list(told)),
            )
        self.out_shapes[index] = told
        return Operand("output", index, dtype, told)

    def scratch(self, dtype: DType, shape: Sequence[int] | int) -> Operand:
        """A buffer that lives for one call, or as long as what is ``temporary``; aligned to 256 bytes."""
        dims = (shape,) if isinstance(shape, int) else tuple(int(d) for d in shape)
        made = Operand("scratch", 0, dtype, dims, self._scratch_end)
        self._scratch_end += -(-max(made.nbytes, 1) // 256) * 256
        self.scratch_bytes = max(self.scratch_bytes, self._scratch_end)
        return made

    @contextlib.contextmanager
    def temporary(self) -> Iterator[None]:
        """Scratch within is given back behind: what is told later takes the same memory, since steps run in order."""
        begin = self._scratch_end
        yield
        self._scratch_end = begin

    # -- what is to be done

    def launch(
        self,
        source: Source,
        entry: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *args: Arg,
        shared: int = 0,
        together: Together | None = None,
    ) -> None:
        """Launch a kernel of a source. A grid without blocks launches nothing. ``together``: how it is one with others."""
        dims = (grid,) if isinstance(grid, int) else tuple(grid)
        if 0 in dims:
            return
        if dims[0] >= 1 << 31 or any(d > 65535 for d in dims[1:]):
            raise self.refuse(f"a grid of {list(dims)} blocks is beyond what a GPU takes")
        threads = (block,) if isinstance(block, int) else tuple(block)
        self._do(Step("launch", args, source, entry, dims, threads, shared, together=together))

    def fill(self, target: Operand, byte: int = 0) -> None:
        """Set every byte of an array."""
        if target.nbytes:
            self._do(Step("fill", (target,), what=byte))

    def copy(self, target: Operand, origin: Operand) -> None:
        """Copy as many bytes as ``origin`` has."""
        if origin.nbytes:
            self._do(Step("copy", (target, origin), what=origin.nbytes))

    def gemm(
        self, gemm: Gemm, a: Operand, b: Operand, d: Operand, bias: Operand | None = None, aux: Operand | None = None
    ) -> bool:
        """A product by the matrix library; False where there is none, or it has no algorithm for it."""
        plan = self.device.gemm_plan(gemm)
        if plan is None:
            return False
        with self.temporary():
            workspace = self.scratch(dtypes.uint8, plan.workspace) if plan.workspace else None
        self._do(Step("gemm", (a, b, d, bias, aux, workspace), what=plan))
        return True

    def convolution(self, convolution: Convolution, x: Operand, w: Operand, y: Operand) -> None:
        """A convolution by the network library. Raises Unsupported where there is none, or it has no algorithm for it."""
        plan = self.device.convolution_plan(convolution)
        with self.temporary():
            workspace = self.scratch(dtypes.uint8, plan.workspace) if plan.workspace else None
        self._do(Step("convolution", (x, w, y, workspace), what=plan))

    def _do(self, step: Step) -> None:
        self.steps.append(step)


#: For type checkers of kernels: how a kernel is written.
Trace = Callable[[Work], None]
