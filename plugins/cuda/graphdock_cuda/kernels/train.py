"""Optimizer updates: one pass over a variable, its slots and its gradient, in place.

Rates lie on the GPU and are read by the kernel, so that a recorded step goes on with new ones. An update of some rows sorts their
numbers first: each row gets the sum of its gradients in their order, whatever runs when.
"""

from __future__ import annotations

import functools

from graphdock.contracts import KernelDef, errors

from graphdock_cuda.compiled import Source, source
from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.row_order import order_rows
from graphdock_cuda.launch import i64
from graphdock_cuda.work import CTYPES, ErrorWord, Operand, Together, Work, blocks

__all__ = ["KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

#: By the last part of the op's name: the rule of ``source/updates.cuh``, the variable and its slots, and the rates in its order.
_RULES = {
    "GradientDescent": ("gradient_descent", "var", "alpha"),
    "Momentum": ("momentum", "var accum", "lr momentum"),
    "Adagrad": ("adagrad", "var accum", "lr"),
    "Adam": ("adam", "var m v", "beta1_power beta2_power lr beta1 beta2 epsilon"),
    "AdamW": ("adam_w", "var m v", "beta1_power beta2_power lr beta1 beta2 epsilon weight_decay"),
    "RMSProp": ("rms_prop", "var ms mom", "lr rho momentum epsilon"),
    "CenteredRMSProp": ("centered_rms_prop", "var mg ms mom", "lr rho momentum epsilon"),
    "Adadelta": ("adadelta", "var accum accum_update", "lr rho epsilon"),
    "AdagradDA": (
        "adagrad_da",
        "var gradient_accumulator gradient_squared_accumulator",
        "lr l1 l2 global_step",
    ),
    "ProximalGradientDescent": ("proximal_gradient_descent", "var", "alpha l1 l2"),
    "ProximalAdagrad": ("proximal_adagrad", "var accum", "lr l1 l2"),
    "Ftrl": ("ftrl", "var accum linear", "lr l1 l2 lr_power"),
    "FtrlV2": ("ftrl_v2", "var accum linear", "lr l1 l2 l2_shrinkage lr_power"),
}
#: Updates of some rows that there are no ops for.
_DENSE_ALONE = ("AdamW",)
_PER_THREAD = 16
#: Variables that one launch updates, whose parameters must fit in 4 KiB.
MOST = 64


@functools.lru_cache(512)
def _source(rule: str, held: int, dtype: str, rates: tuple[str, ...]) -> Source:
    """The kernels of a rule: its variable and slots, the gradient, the rates, and what names rows."""
    slots = [f"h{i}" for i in range(held)]
    params = [
        *(f"ELEMENT* {h}" for h in slots),
        "const ELEMENT* grad",
        *(f"const {r}* r{i}" for i, r in enumerate(rates)),
    ]
    begin = (
        f"  ELEMENT* const held[] = {{{', '.join(slots)}}};\n"
        f"  const double rates[] = {{{', '.join(f'static_cast<double>(*r{i})' for i in range(len(rates)))}}};\n"
        f"  const {rule}<compute_t<ELEMENT>> rule(rates);\n"
    )
    rate_params = ", ".join(params[held + 1 :])
    rule_of = begin[begin.index("  const double") :]
    code = (
        f"GD_KERNEL(dense_update)({', '.join(params)}, i64 n) {{\n{begin}"
        "  const i64 width = blockDim.x, at = blockIdx.x * width + threadIdx.x;\n"
        "  dense(held, grad, rule, n, at, gridDim.x * width);\n}\n"
        f"struct Many {{ Variables<ELEMENT, {held}> each[{MOST}]; }};\n"
        f"GD_KERNEL(dense_updates)(Many many, {rate_params}, i64 count) {{\n{rule_of}"
        "  dense_many(many.each, count, rule);\n}\n"
        f"GD_KERNEL(sparse_update)({', '.join(params)}, const u32* rows, const i32* order, const u32* refused, i64 count, "
        "i64 width) {\n"
        f"{begin}  sparse(held, grad, rows, order, refused, rule, count, width);\n}}\n"
    )
    return source("tables.cuh", "updates.cuh", code=code, name=rule, ELEMENT=CTYPES[dtype])


def _operands_of(w: Work, name: str) -> tuple[Source, list[Operand], Operand, list[Operand]]:
    """The source, variable and slots, gradient, and rates. Raises DTypeError."""
    rule, held_names, rate_names = _RULES[name]
    if rule == "momentum" and w.attr("use_nesterov"):
        rule = "nesterov"
    held = [w.input(n) for n in held_names.split()]
    rates = [w.input(n) for n in rate_names.split()]
    grad_name = _grad(w)
    grad = w.input(grad_name)
    for tensor in held:
        if tensor.dtype is not grad.dtype:
            raise _misfit(w, errors.DTypeError, "dtype", grad_name, tensor.dtype.name, grad.dtype.name)
    return _source(rule, len(held), grad.dtype.name, tuple(map(w.ctype, rates))), held, grad, rates


def _grad(w: Work) -> str:
    return "grad" if w.has("grad") else "delta"


def _misfit(
    w: Work, kind: type[errors.InvalidArgumentError], what: str, grad: str, expected: str, got: str
) -> errors.InvalidArgumentError:
    return kind(f"{grad} has not the {what} of var", op=w.node.origin, site=w.node.site, expected=expected, got=got)


def _dense(w: Work, name: str) -> None:
    code, held, grad, rates = _operands_of(w, name)
    for tensor in held:
        if tensor.shape != grad.shape:
            raise _misfit(w, errors.ShapeError, "shape", _grad(w), str(list(tensor.shape)), str(list(grad.shape)))
    if grad.size:
        grid = blocks(grad.size, 256 * _PER_THREAD)
        row, size = (*held, grad), i64(grad.size)
        together = Together("dense_updates", row, size, tuple(rates), MOST)
        w.launch(code, "dense_update", grid, 256, *row, *rates, size, together=together)


def _sparse(w: Work, name: str) -> None:
    code, held, grad, rates = _operands_of(w, name)
    indices = w.input("indices")
    if not indices.size:
        return
    for tensor in held:
        if tensor.shape != held[0].shape or not tensor.rank:
            raise _misfit(w, errors.ShapeError, "shape", "a slot", str(list(held[0].shape)), str(list(tensor.shape)))
        if tensor.shape[1:] != grad.shape[1:]:
            raise _misfit(w, errors.ShapeError, "row shape", _grad(w), str(tensor.shape[1:]), str(grad.shape[1:]))
    rows, order, refused = order_rows(w, indices, held[0].shape[0], ErrorWord(_no_row))
    if grad.size:
        grid = blocks(grad.size, 256 * 4)
        w.launch(
            code, "sparse_update", grid, 256, *held, grad, *rates, rows, order, refused,
            i64(indices.size), i64(grad.size // indices.size),
        )  # fmt: skip


def _no_row(row: int, limit: int) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        "a row to update is not there", expected=f"rows from 0 to {limit - 1}", got=str(row)
    )


for _name in _RULES:
    kernel(f"ResourceApply{_name}")(functools.partial(_dense, name=_name))
    if _name not in _DENSE_ALONE:
        kernel(f"ResourceSparseApply{_name}")(functools.partial(_sparse, name=_name))
