"""The host's structural ops: sums of tensors, zeros and ones, shapes, checks of numbers, and updates of variables in place."""

from __future__ import annotations

from collections.abc import Sequence

from graphdock.contracts import KernelDef, dtypes, errors

from graphdock_cuda.compiled import source
from graphdock_cuda.kernel import NUMBERS, PLAIN, family
from graphdock_cuda.kernels.array_values import host_fact
from graphdock_cuda.kernels.elementwise import elementwise, mapped
from graphdock_cuda.launch import i64
from graphdock_cuda.work import ErrorWord, Operand, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

#: Tensors that one launch adds up.
_AT_ONCE = 32


@kernel("AddN", inplace={"sum": ("inputs",)}, modes=("planned", "fresh", "inplace"))
def add_n(w: Work) -> None:
    """Left to right. Halves of more tensors than one launch takes are kept in float32 in between."""
    terms, out = w.inputs, w.output(w.inputs[0].shape)
    if len(terms) == 1:
        w.copy(out, terms[0])
        return
    wide = dtypes.float32 if out.dtype.accumulator is not out.dtype and out.dtype.is_floating else out.dtype
    while len(terms) > _AT_ONCE:
        part = w.scratch(wide, out.shape)
        _add_up(w, terms[:_AT_ONCE], part)
        terms = [part, *terms[_AT_ONCE:]]
    _add_up(w, terms, out)


def _add_up(w: Work, terms: Sequence[Operand], out: Operand) -> None:
    body = "x0"
    for i in range(1, len(terms)):
        body = f"add({body}, x{i})"
    mapped(w, "add_n", body, terms, out)


@kernel("ZerosLike", types={"T": PLAIN})
def zeros_like(w: Work) -> None:
    w.fill(w.output(w.input(0).shape))


@kernel("OnesLike", types={"T": NUMBERS})
def ones_like(w: Work) -> None:
    out = w.output(w.input(0).shape)
    mapped(w, "ones", "number<C>(1.0)", [], out)


@kernel("CheckNumerics", inplace={"output": ("tensor",)}, modes=("planned", "fresh", "inplace"))
def check_numerics(w: Work) -> None:
    x, message, node = w.input(0), w.attr("message"), w.node
    out = w.output(x.shape)
    if not x.size:
        return

    def wrong(found: int, _: int) -> errors.GraphdockError:
        kinds = " and ".join(name for bit, name in ((1, "NaN"), (2, "infinity")) if found & bit)
        text = f"tensor had {kinds}"
        return errors.InvalidArgumentError(f"{message}: {text}" if message else text, op=node.origin, site=node.site)

    found = w.scratch(dtypes.uint32, 1)
    w.fill(found)
    kept = source("report.cuh", "check_numerics.cuh", ELEMENT=w.ctype(x))
    w.launch(kept, "look", blocks(x.size, 1024, 1 << 16), 256, x, out, i64(x.size), found)
    w.launch(kept, "tell", 1, 1, found, ErrorWord(wrong))


def _update(op: str, formula: str) -> None:
    @kernel(op, types={"dtype": NUMBERS})
    def update(w: Work) -> None:
        variable, value = w.inputs
        if variable.shape != value.shape:
            raise errors.ShapeError(
                "the value has not the shape of the variable",
                expected=str(list(variable.shape)),
                got=str(list(value.shape)),
            )
        elementwise(w, formula, [("variable", variable), ("value", value)], variable)


_update("AssignAddVariableOp", "variable + value")
_update("AssignSubVariableOp", "variable - value")
KERNELS.append(host_fact("Shape", list))
