"""A linear layer whose result is the logits of a sparse cross-entropy, and nothing else: they need not all exist at a time."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.contracts import Found, Operand, Pattern

from graphdock_std.patterns.operands import PARTS

#: Logits that take less are held: their gradient is ready when the loss is, and nothing is computed twice.
LEAST_BYTES = 64 << 20
#: Fewer classes are too few to cut: a chunk that is worth a product would have most of them.
LEAST_CLASSES = 4096


def _unbiased(product: Any, bias: None) -> Any:
    return product


def _bias_added(product: Any, bias: Any) -> Any:
    return _tf.nn.bias_add(product, bias)


def _added(product: Any, bias: Any) -> Any:
    return product + bias


def _written(
    x: Any,
    w: Any,
    labels: Any,
    bias: Any = None,
    cut: Any = None,
    there: Any = None,
    shape: Any = None,
    *,
    Tlabels: Any,
    turned: bool,
    biased: Callable[[Any, Any], Any],
    wide: bool,
    early: bool,
    shifted: bool,
) -> Any:
    """``cut``: the shape in which a layer of more dims adds its bias. ``there``: one that logits had between. ``shape``: the last.

    ``wide``: logits are cast for the loss; ``early``: before they get their last shapes. ``shifted``: labels are the tokens that
    follow, and the last one has none.
    """
    product = _tf.matmul(x, w, transpose_b=turned)
    logits = biased(product if cut is None else _tf.reshape(product, cut), bias)
    logits = _ops.cast(logits, _tf.float32) if wide and early else logits
    for dims in (there, shape):
        logits = logits if dims is None else _tf.reshape(logits, dims)
    logits = logits[:, :-1] if shifted else logits
    logits = _ops.cast(logits, _tf.float32) if wide and not early else logits
    return _tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def _standing(
    x: Any,
    w: Any,
    labels: Any,
    bias: Any = None,
    *,
    Tlabels: Any,
    turned: bool,
    wide: bool,
    shifted: bool,
    **_shapes: Any,
) -> Any:
    dims, inner = labels.shape.as_list(), x.shape.as_list()[1]
    if shifted:
        x = _tf.reshape(_tf.reshape(x, [dims[0], dims[1] + 1, inner])[:, :-1], [-1, inner])
    given = {"x": x, "w": w, "labels": _tf.reshape(labels, [-1]), "bias": bias}
    loss = _ops.apply_op("LinearSparseSoftmaxCrossEntropy", **given, transpose_w=turned)[0]
    return _ops.cast(_tf.reshape(loss, dims), _tf.float32 if wide else x.dtype)


def linear_cross_entropies() -> Iterator[Pattern]:
    """One pattern per way to add the bias, to cut rows into more dims, and dtype of logits that are cast, early or late.

    One cuts the last logits of each sequence off, as programs do that predict the next token.
    """
    layers: dict[str, Callable[[Any, Any], Any]] = {"": _unbiased, "_bias_add": _bias_added, "_add": _added}
    for narrow, early in (("", False), *itertools.product(("bfloat16", "float16"), (False, True))):
        for turned in (False, True):
            for kind, biased in layers.items():
                bias = {} if biased is _unbiased else {"bias": Operand((None,), narrow or None)}
                for name, shapes, rank in _CUTS:
                    if "cut" in shapes and (turned or not bias):
                        continue
                    if early and not shapes.keys() & {"there", "shape"}:
                        continue
                    label = f"linear_cross_entropy{kind}{'_turned' * turned}{name}{narrow and '_of_' + narrow}{'_early' * early}"
                    how = {"turned": turned, "wide": bool(narrow), "shifted": name == "_next"}
                    matrix = Operand((None, None), narrow or None)
                    yield Pattern(
                        label,
                        "SparseSoftmaxCrossEntropyWithLogits",
                        {"x": matrix, "w": matrix, "labels": Operand((None,) * rank, "Tlabels"), **bias, **shapes},
                        functools.partial(_written, biased=biased, early=early, **how),
                        functools.partial(_standing, **how),
                        dtypes=("float32",) if narrow else ("float32", "bfloat16", "float16"),
                        not_on=PARTS,
                        rank=rank,
                        check=functools.partial(_fits, turned=turned, shifted=how["shifted"]),
                        worth=functools.partial(_large, narrow=narrow, turned=turned),
                        sample=functools.partial(
                            _sample, turned=turned, shifted=how["shifted"], names=(*bias, *shapes), rank=rank
                        ),
                        attrs=("Tlabels",),
                    )


def _shape(size: int) -> Operand:
    return Operand((size,), "int32", constant=True)


#: Where rows are cut: name, shapes that are constants, and dims of the labels.
_CUTS: tuple[tuple[str, dict[str, Operand], int], ...] = (
    ("", {}, 1),
    ("_reshaped", {"shape": _shape(3)}, 2),
    ("_next", {"shape": _shape(3)}, 2),
    ("_there_and_back", {"there": _shape(3), "shape": _shape(2)}, 1),
    ("_cut", {"cut": _shape(3)}, 2),
    ("_cut_reshaped", {"cut": _shape(3), "shape": _shape(2)}, 1),
)


def _fits(found: Found, *, turned: bool, shifted: bool) -> str | None:
    rows, classes = found.shapes["x"][0], found.shapes["w"][0 if turned else 1]
    first, *rest = found.shapes["labels"]
    if first * math.prod(n + shifted for n in rest) != rows:
        return "rows are cut otherwise"
    cut = found.constants.get("cut")
    if found.shapes.get("bias", (classes,)) != (classes,) or (cut is not None and cut[-1] not in (classes, -1)):
        return "the bias is not a number per class"
    return None


def _large(found: Found, *, turned: bool, narrow: str) -> str | None:
    rows, classes = found.shapes["x"][0], found.shapes["w"][0 if turned else 1]
    taken = rows * classes * _tf.as_dtype(narrow or found.dtype).size
    if taken < LEAST_BYTES:
        return f"logits of {taken / (1 << 20):.3g} MiB are held, fewer than {LEAST_BYTES >> 20}"
    return f"logits of {classes} classes are held" if classes < LEAST_CLASSES else None


def _sample(rng: Any, *, turned: bool, shifted: bool, names: Sequence[str], rank: int) -> dict[str, Any]:
    """A layer of some rows, and the shapes in which its logits go on."""
    first, second, inner, classes = (int(n) for n in rng.integers(2, 7, 4))
    rows = [first, second, classes]
    dims = [first, second - shifted] if rank == 2 else [first * second]
    shapes = {"cut": rows, "there": rows, "shape": [*dims, classes] if rank == 1 else rows}
    given = {n: np.array(shapes[n], np.int32) if n in shapes else (classes,) for n in names}
    w = (classes, inner) if turned else (inner, classes)
    return {"x": (first * second, inner), "w": w, "labels": tuple(dims), **given}
