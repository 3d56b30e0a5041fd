"""Kernels whose outputs' shapes depend on values: they read what the GPU has made before they go on.

    @dynamic("Where")
    def where(r: Run) -> None:
        count = r.scratch(dtypes.int64, 1)
        r.launch(...)
        (n,) = r.read(count)
        out = r.output((int(n), rank))
        r.launch(...)

Each step of it runs at once. Reading waits for the queue, so that such a node parts a recording.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import HOST_MEMORY, BindContext, DType, KernelDef, PrepareContext, Prepared

from graphdock_cuda.bound import Arrays, Bindings, bind_steps
from graphdock_cuda.kernel import DEVICE
from graphdock_cuda.work import Operand, Step, Work

__all__ = ["Run", "dynamic_family"]


class Run(Work):
    """A Work whose steps run as they are told. Scratch buffers and outputs are allocated when they are asked for."""

    def __init__(self, ctx: BindContext, bindings: Bindings, args: Sequence[Any]) -> None:
        inputs = args[: len(ctx.inputs)]
        shaped = [(i.name, i.dtype, tuple(x.shape)) for i, x in zip(ctx.inputs, inputs, strict=True)]
        values = {
            n: np.asarray(x)
            for n, (i, x) in enumerate(zip(ctx.inputs, inputs, strict=True))
            if i.memory_space == HOST_MEMORY
        }
        static = [None if o.shape is None or None in o.shape else tuple(o.shape) for o in ctx.outputs]
        outs = [(o.name, o.dtype, s) for o, s in zip(ctx.outputs, static, strict=True)]
        super().__init__(ctx.node, ctx.device, shaped, outs, values)  # type: ignore[arg-type]
        self._ctx = ctx
        self._bindings = bindings
        self._scratch: list[Any] = []
        stream = args[len(inputs)] if _random(ctx) else None
        self._arrays = _Arrays(inputs, [None] * len(outs), self._scratch, stream)

    def output(self, shape: Sequence[int], index: int = 0) -> Operand:
        made = super().output(shape, index)
        self._arrays.outputs[index] = self._ctx.queue.empty(made.dtype, made.shape)
        return made

    def host_output(self, value: np.ndarray, index: int) -> None:
        """An output that lies in host memory."""
        self._arrays.outputs[index] = np.ascontiguousarray(value, self.out_dtype(index).np).reshape(np.shape(value))

    def scratch(self, dtype: DType, shape: Sequence[int] | int) -> Operand:
        dims = (shape,) if isinstance(shape, int) else tuple(int(d) for d in shape)
        self._scratch.append(self._ctx.queue.empty(dtype, dims))
        return Operand("scratch", len(self._scratch) - 1, dtype, dims)

    def read(self, operand: Operand) -> np.ndarray:
        """Return what an array holds once all that was told so far is done. It waits for the queue; errors are left to its
        fence.
        """
        array = np.empty(operand.shape, operand.dtype.np)
        if not array.nbytes:
            return array
        device, queue = self.device, self._ctx.queue
        slot = device.pinned.take(array.nbytes)
        address = self._arrays.address(operand)
        assert address is not None
        try:
            device.driver.copy(slot.ctypes.data, address, array.nbytes, queue.stream)
            device.driver.stream_synchronize(queue.stream)
        except Exception as error:
            raised = device.explained(error, "read what a kernel made")
            if raised is error:
                raise
            raise raised from error
        array.reshape(-1).view(np.uint8)[...] = slot
        return array

    def made(self) -> Any:
        """Return what the kernel returns."""
        outputs = self._arrays.outputs
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _do(self, step: Step) -> None:
        fixed, varying = bind_steps([step], self._arrays, self._bindings)
        for run in fixed:
            run()
        for act in varying:
            act(self._arrays)


class _Arrays(Arrays):
    """Arrays whose scratch buffers are arrays of their own."""

    outputs: list[Any]
    scratch: Any

    def address(self, operand: Operand) -> int | None:
        if operand.kind == "scratch":
            address: int = self.scratch[operand.index].address + operand.offset
            return address
        return super().address(operand)


def _random(ctx: BindContext) -> bool:
    return "random" in ctx.node.opdef.effects


def dynamic_family(kernels: list[KernelDef]) -> Callable[..., Callable[[Callable[[Run], None]], Callable[[Run], None]]]:
    """The decorator of a family, for functions of one Run."""

    def dynamic(*ops: str, **declared: Any) -> Callable[[Callable[[Run], None]], Callable[[Run], None]]:
        def add(trace: Callable[[Run], None]) -> Callable[[Run], None]:
            def prepare(ctx: PrepareContext) -> Prepared:
                return Prepared(lambda bind: _compute(bind, trace), capture_safe=False)

            kernels.extend(KernelDef(op, DEVICE, prepare=prepare, **{"modes": ("fresh",), **declared}) for op in ops)
            return trace

        return add

    return dynamic


def _compute(ctx: BindContext, trace: Callable[[Run], None]) -> Callable[..., Any]:
    bindings = Bindings(ctx.device, ctx.queue, ctx.node)  # type: ignore[arg-type]

    def compute(*args: Any) -> Any:
        bindings.again()
        run = Run(ctx, bindings, args)
        trace(run)
        return run.made()

    bindings.end_with(compute)
    return compute
