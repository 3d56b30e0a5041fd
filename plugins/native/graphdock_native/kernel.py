"""The KernelDef of a function in a library: what it declares, how it is prepared, bound and called."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.kernel import ArgInfo, BindContext, OutInfo, PrepareContext, Prepared, Scratch
from graphdock.contracts.opdef import SHAPE_ELEMENTS
from graphdock.dtypes import as_dtype
from graphdock.errors import InvalidArgumentError, KernelRefused
from graphdock.shape import concrete

from graphdock_native.abi import DTYPES
from graphdock_native.call import Call, Tensors, attributes_problem, raise_status
from graphdock_native.watch import Margins, keeping_constants

if TYPE_CHECKING:
    from graphdock_native.library import Launch, NativeLibrary

__all__ = ["bind", "node_problem", "prepare"]

_Array = np.ndarray[Any, Any]


def node_problem(node: PlanNode) -> str | None:
    """Return why no native kernel can compute the node; None when one can."""
    for value in [*node.inputs, *node.outputs]:
        if value.dtype.name not in DTYPES and value.dtype.name != "resource":
            return f"a native kernel takes no {value.dtype.name}"
    if "random" in node.opdef.effects:
        return "a native kernel draws no random numbers"
    if any(a.resource for a in node.opdef.inputs):
        return "a native kernel takes no resource but variables"
    return attributes_problem(node)


def prepare(library: NativeLibrary, symbol: str, launch: Launch, ctx: PrepareContext) -> Prepared:
    """Look the function up, and state what the plan has to know.

    Raises:
      PluginError: the library or the function is not there. KernelRefused: buffers that are not in host memory.
    """
    infos: list[ArgInfo | OutInfo] = [*ctx.inputs, *ctx.outputs]
    for info in infos:
        if info.memory_space != HOST_MEMORY:
            raise KernelRefused(
                f"{info.name!r} lies in {info.memory_space}; a native kernel reads and writes host memory"
            )
        if info.dtype.name not in DTYPES:
            raise KernelRefused(f"a native kernel takes no {info.dtype.name}")
    function = library.symbol(symbol)
    constants = [np.ascontiguousarray(array).reshape(np.shape(array)) for array in launch.constants]
    for array in constants:
        if as_dtype(array.dtype).name not in DTYPES:
            raise InvalidArgumentError(f"a constant of the native kernel {symbol} is no array of numbers")
    shapes = [concrete(info.shape) for info in ctx.inputs]
    known = None not in shapes and all(concrete(out.shape) is not None for out in ctx.outputs)
    planned = tuple(launch.scratch_of([s for s in shapes if s is not None])) if known else ()
    make = functools.partial(bind, function, symbol, launch, constants, planned if known else None, ctx)
    return Prepared(make, scratch=planned, capture_safe=False)


def bind(
    function: Any,
    symbol: str,
    launch: Launch,
    constants: Sequence[_Array],
    planned: Sequence[Scratch] | None,
    prepared: PrepareContext,
    ctx: BindContext,
) -> Callable[..., Any]:
    """``compute`` of one instance.

    Args:
      planned: the scratch buffers that the host plans; None where their shapes are not known before a call.
      prepared: what ``prepare`` was told.
    """
    call = Call(
        ctx.node,
        [out.name for out in prepared.outputs],
        Tensors([info.dtype for info in ctx.inputs]),
        Tensors([out.dtype for out in ctx.outputs]),
        constants,
    )
    if planned is not None:
        call.set_scratch(planned)
    compute: Callable[..., Any]
    if planned is not None and not ctx.fresh and all(info.contiguous for info in ctx.inputs):
        compute = _fixed(function, symbol, call, ctx)
    else:
        compute = _Open(function, symbol, launch, planned is not None, call, prepared, ctx)
    return keeping_constants(compute, constants, symbol, ctx.node) if ctx.debug and constants else compute


def _fixed(function: Any, symbol: str, call: Call, ctx: BindContext) -> Callable[..., Any]:
    """All shapes are known and all buffers row-major and given: only addresses that change are set per call."""
    parts = (call.inputs, call.outputs, call.scratch)
    places = [(tensors, i) for tensors in parts for i in range(len(tensors))]
    infos: list[ArgInfo | OutInfo] = [*ctx.inputs, *ctx.outputs]
    for (tensors, i), info in zip(places, infos, strict=False):
        shape = concrete(info.shape)
        assert shape is not None
        tensors.set_shape(i, shape)
    moving: list[tuple[int, Callable[[Any], None], Any]] = []
    for position, ((tensors, i), buffer) in enumerate(zip(places, ctx.buffers, strict=True)):
        if buffer is None:
            moving.append((position, tensors.setter(i), tensors.dtypes[i].np))
        else:
            tensors.set_buffer(i, buffer)
    struct, node = call.struct, ctx.node

    def compute(*buffers: Any) -> None:
        held = []  # arrays made of scalars live until the call returns
        for position, set_address, dtype in moving:
            buffer = buffers[position]
            if type(buffer) is not np.ndarray:
                buffer = np.asarray(buffer, dtype)
                held.append(buffer)
            set_address(buffer)
        status = function(struct)
        if status:
            raise_status(status, call.said(), symbol, node)

    return compute


class _Open:
    """Shapes, strides or outputs are known only when it is called; those of the last call are kept."""

    def __init__(
        self,
        function: Any,
        symbol: str,
        launch: Launch,
        scratch_given: bool,
        call: Call,
        prepared: PrepareContext,
        ctx: BindContext,
    ) -> None:
        self._infer = prepared.infer
        self._function, self._symbol, self._launch = function, symbol, launch
        self._scratch_given, self._call, self._node = scratch_given, call, ctx.node
        self._fresh = ctx.fresh
        self._dtypes = [info.dtype.np for info in ctx.inputs]
        self._out_dtypes = [out.dtype.np for out in ctx.outputs]
        self._out_shapes: Sequence[Sequence[int]] = [concrete(out.shape) or () for out in ctx.outputs]
        self._out_names = [f"its output {out.name!r}" for out in ctx.outputs]
        self._wanted: Sequence[Scratch] = ()
        self._scratch: list[_Array] = []
        self._margins = Margins(symbol, ctx.node) if ctx.debug else None
        self._last: Any = None

    def __call__(self, *buffers: Any) -> Any:
        call, count = self._call, len(self._dtypes)
        inputs = [
            b if type(b) is np.ndarray else np.asarray(b, d) for b, d in zip(buffers[:count], self._dtypes, strict=True)
        ]
        key = [(a.shape, a.strides, self._elements(a)) for a in inputs]
        if key != self._last or (self._fresh and self._launch.shapes is not None):
            self._last = None
            self._set_shapes(inputs)
            self._last = key
        rest = list(buffers[count:])
        if self._fresh:
            made = self._new(self._out_names, self._out_shapes, self._out_dtypes)
        else:
            made, rest = rest[: len(self._out_dtypes)], rest[len(self._out_dtypes) :]
        scratch = rest
        if not self._scratch_given:
            scratch = self._scratch if self._margins is None else self._new_scratch()
        for tensors, arrays in ((call.inputs, inputs), (call.outputs, made), (call.scratch, scratch)):
            for i, array in enumerate(arrays):
                tensors.set_buffer(i, array)
        status = self._function(call.struct)
        if self._margins is not None:
            self._margins.check()
        if status:
            raise_status(status, call.said(), self._symbol, self._node)
        if not self._fresh:
            return None
        return made[0] if len(made) == 1 else tuple(made)

    def _elements(self, array: _Array) -> bytes | None:
        """Return what the op's shape rule may read of an input besides its shape."""
        read = self._fresh and array.dtype.kind in "biu" and array.size <= SHAPE_ELEMENTS
        return array.tobytes() if read else None

    def _set_shapes(self, inputs: Sequence[_Array]) -> None:
        call = self._call
        for i, array in enumerate(inputs):
            call.inputs.set_shape(i, array.shape, array.strides if array.size else None)
        if self._fresh:
            self._out_shapes = self._shapes_of(inputs)
        for i, shape in enumerate(self._out_shapes):
            call.outputs.set_shape(i, shape)
        if not self._scratch_given:
            self._wanted = self._launch.scratch_of([a.shape for a in inputs])
            call.set_scratch(self._wanted)
            self._scratch = self._new_scratch()

    def _new_scratch(self) -> list[_Array]:
        names = [f"scratch buffer {i}" for i in range(len(self._wanted))]
        return self._new(names, [s.shape for s in self._wanted], [s.dtype.np for s in self._wanted])

    def _new(self, names: Sequence[str], shapes: Sequence[Sequence[int]], dtypes: Sequence[Any]) -> list[_Array]:
        """Buffers made for a call; in debug mode with margins, which are looked at after it."""
        if self._margins is None:
            return [np.empty(s, d) for s, d in zip(shapes, dtypes, strict=True)]
        return [self._margins.new(n, s, d) for n, s, d in zip(names, shapes, dtypes, strict=True)]

    def _shapes_of(self, inputs: Sequence[_Array]) -> Sequence[Sequence[int]]:
        """The outputs' shapes, by the function that the kernel brings, else by the op's shape rule."""
        if self._launch.shapes is not None:
            found = [tuple(int(d) for d in s) for s in self._launch.shapes(self._node, inputs)]
            if len(found) != len(self._out_dtypes):
                raise InvalidArgumentError(
                    f"shapes of the native kernel {self._symbol} returned the wrong number of shapes",
                    expected=str(len(self._out_dtypes)),
                    got=str(len(found)),
                )
            return found
        node = self._node
        pairs = zip(node.inputs, inputs, strict=True)
        given = [value.shape if value.dtype.name == "resource" else array.shape for value, array in pairs]
        inferred = [None] * len(node.outputs) if self._infer is None else self._infer(given, dict(enumerate(inputs)))
        shapes = [concrete(dims) for dims in inferred]
        for out, shape in zip(node.outputs, shapes, strict=True):
            if shape is None:
                raise InvalidArgumentError(
                    f"the shape of {out.name} of {node.op} depends on more than its spec says",
                    hint=f"give the native kernel {self._symbol} a function: library.kernel(..., shapes=...)",
                )
        return [s for s in shapes if s is not None]
