"""Functions with a gradient of their own, and second derivatives."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError

from graphdock_std._gen import custom_ops

Function = TypeVar("Function", bound=Callable[..., Any])

_numbers = itertools.count()


def pass_on(op: Any, *grads: Any) -> list[Any]:
    """Each tensor's gradient goes to the tensor."""
    return list(grads)


def custom_gradient(f: Function) -> Function:
    """Decorator: gradients through what ``f`` returns are what ``f`` says, not those of the operations it made.

    ``f`` takes tensors and returns ``(result, grad_fn)``: a tensor or a nest of tensors, and a function that takes the gradient of
    each result (None of one that is not floating) and returns that of each argument, a list where there are several. ``grad_fn``
    may use tensors that ``f`` made::

        @tf.custom_gradient
        def log1pexp(x):
            e = tf.exp(x)
            return tf.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    Where ``f`` reads trainable variables ``grad_fn`` must take ``variables=``, a list of them, and return two lists: the
    gradients by the arguments and those by the variables.

    Raises:
      TypeError: ``f`` reads variables, and ``grad_fn`` does not take them. InvalidArgumentError: ``f`` does not return a pair, or
        ``grad_fn`` another number of gradients.
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        return _traced(f, args, kwargs)

    return decorated  # type: ignore[return-value]


def _traced(f: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    graph = _tf.get_default_graph()
    name = getattr(f, "__name__", "custom_gradient")
    given = [_ops.convert_to_tensor(a) for a in args]
    first = graph.version
    made = f(*given, **kwargs)
    if not isinstance(made, tuple) or len(made) != 2 or not callable(made[1]):
        raise InvalidArgumentError(f"{name} must return a result and a function of gradients", got=repr(made))
    result, grad_fn = made
    results = [_ops.convert_to_tensor(r) for r in _leaves(result)]
    variables = _read_since(graph, first, given)
    takes = inspect.signature(grad_fn).parameters
    if variables and "variables" not in takes and not any(p.kind is p.VAR_KEYWORD for p in takes.values()):
        raise TypeError(
            f"{name} reads {', '.join(v.name for v in variables)}: its function of gradients must take the argument 'variables'"
        )
    read = [v.read_value() for v in variables]
    count = len(results)

    def gradient(op: Any, *grads: Any) -> list[Any]:
        """None for the results, whose own operations do not count; then what the function says."""
        found = grad_fn(*grads[:count], variables=list(variables)) if variables else grad_fn(*grads[:count])
        by_args, by_variables = found if variables else (found, [])
        parts = [*_flat(by_args), *_flat(by_variables)]
        if len(parts) != len(given) + len(read):
            raise InvalidArgumentError(
                f"the function of gradients of {name} returned a wrong number of them",
                expected=f"{len(given)} by the arguments and {len(read)} by variables",
                got=f"{len(_flat(by_args))} and {len(_flat(by_variables))}",
            )
        return [None] * count + parts

    label = f"CustomGradient-{next(_numbers)}"
    _tf.RegisterGradient(label)(gradient)
    with graph.gradient_override_map({"IdentityN": label}):
        outputs = custom_ops.identity_n([*results, *given, *read])
    return _packed(result, iter(outputs[:count]))


def _leaves(structure: Any) -> list[Any]:
    """The leaves of nested lists, tuples and dicts; of these in the order of their sorted keys."""
    if isinstance(structure, dict):
        return [leaf for key in sorted(structure) for leaf in _leaves(structure[key])]
    if isinstance(structure, list | tuple):
        return [leaf for item in structure for leaf in _leaves(item)]
    return [structure]


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    """The leaves in the shape of ``structure``."""
    if isinstance(structure, dict):
        found = {key: _packed(structure[key], leaves) for key in sorted(structure)}
        return {key: found[key] for key in structure}
    if not isinstance(structure, list | tuple):
        return next(leaves)
    items = [_packed(item, leaves) for item in structure]
    if isinstance(structure, list):
        return items
    return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)


def _flat(grads: Any) -> list[Any]:
    if grads is None:
        return [None]
    return list(grads) if isinstance(grads, list | tuple) else [grads]


def _read_since(graph: Any, first: int, given: Sequence[Any]) -> list[Any]:
    """The trainable variables that operations of ``graph`` made since then read, other than through ``given``."""
    with _ops.init_scope():
        trainable = _tf.trainable_variables()
    found = set()
    for op in graph.get_operations()[first:]:
        for tensor in op.inputs:
            handle = tensor.op.inputs[0] if tensor.op.op_def.executes == "read" else tensor
            if handle.dtype.kind == "R" and not any(tensor is g for g in given):
                found.add(handle.op._original or handle.op)
    return [v for v in trainable if v.handle.op in found]


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
) -> list[_ops.Tensor]:
    """Second derivatives of the sum of ``ys`` by each of ``xs`` with itself: of shape ``x.shape + x.shape``.

    One gradient per element of ``x``, in a loop: what is seldom wanted of large tensors. Arguments are those of ``tf.gradients``.

    Raises:
      InvalidArgumentError: ``ys`` do not depend on an ``x``. GradientError: an op on the way has no second derivative.
    """
    given = list(xs) if isinstance(xs, list | tuple) else [xs]
    found = []
    with _tf.name_scope(name):
        options = {
            "colocate_gradients_with_ops": colocate_gradients_with_ops,
            "gate_gradients": gate_gradients,
            "aggregation_method": aggregation_method,
        }
        for x, slope in zip(given, _tf.gradients(ys, given, **options), strict=True):
            if slope is None:
                raise InvalidArgumentError(f"hessians: ys do not depend on {x.name}")
            found.append(_hessian(x, _ops.convert_to_tensor(slope), options))
    return found


def _hessian(x: Any, slope: Any, options: dict[str, Any]) -> Any:
    flat = _tf.reshape(slope, [-1])
    dims = _ops.shape(_ops.convert_to_tensor(x))
    count = _tf.size(slope)
    width = slope.shape.num_elements()

    def row(i: Any, rows: Any) -> tuple[Any, Any]:
        found = _tf.gradients(flat[i], x, unconnected_gradients="zero", **options)[0]
        found = _tf.reshape(_ops.convert_to_tensor(found), [1, -1])
        return i + 1, _tf.concat([rows, found], 0)

    start = _tf.zeros(_tf.stack([0, count]), slope.dtype)
    start.set_shape([0, width])
    _, rows = _tf.while_loop(
        lambda i, rows: i < count,
        row,
        [_ops.constant(0), start],
        shape_invariants=[_tf.TensorShape([]), _tf.TensorShape([None, width])],
    )
    return _tf.reshape(rows, _tf.concat([dims, dims], 0))
