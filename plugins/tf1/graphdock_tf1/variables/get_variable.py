"""``get_variable``: variables by name, shared on purpose."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from graphdock import GraphKeys, Variable
from graphdock.dtypes import as_dtype
from graphdock.errors import (
    AlreadyExistsError,
    DTypeError,
    InvalidArgumentError,
    NotFoundError,
    ShapeError,
    did_you_mean,
)
from graphdock.ops import Tensor, call_site, convert_to_tensor, init_scope, make_array, outermost_graph
from graphdock.shape import Dims, as_dims, compatible, merge, show
from graphdock.typing import DTypeLike, ShapeLike

from graphdock_tf1.variables.partitioned import PartitionedVariable, PartitionInfo, partitions_of, parts_of
from graphdock_tf1.variables.scope import AUTO_REUSE, store_of_graph


def get_variable(
    name: str,
    shape: ShapeLike = None,
    dtype: DTypeLike | None = None,
    initializer: Any = None,
    regularizer: Callable[[Variable], Any] | None = None,
    trainable: bool | None = None,
    collections: Sequence[Any] | None = None,
    caching_device: Any = None,
    partitioner: Callable[..., Any] | None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Callable[[Any], Any] | None = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Variable:
    """The variable of that name in the current variable scope: a new one, or the one that exists where the scope reuses.

    Args:
      name: below the scope's name.
      shape: its shape; an initial value has its own, and takes none beside it.
      dtype: its dtype; default: an initial value's own, or the scope's, float32 if that says nothing.
      initializer: called with (shape, dtype=...), or without arguments where no shape is given, or an initial value; default: the
        scope's, Glorot's uniform one for floating dtypes, zeros for others.
      regularizer: called with the variable; its result joins ``GraphKeys.REGULARIZATION_LOSSES``.
      trainable, collections, validate_shape, constraint: as for Variable.
      partitioner: called with shape and dtype, returns the number of parts of each axis; the result is a PartitionedVariable,
        which stands where a Variable is read.
      custom_getter: called in place of this function's own work, as ``custom_getter(getter, name, **arguments)``.
      caching_device, use_resource, synchronization, aggregation: taken for TensorFlow's sake.

    Raises:
      AlreadyExistsError: there is one and the scope does not reuse. NotFoundError: there is none and the scope must reuse.
      ShapeError, DTypeError: the one that exists is of another shape or dtype. InvalidArgumentError: no shape to make it of, or one
        beside an initial value. DTypeError: an initial value is of another dtype than ``dtype``.
    """
    scope = store_of_graph().current
    full = scope.full_name(name)
    given = scope.initializer if initializer is None else initializer
    in_parts = isinstance(given, Tensor) and (partitioner or scope.partitioner) is not None
    _value_alone(full, None if in_parts else shape, dtype, initializer, given)
    valued = given is not None and not callable(given)
    arguments: dict[str, Any] = {
        "shape": shape,
        "dtype": None
        if dtype is None and (valued or shape is None)
        else as_dtype(scope.dtype if dtype is None else dtype),
        "initializer": given,
        "regularizer": scope.regularizer if regularizer is None else regularizer,
        "reuse": scope.reuse,
        "trainable": trainable,
        "collections": collections,
        "caching_device": scope.caching_device if caching_device is None else caching_device,
        "partitioner": scope.partitioner if partitioner is None else partitioner,
        "validate_shape": validate_shape,
        "use_resource": scope.use_resource if use_resource is None else use_resource,
        "constraint": scope.constraint if constraint is None else constraint,
        "synchronization": synchronization,
        "aggregation": aggregation,
    }
    getter = scope.custom_getter if custom_getter is None else custom_getter
    with outermost_graph().name_scope(None) if getter is not None else contextlib.nullcontext():
        found: Variable = _get(full, **arguments) if getter is None else getter(_get, full, **arguments)
        return found


def get_local_variable(name: str, *args: Any, **keywords: Any) -> Variable:
    """As :func:`get_variable`, for a variable of one process: not trainable, in ``GraphKeys.LOCAL_VARIABLES``."""
    keywords["trainable"] = False
    keywords["collections"] = [GraphKeys.LOCAL_VARIABLES, *(keywords.get("collections") or ())]
    return get_variable(name, *args, **keywords)


def _get(
    name: str,
    shape: ShapeLike = None,
    dtype: DTypeLike | None = None,
    initializer: Any = None,
    regularizer: Callable[[Any], Any] | None = None,
    reuse: Any = None,
    trainable: bool | None = None,
    collections: Sequence[Any] | None = None,
    caching_device: Any = None,
    partitioner: Callable[..., Any] | None = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    constraint: Callable[[Any], Any] | None = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """The variable of a full name. A custom getter gets this function as its first argument."""
    store = store_of_graph()
    more = {
        "trainable": True if trainable is None else trainable,
        "collections": collections,
        "validate_shape": validate_shape,
        "constraint": constraint,
    }
    with store.lock:
        found = store.variables.get(name)
        if found is not None:
            return _shared(found, name, reuse, shape, dtype)
        if reuse is True:
            raise NotFoundError(
                f"the variable scope {store.current.name!r} reuses variables, but there is no {name!r}",
                site=call_site(),
                hint=did_you_mean(name, store.variables) or "make it first, or use reuse=tf.AUTO_REUSE",
            )
        if partitioner is None:
            made: Any = _make(name, shape, dtype, initializer, None, more)
        else:
            made = _make_parts(name, shape, dtype, initializer, partitioner, more)
        store.variables[name] = made
    if regularizer is not None:
        for part in made if isinstance(made, PartitionedVariable) else [made]:
            _regularize(part, regularizer)
    return made


def _regularize(variable: Variable, regularizer: Callable[[Any], Any]) -> None:
    graph = variable.graph
    with init_scope(), graph.name_scope(variable.op.name + "/Regularizer/"):
        loss = regularizer(variable)
    if loss is not None:
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


def _value_alone(full: str, shape: Any, dtype: Any, initializer: Any, given: Any) -> None:
    """Refuse a shape or another dtype beside an initial value that is no function, as TensorFlow 1 does."""
    if given is None or callable(given):
        return
    if shape is not None:
        raise InvalidArgumentError(
            f"get_variable({full!r}): an initial value has a shape, so none may be given",
            site=call_site(),
            got=f"the shape {show(as_dims(shape))}",
            hint="leave out shape, or use initializer=tf.constant_initializer(value)",
        )
    if dtype is None or initializer is None:
        return
    own = given.dtype if isinstance(given, (Tensor, Variable)) else make_array(given, None)[1]
    if own is not as_dtype(dtype):
        raise DTypeError(
            f"get_variable({full!r}): the initial value has another dtype",
            site=call_site(),
            expected=as_dtype(dtype).name,
            got=own.name,
            hint="leave out dtype, or use initializer=tf.constant_initializer(value)",
        )


def _shared(found: Any, full: str, reuse: Any, shape: Any, dtype: Any) -> Any:
    site = next(iter(found)).op.site if isinstance(found, PartitionedVariable) else found.op.site
    if reuse is not True and reuse is not AUTO_REUSE:
        raise AlreadyExistsError(
            f"a variable named {full!r} exists, made at {site}",
            site=call_site(),
            hint="enter its variable_scope with reuse=True or reuse=tf.AUTO_REUSE to share it",
        )
    if shape is not None and not compatible(as_dims(shape), found.shape._dims):
        raise ShapeError(
            f"the variable {full!r} exists with another shape",
            expected=show(found.shape._dims),
            got=show(as_dims(shape)),
            site=call_site(),
            hint=f"it was made at {site}",
        )
    if dtype is not None and as_dtype(dtype) is not found.dtype:
        raise DTypeError(
            f"the variable {full!r} exists with another dtype",
            expected=found.dtype.name,
            got=as_dtype(dtype).name,
            site=call_site(),
            hint=f"it was made at {site}",
        )
    return found


def _make(
    full: str, shape: Any, dtype: Any, initializer: Any, part: PartitionInfo | None, more: dict[str, Any]
) -> Variable:
    wanted = None if dtype is None else as_dtype(dtype)
    value: Any = initializer
    if initializer is None or callable(initializer):
        dims = as_dims(shape)
        if initializer is None and wanted is None:
            wanted = as_dtype(store_of_graph().current.dtype)
        maker = _default_initializer(wanted) if initializer is None else initializer
        if isinstance(maker, type):
            maker = maker()
        if shape is None and _takes_nothing(maker):
            value = maker
        else:
            wanted = as_dtype(store_of_graph().current.dtype) if wanted is None else wanted
            if dims is None or None in dims:
                raise InvalidArgumentError(
                    f"get_variable({full!r}) needs a shape that is known", site=call_site(), got=show(dims)
                )
            value = _called(maker, list(dims), wanted, part)
    with init_scope(), _name_scope_cleared():
        return Variable(value, name=full, dtype=wanted, **more)


def _called(maker: Callable[..., Any], sizes: list[Any], dtype: Any, part: PartitionInfo | None) -> Callable[[], Any]:
    more = {} if part is None else {"partition_info": part}
    return lambda: maker(sizes, dtype=dtype, **more)


def _takes_nothing(maker: Callable[..., Any]) -> bool:
    """Return whether a function can be called without arguments."""
    try:
        inspect.signature(maker).bind()
    except TypeError:
        return False
    return True


def _make_parts(
    full: str, shape: Any, dtype: Any, initializer: Any, partitioner: Callable[..., Any], more: dict[str, Any]
) -> PartitionedVariable:
    valued = initializer is not None and not callable(initializer)
    whole = convert_to_tensor(initializer, dtype) if valued else None
    dims: Dims = merge(as_dims(shape), None if whole is None else whole._dims)
    if dims is None or None in dims:
        raise InvalidArgumentError(
            f"get_variable({full!r}) with a partitioner needs a shape that is known",
            site=call_site(),
            got=show(dims),
        )
    sizes = [d for d in dims if d is not None]
    kind = as_dtype(store_of_graph().current.dtype if dtype is None else dtype) if whole is None else whole.dtype
    partitions = partitions_of(partitioner, sizes, kind, full)
    made = []
    for i, (part, info) in enumerate(parts_of(sizes, partitions)):
        value = initializer
        if whole is not None:
            value = whole[tuple(slice(a, a + n) for a, n in zip(info.var_offset, part, strict=True))]
        made.append(_make(f"{full}/part_{i}", part, kind, value, info if whole is None else None, more))
    return PartitionedVariable(full, sizes, kind, made, partitions)


@contextlib.contextmanager
def _name_scope_cleared() -> Iterator[None]:
    with outermost_graph().name_scope(None):
        yield


def _default_initializer(dtype: Any) -> Any:
    import graphdock as tf

    return tf.glorot_uniform_initializer() if dtype.is_floating else tf.zeros_initializer()
