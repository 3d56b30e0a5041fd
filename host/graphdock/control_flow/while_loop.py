"""``while_loop``: a body repeated while its condition holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphdock import nest
from graphdock.control_flow import composites
from graphdock.control_flow.trace import (
    add_while,
    body_scope,
    check_callable,
    name_of,
    site_of,
    to_tensor,
    user_site,
)
from graphdock.dtypes import bool_, int32
from graphdock.errors import DTypeError, GraphdockError, InvalidArgumentError, ShapeError
from graphdock.graph.body import BodyGraph
from graphdock.graph.graph import get_default_graph
from graphdock.graph.tensor import Tensor
from graphdock.ops.apply import apply_op
from graphdock.ops.convert import constant, convert_to_tensor
from graphdock.ops.core import apply_operator
from graphdock.shape import Dims, as_dims, show

__all__ = ["check_next", "invariants_of", "labels_of", "parameters_for", "trace_cond", "while_loop"]


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeat ``body`` while ``cond`` holds.

    Both functions are called once, now, to build the two bodies of one While node. Tensors made outside are captured
    and keep their value through all iterations. What runs in an iteration is what the next values of the loop variables, or the
    condition, depend on: an update that they do not wait for does not happen.

    Args:
      cond: takes the loop variables, returns one bool scalar.
      body: takes the loop variables, returns their next values, nested like ``loop_vars``, with the same dtypes.
      loop_vars: list, tuple or namedtuple of tensors, values that convert, SparseTensors and IndexedSlices, or nested structures
        of them.
      shape_invariants: for each loop variable the shape that holds through all iterations, with None for a dim that may
        change; by default the shape with which the variable enters. Of a SparseTensor ``[rank]``, of IndexedSlices the values'.
      parallel_iterations: how many iterations a dataflow executor may overlap.
      back_prop: whether gradients flow through the loop; if not its results are constants to them.
      swap_memory: taken for TensorFlow's sake; gradients are built when they are asked for.
      maximum_iterations: stop after so many; an integer or an integer scalar tensor.
      return_same_structure: return a structure of one as it is; otherwise its one tensor.

    Returns:
      The last values of the loop variables, nested like ``loop_vars``; a single one by itself.

    Raises:
      TypeError: a function can't be called. InvalidArgumentError: no loop variables, or a result nested differently.
      DTypeError, ShapeError: a loop variable would change its dtype or shape; the message names it.
    """
    check_callable(cond, "while_loop: cond")
    check_callable(body, "while_loop: body")
    structure = loop_vars if isinstance(loop_vars, (list, tuple)) else [loop_vars]
    given = nest.flatten(structure)
    if any(map(composites.is_composite, given)):
        result = while_loop(
            lambda *args: cond(*composites.joined(args)),
            lambda *args: composites.split(body(*composites.joined(args))),
            composites.split(structure),
            None if shape_invariants is None else composites.invariants(structure, shape_invariants),
            parallel_iterations,
            back_prop,
            swap_memory,
            name,
            maximum_iterations,
            return_same_structure=True,
        )
        packed = composites.joined(result)
        return packed[0] if len(given) == 1 and not return_same_structure else packed
    if not given:
        raise InvalidArgumentError("while_loop needs at least one loop variable", site=user_site())
    if isinstance(parallel_iterations, bool) or not isinstance(parallel_iterations, int) or parallel_iterations < 1:
        raise InvalidArgumentError(
            "while_loop: parallel_iterations is wrong",
            expected="an integer of at least 1",
            got=repr(parallel_iterations),
        )
    graph = get_default_graph()
    with graph.name_scope(name or "while") as scope:
        start = [convert_to_tensor(v, name=f"loop_var_{i}") for i, v in enumerate(given)]
        for i, tensor in enumerate(start):
            if tensor.dtype.kind == "R":
                raise DTypeError(
                    f"while_loop: loop variable {i} must be a tensor with elements",
                    got=f"{tensor.dtype.name} ({site_of(tensor)})",
                    site=user_site(),
                )
        invariants = invariants_of(structure, shape_invariants, start)
        limit = -1
        if maximum_iterations is not None:
            if _is_int(maximum_iterations):
                limit = int(maximum_iterations)
                if limit < 0:
                    raise InvalidArgumentError("while_loop: maximum_iterations is negative", got=str(limit))
            else:
                return _counted(
                    cond, body, structure, shape_invariants, back_prop, maximum_iterations, return_same_structure, scope
                )
        labels = labels_of(structure, start)
        test = trace_cond(BodyGraph(scope + "cond", graph), cond, structure, start, invariants)
        step = _trace_body(BodyGraph(scope + "body", graph), body, structure, start, invariants, labels)
        node = add_while(graph, scope, test, step, start, invariants, parallel_iterations, maximum_iterations=limit)
        results = list(node.outputs)
        if not back_prop:
            results = [apply_op("StopGradient", input=t, name="exit") for t in results]
    packed = nest.pack_sequence_as(structure, results)
    return packed[0] if len(given) == 1 and not return_same_structure else packed


