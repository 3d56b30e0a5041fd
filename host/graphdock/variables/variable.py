"""Variable: a tensor that survives steps, behind a handle."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from graphdock import ops
from graphdock.arguments import check_type
from graphdock.dtypes import DType, as_dtype
from graphdock.errors import DTypeError, GraphdockError, InvalidArgumentError, ShapeError, prefixed
from graphdock.graph.body import BodyGraph
from graphdock.graph.default_session import needed
from graphdock.graph.graph import Graph, get_default_graph
from graphdock.graph.operation import Operation
from graphdock.graph.site import capture, describe
from graphdock.graph.tensor import Tensor, install_operators
from graphdock.ops.apply import apply_op
from graphdock.ops.convert import convert_to_tensor, register_tensor_conversion_function
from graphdock.ops.core import init_scope
from graphdock.shape import Dims, as_dims, compatible, show
from graphdock.tensor_shape import TensorShape
from graphdock.typing import DTypeLike, Operators, ShapeLike, TensorLike
from graphdock.variables.collections import GraphKeys
from graphdock.variables.initial_value import guarded

__all__ = ["Variable", "variable_of"]

#: VarHandleOp -> its Variable, both held weakly.
_by_handle: weakref.WeakKeyDictionary[Operation, weakref.ref[Variable]] = weakref.WeakKeyDictionary()


class Variable(Operators):
    """State of a graph: a dtype, a shape, and a value per session (or per named container).

    Making one adds to the outermost graph, outside of any control dependencies: a handle ``name``, the initial value
    under
    ``name/``, the initializer ``name/Assign`` and a read ``name/Read/ReadVariableOp``. Nothing has a value until the
    initializer has run.

    Where a tensor is expected, a variable stands for its value. Under control dependencies and in bodies of conds and
    loops each use is a read of its own, which sees the updates before it; elsewhere all uses share one read. A feed of
    the variable means that read; a fetch reads the variable behind all updates that the step runs (docs/adr/0058).

    Args:
      initial_value: a tensor, a value that converts to one, or a function that returns either (needed in a body).
      trainable: also add it to ``GraphKeys.TRAINABLE_VARIABLES``, which optimizers change. Anything that is true
        counts: programs of TensorFlow's first years pass a dtype in its place.
      collections: names of collections to add it to; default ``[GraphKeys.GLOBAL_VARIABLES]``.
      validate_shape: the initial value's shape must be known, and the variable keeps it. Otherwise any shape goes.
      name: name of the handle's operation, made unique; default ``"Variable"``.
      dtype: dtype to convert the initial value to; default: its own.
      shape, expected_shape: what the initial value's shape must agree with.
      constraint: function of the variable's new value that optimizers apply after they have changed it.
      caching_device, import_scope, use_resource, synchronization, aggregation: taken for TensorFlow's sake.

    Raises:
      InvalidArgumentError: no initial value, one of a body's graph, or one whose shape is not known.
      DTypeError: the initial value is a tensor of another dtype.
    """

    __array_priority__ = 100

    def __init__(
        self,
        initial_value: TensorLike | Callable[[], TensorLike] | None = None,
        trainable: Any = True,
        collections: Sequence[Any] | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: DTypeLike | None = None,
        expected_shape: ShapeLike = None,
        import_scope: str | None = None,
        constraint: Callable[[Any], Any] | None = None,
        use_resource: bool | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: ShapeLike = None,
    ) -> None:
        if initial_value is None:
            raise InvalidArgumentError(
                "a Variable needs an initial value",
                site=describe(capture()),
                hint="pass a tensor, an array, or a function that returns one",
            )
        if variable_def is not None:
            raise InvalidArgumentError("a Variable is made of an initial value, not of a variable_def")
        check_type(constraint, (NoneType, Callable), "Variable: constraint", "a function of its new value")  # type: ignore[arg-type]
        if isinstance(collections, str) or (collections is not None and not hasattr(collections, "__iter__")):
            raise InvalidArgumentError("collections of a Variable must be a list of keys", got=repr(collections))
        trainable = trainable is None or bool(trainable)
        check_type(validate_shape, (bool, np.bool_), "Variable: validate_shape", "True or False")
        wanted = None if dtype is None else as_dtype(dtype)
        with init_scope():
            graph = get_default_graph()
            with graph.name_scope(name or "Variable") as scope:
                given = self._initial(initial_value, wanted, scope, graph)
                for wish in (expected_shape, shape):
                    if not compatible(as_dims(wish), given._dims):
                        raise ShapeError(
                            f"the initial value of Variable {scope.rstrip('/')!r} has another shape",
                            op=given.op.name,
                            site=given.op.site,
                            expected=show(as_dims(wish)),
                            got=show(given._dims),
                        )
                self._initial_value = given
                self._validate = validate_shape
                self.dtype: DType = given.dtype
                self._dims: Dims = given._dims if validate_shape else None
                if validate_shape and (self._dims is None or None in self._dims):
                    raise InvalidArgumentError(
                        f"the initial value of Variable {scope.rstrip('/')!r} must have a shape that is known",
                        op=given.op.name,
                        site=given.op.site,
                        got=show(given._dims),
                        hint="call set_shape on it, or pass validate_shape=False",
                    )
                handle: Tensor = apply_op("VarHandleOp", name=scope, dtype=self.dtype, shape=self._dims)
                self._handle = handle
                _by_handle[handle.op] = weakref.ref(self)
                self._initialized: Tensor | None = None
                with graph.name_scope(scope + "Initializer/"):
                    value = guarded(given, self, variable_of)
                with self._on_device(graph):
                    self._initializer: Operation = apply_op(
                        "AssignVariableOp", name="Assign", resource=handle, value=value, validate_shape=validate_shape
                    )
                with graph.name_scope("Read"):
                    self._snapshot = self._read(None)
                graph._reads[handle.op] = self._snapshot
        for key in dict.fromkeys([*self._keys(collections), *([GraphKeys.TRAINABLE_VARIABLES] if trainable else [])]):
            graph.add_to_collection(key, self)
        self.trainable = trainable
        self.constraint = constraint
        self._save_slice_info: Any = None

    @staticmethod
    def _keys(collections: Sequence[Any] | None) -> list[Any]:
        return [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)

    @staticmethod
    def _initial(value: Any, wanted: DType | None, scope: str, graph: Graph) -> Tensor:
        if callable(value) and not isinstance(value, (Tensor, Variable)):
            with graph.name_scope(scope + "Initializer/"), graph.device(None):
                tensor = convert_to_tensor(value(), wanted, "initial_value")
        else:
            tensor = convert_to_tensor(value, wanted, "initial_value")
        if tensor.graph is not graph:
            inside = (
                f"stands inside the body {tensor.graph.name!r}"
                if isinstance(tensor.graph, BodyGraph)
                else "is of another graph"
            )
            raise InvalidArgumentError(
                f"the initial value of Variable {scope.rstrip('/')!r} {inside}",
                op=tensor.op.name,
                site=tensor.op.site,
                hint="a variable lives in the outermost graph: pass a function that makes its initial value there",
            )
        return tensor

    # -- facts ------------------------------------------------------------------------------------------------------

    @property
    def handle(self) -> Tensor:
        """The resource tensor that names it."""
        return self._handle

    @property
    def name(self) -> str:
        """``"layer/Variable_1:0"``."""
        return self._handle.name

    @property
    def op(self) -> Operation:
        """The handle's operation."""
        return self._handle.op

    @property
    def graph(self) -> Graph:
        return self._handle.op.graph

    @property
    def device(self) -> str:
        return self._handle.op.device

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._dims)

    def get_shape(self) -> TensorShape:
        return TensorShape(self._dims)

    @property
    def initializer(self) -> Operation:
        """The operation that gives it its initial value."""
        return self._initializer

    @property
    def initial_value(self) -> Tensor:
        """The tensor it was made with."""
        return self._initial_value

    def initialized_value(self) -> Tensor:
        """Its value if it has one, else what its initializer would give: what initial values of others use."""
        if self._initialized is None:
            from graphdock.control_flow.cond import cond

            with init_scope():
                graph = get_default_graph()
                with graph.name_scope(self.op.name + "/initialized_value/"):
                    is_set = apply_op("VarIsInitializedOp", resource=self._handle)
                    self._initialized = cond(is_set, lambda: self._read("read"), lambda: self._initial_value)
        return self._initialized

    # -- reading ----------------------------------------------------------------------------------------------------

    def value(self) -> Tensor:
        """Its value: the shared read, or a fresh one under control dependencies and in bodies."""
        graph = get_default_graph()
        if isinstance(graph, BodyGraph) or graph._scopes.control:
            with graph.name_scope(self.op.name.rpartition("/")[2]):
                return self._read(None)
        return self._snapshot

    def read_value(self) -> Tensor:
        """A fresh read, which runs after the control dependencies it is made under."""
        with get_default_graph().name_scope("Read"):
            return self._read(None)

    def _read(self, name: str | None) -> Tensor:
        with self._on_device(get_default_graph()):
            tensor: Tensor = apply_op("ReadVariableOp", name=name, resource=self._handle, dtype=self.dtype)
        tensor._dims = self._dims
        return tensor

    @contextlib.contextmanager
    def _on_device(self, graph: Graph) -> Iterator[None]:
        """Whatever touches the handle goes where the handle is, not where the scopes point."""
        with graph.device(None), graph.device(self.device or None):
            yield

    def _as_graph_element(self) -> Tensor:
        return self._snapshot

    def eval(self, session: Any = None) -> Any:
        """Its value in ``session`` or the default session."""
        return needed(session).run(self._snapshot)

    # -- writing ----------------------------------------------------------------------------------------------------

    @overload
    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: Literal[True] = True
    ) -> Tensor: ...
    @overload
    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, *, read_value: Literal[False]
    ) -> Operation: ...
    @overload
    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Tensor | Operation: ...
    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Set it.

        Args:
          value: of its dtype and shape.
          use_locking: taken for TensorFlow's sake; updates are never torn.
          read_value: return the new value as a Tensor (a read after the update), else the operation.

        Raises:
          DTypeError, ShapeError: the value does not fit.
        """
        return self._update("AssignVariableOp", value, name or "Assign", read_value, validate_shape=self._validate)

    @overload
    def assign_add(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: Literal[True] = True
    ) -> Tensor: ...
    @overload
    def assign_add(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, *, read_value: Literal[False]
    ) -> Operation: ...
    @overload
    def assign_add(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Tensor | Operation: ...
    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add ``delta`` to it; as :meth:`assign`."""
        return self._update("AssignAddVariableOp", delta, name or "AssignAdd", read_value)

    @overload
    def assign_sub(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: Literal[True] = True
    ) -> Tensor: ...
    @overload
    def assign_sub(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, *, read_value: Literal[False]
    ) -> Operation: ...
    @overload
    def assign_sub(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Tensor | Operation: ...
    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract ``delta`` from it; as :meth:`assign`."""
        return self._update("AssignSubVariableOp", delta, name or "AssignSub", read_value)

    def count_up_to(self, limit: int) -> Tensor:
        """Its value, to which 1 is added; see ``tf.count_up_to`` of the standard library."""
        import graphdock as tf

        counted: Tensor = tf.count_up_to(self, limit)
        return counted

    def is_initialized(self, name: str | None = None) -> Tensor:
        """A bool scalar: whether it has a value in this session."""
        return apply_op("VarIsInitializedOp", name=name, resource=self._handle)  # type: ignore[no-any-return]

    def _update(self, op_type: str, value: Any, name: str, read_value: bool, **attrs: Any) -> Any:
        graph = get_default_graph()
        with graph.name_scope(name) as scope:
            tensor = self._fitting(value, scope)
            with self._on_device(graph):
                update = apply_op(op_type, name=scope, resource=self._handle, value=tensor, **attrs)
            if not read_value:
                return update
            with graph.control_dependencies([update]):
                return self._read(None)

    def _fitting(self, value: Any, scope: str) -> Tensor:
        try:
            tensor = convert_to_tensor(value, self.dtype, "value")
        except GraphdockError as error:
            raise prefixed(f"{scope.rstrip('/')} to Variable {self.name}", error, describe(capture())) from None
        if not compatible(self._dims, tensor._dims):
            raise ShapeError(
                f"{scope.rstrip('/')}: a value of another shape than Variable {self.name}",
                op=tensor.op.name,
                site=tensor.op.site,
                expected=show(self._dims),
                got=show(tensor._dims),
                hint="a variable made with validate_shape=False takes any shape",
            )
        return tensor

    def load(self, value: TensorLike, session: Any = None) -> None:
        """Set it to an array at once, in ``session`` or the default session."""
        needed(session).run(self._initializer, {self._initializer.inputs[1]: value})

    # -- Python -----------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(f"Variable {self.name} is symbolic and cannot be iterated over")

    def __bool__(self) -> bool:
        raise TypeError(f"Variable {self.name} is symbolic and has no truth value; use tf.cond or `is not None`")

    if not TYPE_CHECKING:  # a checker must not take it for what NumPy makes an array of

        def __array__(self, *args: Any, **kwargs: Any) -> Any:
            raise TypeError(f"Variable {self.name} is symbolic and has no NumPy value; run it in a session")

    def to_proto(self, export_scope: str | None = None) -> Any:
        """It as a VariableDef; None where it is not in the scope that is given, which names lose.

        Raises:
          AttributeError: no installed package knows the message.
        """
        return ops.variable_to_proto(self, export_scope)

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> Any:
        """The Variable of operations that are in the default graph already, in a scope if one is given.

        Raises:
          InvalidArgumentError, NotFoundError: what the message names is not in the graph, or is no variable.
        """
        return ops.variable_from_proto(variable_def, import_scope)

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={self.dtype.name}>"


install_operators(Variable, Variable.value)


def _to_tensor(variable: Variable, dtype: DType | None, name: str | None) -> Tensor:
    if dtype is not None and dtype is not variable.dtype:
        raise DTypeError(
            f"Variable {variable.name} has the wrong dtype",
            op=variable.op.name,
            site=variable.op.site,
            expected=dtype.name,
            got=variable.dtype.name,
            hint=f"use tf.cast(..., tf.{dtype.name})",
        )
    return variable.value()


register_tensor_conversion_function(Variable, _to_tensor)


def variable_of(handle: Tensor | Operation) -> Variable | None:
    """The Variable behind a handle, also one captured by a body; None when it is gone or the op is no handle."""
    op = handle.op if isinstance(handle, Tensor) else handle
    found = _by_handle.get(op._original or op)
    return None if found is None else found()
