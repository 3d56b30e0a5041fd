"""Work of libraries on operands that lie where these can't take them.

Their algorithms may want aligned addresses. Arrays of a plan have them; a view of the second row of an array, say, may not. Such an
operand is copied to memory of its own before, and what is written there from it behind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphdock.contracts import dtypes

from graphdock_cuda.driver.api import ConvolutionPlan, GemmPlan
from graphdock_cuda.work import Operand, Step

if TYPE_CHECKING:
    from graphdock_cuda.bound import Arrays, Bindings

__all__ = ["bound_library"]


def bound_library(step: Step, known: Arrays, bindings: Bindings) -> tuple[Callable[[Arrays], None], bool]:
    """Return how the step is done, and whether that varies from call to call.

    Where an operand lies is mostly known now; what it needs is allocated now then, so that a step does not.
    """
    plan: ConvolutionPlan | GemmPlan = step.what
    *operands, _ = step.args
    read, written = _uses(plan)
    addresses = [None if x is None else known.address(x) for x in step.args]
    varies = any(x is not None and a is None for x, a in zip(step.args, addresses, strict=True))
    kept = {
        i: bindings.device.lasting(x.nbytes)
        for i, (x, address) in enumerate(zip(operands, addresses, strict=False))
        if address is not None and address % plan.aligned
    }
    driver, queue = bindings.device.driver, bindings.queue
    run: Callable[..., None] = plan.run

    def room(index: int, operand: Operand) -> Any:
        return kept[index] if index in kept else queue.empty(dtypes.uint8, (operand.nbytes,))

    def act(arrays: Arrays) -> None:
        *given, workspace = (0 if x is None else arrays.address(x) or 0 for x in step.args)
        staged = {i: room(i, operands[i]) for i, address in enumerate(given) if address % plan.aligned}
        for i in staged.keys() & read:
            driver.copy(staged[i].address, given[i], operands[i].nbytes, queue.stream)
        run(
            queue.stream, *(staged[i].address if i in staged else address for i, address in enumerate(given)), workspace
        )
        for i in staged.keys() & written:
            driver.copy(given[i], staged[i].address, operands[i].nbytes, queue.stream)

    return act, varies


def _uses(plan: ConvolutionPlan | GemmPlan) -> tuple[set[int], set[int]]:
    """Return which operands are read, and which are written: of x, w, y, or of a, b, d, bias, aux."""
    if isinstance(plan, ConvolutionPlan):
        made = "xwy".index(plan.convolution.makes)
        return {0, 1, 2} - {made}, {made}
    gemm = plan.gemm
    written = {2} | ({3} if gemm.epilogue.startswith("sums") else set()) | ({4} if "aux" in gemm.epilogue else set())
    return {0, 1, 2, 3, 4} - written | ({2} if gemm.adds else set()), written