def _is_int(value: Any) -> bool:
    return not isinstance(value, (bool, Tensor)) and hasattr(value, "__index__")


def _counted(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    structure: Any,
    shape_invariants: Any,
    back_prop: bool,
    maximum: Any,
    same_structure: bool,
    scope: str,
) -> Any:
    """A loop whose limit is a tensor: a counter becomes one more loop variable."""
    graph = get_default_graph()
    limit = convert_to_tensor(maximum, name="maximum_iterations")
    if not limit.dtype.is_integer or limit._dims not in ((), None):
        raise InvalidArgumentError(
            "while_loop: maximum_iterations must be an integer scalar", got=f"{limit.dtype.name} {show(limit._dims)}"
        )
    zero = constant(0, limit.dtype if limit.dtype.size >= 4 else int32, name="counter")
    if zero.dtype is not limit.dtype:
        from graphdock.ops.core import cast

        limit = cast(limit, zero.dtype)

    def counted_cond(counter: Tensor, *rest: Any) -> Any:
        from graphdock.control_flow.cond import cond as choose

        return choose(apply_operator("__lt__", counter, limit), lambda: cond(*rest), lambda: constant(False))

    def counted_body(counter: Tensor, *rest: Any) -> Any:
        result = body(*rest)
        if len(rest) == 1 and not isinstance(result, (list, tuple)):
            result = [result]
        return [apply_operator("__add__", counter, 1), *result]

    invariants = None if shape_invariants is None else [(), *shape_invariants]
    with graph.name_scope(scope):
        result = while_loop(
            counted_cond,
            counted_body,
            [zero, *structure],
            invariants,
            back_prop=back_prop,
            return_same_structure=True,
            name="counted",
        )
    rest = result[1:]
    if len(nest.flatten(rest)) == 1 and not same_structure:
        return rest[0]
    return nest.pack_sequence_as(structure, nest.flatten(rest))


def invariants_of(structure: Any, given: Any, start: Sequence[Tensor]) -> list[Dims]:
    """The shape that each loop variable keeps. Raises ShapeError for one that does not enter with it."""
    if given is None:
        return [t._dims for t in start]
    shapes = nest.flatten_up_to(structure, given, "while_loop: shape_invariants", "loop_vars")
    dims: list[Dims] = []
    for i, (shape, tensor) in enumerate(zip(shapes, start, strict=True)):
        invariant = as_dims(shape)
        if not _within(tensor._dims, invariant):
            raise ShapeError(
                f"while_loop: loop variable {i} does not enter with the shape of its shape invariant",
                expected=show(invariant),
                got=f"{show(tensor._dims)} ({site_of(tensor)})",
                site=user_site(),
            )
        dims.append(invariant)
    return dims


def _within(dims: Dims, invariant: Dims) -> bool:
    """Return whether every shape that ``dims`` allows is one that ``invariant`` allows."""
    if invariant is None:
        return True
    if dims is None or len(dims) != len(invariant):
        return False
    return all(i is None or i == d for d, i in zip(dims, invariant, strict=True))


def labels_of(structure: Any, start: Sequence[Tensor]) -> list[str]:
    """Return how messages call each loop variable: its number, its field of a namedtuple, and the tensor it starts as."""
    fields: tuple[str, ...] = getattr(structure, "_fields", ())
    labels = []
    for i, tensor in enumerate(start):
        field = f" {fields[i]!r}" if len(fields) == len(start) else ""
        labels.append(f"loop variable {i}{field} (starts as {tensor.name})")
    return labels


