"""Convolutions of the network library on operands that lie where it can't take them.

Its engines want aligned addresses. Arrays of a plan have them; a view of the second row of an array, say, may not. Such an operand
is copied to memory of its own before, and a result from there behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphdock.contracts import dtypes

from graphdock_cuda.driver.api import ConvolutionPlan
from graphdock_cuda.work import Operand, Step

if TYPE_CHECKING:
    from graphdock_cuda.bound import Arrays, Bindings

__all__ = ["bound_convolution"]


def bound_convolution(step: Step, known: Arrays, bindings: Bindings) -> tuple[Callable[[Arrays], None], bool]:
    """How the step is done, and whether that varies from call to call.

    Where an operand lies is mostly known now; what it needs is allocated now then, so that a step does not.
    """
    plan: ConvolutionPlan = step.what
    *operands, _ = step.args
    made = "xwy".index(plan.convolution.makes)
    addresses = [None if x is None else known.address(x) for x in step.args]
    varies = any(x is not None and a is None for x, a in zip(step.args, addresses, strict=True))
    kept = {
        i: bindings.device.lasting(x.nbytes)
        for i, (x, address) in enumerate(zip(operands, addresses, strict=False))
        if address is not None and address % plan.aligned
    }
    driver, queue = bindings.device.driver, bindings.queue

    def room(index: int, operand: Operand) -> Any:
        return kept[index] if index in kept else queue.empty(dtypes.uint8, (operand.nbytes,))

    def act(arrays: Arrays) -> None:
        *given, workspace = (0 if x is None else arrays.address(x) or 0 for x in step.args)
        staged = {i: room(i, operands[i]) for i, address in enumerate(given) if address % plan.aligned}
        for i, array in staged.items():
            if i != made:
                driver.copy(array.address, given[i], operands[i].nbytes, queue.stream)
        x, w, y = (staged[i].address if i in staged else address for i, address in enumerate(given))
        plan.run(queue.stream, x, w, y, workspace)
        if made in staged:
            driver.copy(given[made], staged[made].address, operands[made].nbytes, queue.stream)

    return act, varies
