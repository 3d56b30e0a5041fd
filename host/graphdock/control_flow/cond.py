"""``cond`` and ``case``: one of several functions, chosen while the step runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, overload

from graphdock import nest
from graphdock.control_flow.composites import are_rows, is_composite, joined, split_rows
from graphdock.control_flow.trace import (
    add_cond,
    body_scope,
    check_callable,
    site_of,
    to_tensor,
    user_site,
)
from graphdock.dtypes import bool_, int32
from graphdock.errors import DTypeError, InvalidArgumentError, ShapeError
from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import get_default_graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.ops.convert import convert_to_tensor
from graphdock.shape import show
from graphdock.typing import HasTensor, SupportsArray, TensorLike

__all__ = ["case", "cond"]

#: Most branches of a case that are nested one in the other.
_CHAIN = 8


#: What a branch returns for one tensor.
_Leaf: TypeAlias = "HasTensor | SupportsArray | str | complex"


@overload
def cond(
    pred: TensorLike,
    true_fn: Callable[[], _Leaf],
    false_fn: Callable[[], _Leaf],
    strict: bool = ...,
    name: str | None = ...,
) -> Tensor: ...
@overload
def cond(
    pred: TensorLike,
    true_fn: Callable[[], Operation],
    false_fn: Callable[[], Operation],
    strict: bool = ...,
    name: str | None = ...,
) -> Operation: ...
@overload
def cond(
    pred: TensorLike,
    true_fn: Callable[[], tuple[_Leaf, _Leaf]],
    false_fn: Callable[[], tuple[_Leaf, _Leaf]],
    strict: bool = ...,
    name: str | None = ...,
) -> tuple[Tensor, Tensor]: ...
@overload
def cond(
    pred: TensorLike,
    true_fn: Callable[[], Any] | None = ...,
    false_fn: Callable[[], Any] | None = ...,
    strict: bool = ...,
    name: str | None = ...,
    fn1: Callable[[], Any] | None = ...,
    fn2: Callable[[], Any] | None = ...,
) -> Any: ...
def cond(
    pred: TensorLike,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """Run ``true_fn`` when ``pred`` is true, else ``false_fn``.

    Both functions are called once, now, to build the two bodies of one Cond node; only ops of the chosen body run, and of those
    the ones that its result depends on: an update that no result waits for does not happen.
    Tensors made outside are captured: they are computed whichever body runs.

    Args:
      pred: a bool tensor of rank 0; not a Python bool, which would choose before anything runs.
      true_fn, false_fn: take nothing; return tensors (or values that convert), SparseTensors, IndexedSlices or operations, nested
        alike in lists, tuples, namedtuples and dicts, with the same dtypes. Inside of those an element may be None.
      strict: keep a result list or tuple of one as it is; otherwise its one element is returned.
      fn1, fn2: TensorFlow 1's older names of ``true_fn`` and ``false_fn``.

    Returns:
      Tensors nested as the functions' results. Where both return an operation, the Cond operation; where both have None,
      None.

    Raises:
      TypeError: ``pred`` is a Python bool, or a function can't be called. InvalidArgumentError: the branches are nested
      differently or are of another graph. DTypeError: the dtypes of the branches differ. ShapeError: ``pred`` is no
      scalar.
    """
    if fn1 is not None or fn2 is not None:
        if (fn1 is not None and true_fn is not None) or (fn2 is not None and false_fn is not None):
            raise TypeError("cond takes true_fn and false_fn, or their older names fn1 and fn2, not both")
        true_fn, false_fn = true_fn or fn1, false_fn or fn2
    if isinstance(pred, bool):
        raise TypeError(
            "cond: pred must not be a Python bool; use `if`, or tf.constant(...) for a branch taken in the step"
        )
    true_fn, false_fn = check_callable(true_fn, "cond: true_fn"), check_callable(false_fn, "cond: false_fn")
    graph = get_default_graph()
    with graph.name_scope(name or "cond") as scope:
        test = convert_to_tensor(pred, name="pred")
        if test.dtype is not bool_:
            raise DTypeError("cond: pred must be a bool", expected="bool", got=f"{test.dtype.name} ({site_of(test)})")
        if test._dims not in ((), None):
            raise ShapeError("cond: pred must be a scalar", expected="[]", got=f"{show(test._dims)} ({site_of(test)})")
        then, then_result = _branch(BodyGraph(scope + "then", graph), true_fn, "true_fn", strict)
        other, other_result = _branch(BodyGraph(scope + "else", graph), false_fn, "false_fn", strict)
        then_result, other_result = split_rows((then, other), (then_result, other_result))
        for body, result in ((then, then_result), (other, other_result)):
            body.outputs = [leaf for leaf in nest.flatten(result) if isinstance(leaf, Tensor)]
        kinds = _agree(then, then_result, other, other_result, scope.rstrip("/"))
        node = add_cond(graph, scope, test, then, other)
    results = iter(node.outputs)
    leaves = [next(results) if kind == "tensor" else (node if kind == "operation" else None) for kind in kinds]
    if not nest.is_nested(then_result):
        return node if leaves[0] is None else leaves[0]
    return joined(nest.pack_sequence_as(then_result, leaves))


def _branch(body: BodyGraph, function: Callable[[], Any], what: str, strict: bool) -> tuple[BodyGraph, Any]:
    """Call the function inside ``body``. Returns its result, leaves converted."""
    with body_scope(body):
        result = function()
        if result is None:
            raise InvalidArgumentError(
                f"cond: {what} must return something",
                got="None",
                site=user_site(),
                hint="what runs in a branch is what its result depends on: return an operation, such as tf.no_op() or a tf.group",
            )
        if not strict and isinstance(result, (list, tuple)) and not hasattr(result, "_fields") and len(result) == 1:
            result = result[0]
        leaves: list[Any] = []
        for i, leaf in enumerate(nest.flatten(result)):
            if leaf is None:
                leaves.append(None)
                continue
            if isinstance(leaf, Operation):
                if leaf.graph is body:
                    body.targets.append(leaf)
                else:
                    body.awaited[leaf] = None
                leaves.append(leaf)
                continue
            if are_rows(leaf):
                leaves.append(leaf)
                continue
            if is_composite(leaf):
                parts = leaf._split()
                leaves.append(type(parts)(*[to_tensor(body, part, f"cond: output {i} of {what}") for part in parts]))
                continue
            leaves.append(to_tensor(body, leaf, f"cond: output {i} of {what}"))
    return body, nest.pack_sequence_as(result, leaves)


def _kind(leaf: Any) -> str:
    if isinstance(leaf, Tensor):
        return "tensor"
    return "none" if leaf is None else "rows" if are_rows(leaf) else "operation"


def _agree(then: BodyGraph, then_result: Any, other: BodyGraph, other_result: Any, name: str) -> list[str]:
    """Return what each leaf of the result is: ``tensor``, ``operation`` or ``none``. Raises unless the branches agree."""
    try:
        nest.check_same_structure(then_result, other_result, "the result of true_fn", "the result of false_fn")
    except InvalidArgumentError as error:
        error.op, error.site = name, user_site()
        raise
    kinds = []
    for i, (a, b) in enumerate(zip(nest.flatten(then_result), nest.flatten(other_result), strict=True)):
        kind, kind_b = _kind(a), _kind(b)
        if kind != kind_b and not {kind, kind_b} <= {"operation", "none"}:
            shown = {"tensor": "a tensor", "rows": "IndexedSlices", "operation": "an operation", "none": "None"}
            raise InvalidArgumentError(
                f"cond: output {i} differs in kind: true_fn returns {shown[kind]}, false_fn {shown[kind_b]}",
                op=name,
                site=user_site(),
                hint="both functions must return tensors, or neither",
            )
        if kind == "tensor" and a.dtype is not b.dtype:
            raise DTypeError(
                f"cond: output {i} differs in dtype: true_fn returns {a.dtype.name} {show(a._dims)} ({site_of(a)}), "
                f"false_fn returns {b.dtype.name} {show(b._dims)} ({site_of(b)})",
                op=name,
                site=user_site(),
                hint=f"cast one of them, as in tf.cast(..., tf.{a.dtype.name})",
            )
        kinds.append("operation" if "operation" in (kind, kind_b) else kind)
    return kinds


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """Run the function of the first predicate that is true.

    Args:
      pred_fn_pairs: list of (bool scalar tensor, function) pairs, or a dict of them (then ``exclusive`` should be
        true, for the order of its keys decides).
      default: runs when no predicate is true; without it that is an error while the step runs.
      exclusive: more than one true predicate is an error while the step runs.
      strict: as in :func:`cond`.

    Returns:
      As :func:`cond`.

    Raises:
      TypeError: the pairs are not pairs of a tensor and a function. InvalidArgumentError: there are none, or as for
        cond.
    """
    from graphdock.ops.apply import apply_op
    from graphdock.ops.core import Assert

    pairs = _pairs(pred_fn_pairs)
    if default is not None:
        check_callable(default, "case: default")
    graph = get_default_graph()
    with graph.name_scope(name):
        preds = [convert_to_tensor(p, bool_, f"pred_{i}") for i, (p, _) in enumerate(pairs)]
        gates: list[Operation] = []
        if default is None or exclusive:
            count = apply_op("AddN", inputs=[apply_op("Cast", x=p, DstT=int32) for p in preds], name="true_preds")
            if default is None:
                gates.append(Assert(count >= 1, ["case: none of the predicates is true:", *preds], 10, "some_pred"))
            if exclusive:
                gates.append(Assert(count <= 1, ["case: more than one predicate is true:", *preds], 10, "one_pred"))
        functions = [f for _, f in pairs]
        last = default
        if last is None:
            last = functions.pop()
            preds.pop()
        with graph.control_dependencies(gates):
            if not preds:
                return cond(convert_to_tensor(True, name="only"), last, last, strict)
            return _nested(preds, functions, last, strict)


def _nested(
    preds: Sequence[Tensor], functions: Sequence[Callable[[], Any]], last: Callable[[], Any], strict: bool
) -> Any:
    """The first function whose predicate is true, else ``last``: one branch in the other, or, where that gets deep, halves."""
    if len(preds) <= _CHAIN:

        def rest() -> Any:
            return _nested(preds[1:], functions[1:], last, strict)

        return cond(preds[0], functions[0], rest if len(preds) > 1 else last, strict)
    from graphdock.ops.apply import apply_op

    half = len(preds) // 2
    count = apply_op("AddN", inputs=[apply_op("Cast", x=p, DstT=int32) for p in preds[:half]], name="true_before")
    return cond(
        count >= 1,
        lambda: _nested(preds[: half - 1], functions[: half - 1], functions[half - 1], strict),
        lambda: _nested(preds[half:], functions[half:], last, strict),
        strict,
    )


def _pairs(given: Any) -> list[tuple[Any, Callable[[], Any]]]:
    if not isinstance(given, (list, tuple, Mapping)):
        raise TypeError(f"case: pred_fn_pairs must be a list of pairs or a dict, but it is a {type(given).__name__}")
    pairs = list(given.items()) if isinstance(given, Mapping) else list(given)
    if not pairs:
        raise InvalidArgumentError("case needs at least one pair of a predicate and a function")
    for i, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"case: element {i} must be a pair of a predicate and a function, but it is {pair!r}")
        if isinstance(pair[0], bool):
            raise TypeError(f"case: predicate {i} must not be a Python bool; use tf.constant(...)")
        check_callable(pair[1], f"case: the function of predicate {i}")
    return [(p, f) for p, f in pairs]
