"""Ops that draw from distributions with parameters: classes, gamma and Poisson numbers.

What is rejected is drawn again from a block of its own, so that no number depends on what happened to its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.random import sizes, stream_of
from graphdock_cuda.launch import i64
from graphdock_cuda.work import ErrorWord, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)


@kernel("Multinomial", "StatelessMultinomial")
def multinomial(w: Work) -> None:
    logits, count = w.input("logits"), int(w.host("num_samples"))
    rows, classes = logits.shape
    if count < 0:
        raise errors.InvalidArgumentError("num_samples is negative", op=w.node.origin, site=w.node.site, got=str(count))
    out = w.output((rows, count))
    if not out.size:
        return

    def nothing(row: int, _: int) -> errors.GraphdockError:
        return errors.InvalidArgumentError(f"row {row} of logits has no class to draw", expected="a finite logit")

    if not classes:
        raise nothing(0, 0)
    sums = w.scratch(dtypes.float64, (rows, classes))
    made = source("report.cuh", "block.cuh", "running_sums.cuh", "class_sums.cuh", ELEMENT=w.ctype(logits))
    w.launch(
        made, "class_sums", blocks(rows, 1, 1 << 20), 256, logits, sums, i64(rows), i64(classes), ErrorWord(nothing)
    )
    made = source("philox.cuh", "draw_classes.cuh", ELEMENT=w.ctype(out))
    facts = (i64(out.size), i64(count), i64(classes))
    w.launch(made, "draw_classes", blocks(out.size), 256, *stream_of(w), sums, out, *facts)


def _of_each(name: str) -> Callable[[Work], None]:
    def trace(w: Work) -> None:
        parameters = w.input("alpha" if name == "gamma" else "lam")
        out = w.output((*sizes(w.host("shape")), *parameters.shape))
        if out.size:
            made = source("philox.cuh", f"random_{name}.cuh", ELEMENT=w.ctype(parameters), OUT=w.ctype(out))
            facts = (i64(out.size), i64(math.prod(parameters.shape)))
            w.launch(made, f"random_{name}", blocks(out.size), 256, *stream_of(w), parameters, out, *facts)

    return trace


kernel("RandomGamma")(_of_each("gamma"))
kernel("RandomPoisson")(_of_each("poisson"))