def parameters_for(body: BodyGraph, structure: Any, start: Sequence[Tensor], invariants: Sequence[Dims]) -> Any:
    """The loop variables' placeholders, nested like ``structure``."""
    made = [
        body.add_parameter(name_of(tensor), tensor.dtype, dims) for tensor, dims in zip(start, invariants, strict=True)
    ]
    return nest.pack_sequence_as(structure, made)


def trace_cond(
    graph: BodyGraph, function: Callable[..., Any], structure: Any, start: Sequence[Tensor], invariants: Sequence[Dims]
) -> BodyGraph:
    """The condition's body. Raises DTypeError, ShapeError: it returns no bool scalar."""
    with body_scope(graph):
        result = function(*parameters_for(graph, structure, start, invariants))
        if isinstance(result, (list, tuple)) and len(result) == 1:
            result = result[0]
        tensor = to_tensor(graph, result, "while_loop: the result of cond")
    if tensor.dtype is not bool_:
        raise DTypeError(
            "while_loop: cond must return a bool",
            expected="bool",
            got=f"{tensor.dtype.name} ({site_of(tensor)})",
            site=user_site(),
        )
    if tensor._dims not in ((), None):
        raise ShapeError(
            "while_loop: cond must return a scalar",
            expected="[]",
            got=f"{show(tensor._dims)} ({site_of(tensor)})",
            site=user_site(),
            hint="reduce it with tf.reduce_all or tf.reduce_any",
        )
    graph.outputs = [tensor]
    return graph


def _trace_body(
    graph: BodyGraph,
    function: Callable[..., Any],
    structure: Any,
    start: Sequence[Tensor],
    invariants: Sequence[Dims],
    labels: Sequence[str],
) -> BodyGraph:
    with body_scope(graph):
        result = function(*parameters_for(graph, structure, start, invariants))
        if len(structure) == 1 and not _is_one_sequence(result):
            result = [result]
        if not isinstance(result, (list, tuple)):
            raise InvalidArgumentError(
                "while_loop: body must return a value for each loop variable",
                expected=f"a list of {len(structure)}",
                got=f"one {type(result).__name__}",
                site=user_site(),
            )
        try:
            nest.check_same_structure(list(structure), list(result), "loop_vars", "while_loop: the result of body")
        except GraphdockError as error:
            error.site = user_site()
            raise
        outputs = []
        for label, value, tensor, invariant in zip(labels, nest.flatten(result), start, invariants, strict=True):
            after = to_tensor(graph, value, f"while_loop: {label} after one iteration", tensor.dtype)
            check_next(label, tensor, after, invariant)
            outputs.append(after)
    graph.outputs = outputs
    return graph


def _is_one_sequence(result: Any) -> bool:
    return isinstance(result, (list, tuple)) and len(result) == 1


def check_next(label: str, start: Tensor, after: Tensor, invariant: Dims) -> None:
    """Raise DTypeError or ShapeError where an iteration would change a loop variable's dtype or shape."""
    if after.dtype is not start.dtype:
        raise DTypeError(
            f"while_loop: {label} would change its dtype: it enters as {start.dtype.name}, but after one "
            f"iteration it is {after.dtype.name} ({site_of(after)})",
            site=user_site(),
            hint=f"cast it back, as in tf.cast(..., tf.{start.dtype.name})",
        )
    if not _within(after._dims, invariant):
        raise ShapeError(
            f"while_loop: {label} would change its shape: it enters with {show(invariant)}, but after one "
            f"iteration it has {show(after._dims)} ({site_of(after)})",
            site=user_site(),
            hint=_invariant_hint(after._dims, invariant),
        )


def _invariant_hint(after: Dims, invariant: Dims) -> str:
    if after is None or invariant is None or len(after) != len(invariant):
        loose = "None"
    else:
        loose = str([d if d == i else None for d, i in zip(after, invariant, strict=True)])
    return f"say what may change: shape_invariants=[..., tf.TensorShape({loose}), ...]; or call set_shape in the body"
