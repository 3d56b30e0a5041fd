"""``get_variable`` and ``variable_scope``: variables by name, shared on purpose."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from graphdock.dtypes import as_dtype, float32
from graphdock.errors import (
    AlreadyExistsError,
    DTypeError,
    InvalidArgumentError,
    NotFoundError,
    ShapeError,
    did_you_mean,
)
from graphdock.graph.site import capture, describe
from graphdock.graph.tensor import Tensor
from graphdock.locks import new_lock
from graphdock.ops.convert import make_array
from graphdock.ops.scopes import init_scope
from graphdock.shape import as_dims, compatible, show
from graphdock.typing import DTypeLike, ShapeLike
from graphdock.variables.collections import GraphKeys, outermost_graph
from graphdock.variables.variable import Variable

__all__ = ["AUTO_REUSE", "VariableScope", "get_variable", "get_variable_scope", "variable_scope"]


class _AutoReuse:
    def __repr__(self) -> str:
        return "tf.AUTO_REUSE"


#: ``reuse=tf.AUTO_REUSE``: make a variable at its first use, share it afterwards.
AUTO_REUSE: Final = _AutoReuse()


@dataclass(frozen=True, slots=True)
class VariableScope:
    """What ``get_variable`` does here.

    Attributes:
      name: prefix of the names, without a slash at the end.
      reuse: False: variables are new; True: they must exist; AUTO_REUSE: either.
      initializer, regularizer, dtype: defaults of variables made here.
      original_name_scope: name scope that ``variable_scope`` opened, with its slash.
    """

    name: str = ""
    reuse: Any = False
    initializer: Any = None
    regularizer: Callable[[Tensor], Any] | None = None
    dtype: Any = float32
    original_name_scope: str = ""

    def full_name(self, name: str) -> str:
        return f"{self.name}/{name}" if self.name else name


class _Store(threading.local):
    """The scopes of this thread; ``variables`` is the graph's, shared by its threads.

    Attributes:
      stack: the scopes entered, innermost last. ``opened``: for each, the full names opened directly inside.
      openings: full name -> how often a scope of that name was opened since the one around it was entered.
    """

    def __init__(self, variables: dict[str, Variable], lock: threading.RLock) -> None:
        self.variables = variables
        self.lock = lock
        self.stack: list[VariableScope] = [VariableScope()]
        self.opened: list[list[str]] = [[]]
        self.openings: dict[str, int] = {}

    def enter(self, scope: VariableScope) -> None:
        self.openings[scope.name] = self.openings.get(scope.name, 0) + 1
        self.opened[-1].append(scope.name)
        self.stack.append(scope)
        self.opened.append([])

    def leave(self) -> None:
        """Default names inside begin again when the scope is entered again."""
        self.stack.pop()
        for name in self.opened.pop():
            self.openings.pop(name, None)


def _store() -> _Store:
    held: dict[str, Any] = vars(outermost_graph())
    found = held.get("_variable_store")
    if found is None:
        found = held.setdefault("_variable_store", _Store({}, new_lock()))
    return found  # type: ignore[no-any-return]


def get_variable_scope() -> VariableScope:
    """The variable scope that holds here."""
    return _store().stack[-1]


@contextlib.contextmanager
def variable_scope(
    name_or_scope: Any = None,
    default_name: str | None = None,
    values: Sequence[Any] | None = None,
    initializer: Any = None,
    regularizer: Callable[[Tensor], Any] | None = None,
    reuse: Any = None,
    dtype: DTypeLike | None = None,
) -> Iterator[VariableScope]:
    """Prefix the names of variables that ``get_variable`` makes inside, and of operations (as ``name_scope`` does).

    Args:
      name_or_scope: a name below the current scope, or a scope to enter again.
      default_name: used when ``name_or_scope`` is None, with a number where a scope of that name was opened before in the scope
        around it. Numbers begin again when that scope is entered again, so that its variables are found again.
      values: taken for TensorFlow's sake.
      initializer, regularizer, dtype: defaults of variables made inside; inherited.
      reuse: True: variables must exist; AUTO_REUSE: they are made when they do not; None: inherited; once True it stays.
    """
    store = _store()
    outer = store.stack[-1]
    if name_or_scope is None and default_name is None:
        raise InvalidArgumentError("variable_scope needs name_or_scope or default_name")
    if isinstance(name_or_scope, VariableScope):
        base, full = name_or_scope, name_or_scope.name
        label = full.rpartition("/")[2] or None
    else:
        base = outer
        label = name_or_scope if name_or_scope is not None else _unused(store, outer, str(default_name))
        if not isinstance(label, str):
            raise InvalidArgumentError("variable_scope takes a name or a VariableScope", got=repr(name_or_scope))
        full = outer.full_name(label)
    again = base.reuse if reuse is None else reuse
    if outer.reuse is True:
        again = True
    with contextlib.ExitStack() as scopes:
        opened = scopes.enter_context(_name_scope(label)) if label else ""
        made = replace(
            base,
            name=full,
            reuse=again,
            initializer=base.initializer if initializer is None else initializer,
            regularizer=base.regularizer if regularizer is None else regularizer,
            dtype=base.dtype if dtype is None else as_dtype(dtype),
            original_name_scope=opened,
        )
        store.enter(made)
        try:
            yield made
        finally:
            store.leave()
            # a scope that is entered again counts for nothing where it is entered
            if isinstance(name_or_scope, VariableScope):
                store.opened[-1].pop()
                store.openings[full] -= 1


def _name_scope(label: str) -> Any:
    from graphdock.ops.scopes import name_scope

    return name_scope(label)


def _unused(store: _Store, outer: VariableScope, name: str) -> str:
    found, number = name, 1
    while store.openings.get(outer.full_name(found)):
        found, number = f"{name}_{number}", number + 1
    return found


def get_variable(
    name: str,
    shape: ShapeLike = None,
    dtype: DTypeLike | None = None,
    initializer: Any = None,
    regularizer: Callable[[Tensor], Any] | None = None,
    trainable: bool = True,
    collections: Sequence[Any] | None = None,
) -> Variable:
    """The variable of that name in the current variable scope: a new one, or the one that exists where the scope reuses.

    Args:
      name: below the scope's name.
      shape: its shape; an initial value has its own, and takes none beside it.
      dtype: its dtype; default: an initial value's own, or the scope's, float32 if that says nothing.
      initializer: called with (shape, dtype=...), or an initial value; default: the scope's, Glorot's uniform one for floating
        dtypes, zeros for others.
      regularizer: called with the value; its result joins ``GraphKeys.REGULARIZATION_LOSSES``.
      trainable, collections: as for Variable.

    Raises:
      AlreadyExistsError: there is one and the scope does not reuse. NotFoundError: there is none and the scope must reuse.
      ShapeError, DTypeError: the one that exists is of another shape or dtype. InvalidArgumentError: no shape to make it of, or one
        beside an initial value. DTypeError: an initial value is of another dtype than ``dtype``.
    """
    store = _store()
    scope = store.stack[-1]
    full = scope.full_name(name)
    _value_alone(full, shape, dtype, initializer, scope)
    with store.lock:
        found = store.variables.get(full)
        if found is not None:
            return _shared(found, full, scope, shape, dtype)
        if scope.reuse is True:
            raise NotFoundError(
                f"the variable scope {scope.name!r} reuses variables, but there is no {full!r}",
                site=describe(capture()),
                hint=did_you_mean(full, store.variables) or "make it first, or use reuse=tf.AUTO_REUSE",
            )
        made = _make(full, scope, shape, dtype, initializer, trainable, collections)
        store.variables[full] = made
    regularizer = scope.regularizer if regularizer is None else regularizer
    if regularizer is not None:
        loss = regularizer(made.value())
        if loss is not None:
            made.graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return made


def _value_alone(full: str, shape: Any, dtype: Any, initializer: Any, scope: VariableScope) -> None:
    """Refuse a shape or another dtype beside an initial value that is no function, as TensorFlow 1 does."""
    given = scope.initializer if initializer is None else initializer
    if given is None or callable(given):
        return
    if shape is not None:
        raise InvalidArgumentError(
            f"get_variable({full!r}): an initial value has a shape, so none may be given",
            site=describe(capture()),
            got=f"the shape {show(as_dims(shape))}",
            hint="leave out shape, or use initializer=tf.constant_initializer(value)",
        )
    if dtype is None or initializer is None:
        return
    own = given.dtype if isinstance(given, (Tensor, Variable)) else make_array(given, None)[1]
    if own is not as_dtype(dtype):
        raise DTypeError(
            f"get_variable({full!r}): the initial value has another dtype",
            site=describe(capture()),
            expected=as_dtype(dtype).name,
            got=own.name,
            hint="leave out dtype, or use initializer=tf.constant_initializer(value)",
        )


def _shared(found: Variable, full: str, scope: VariableScope, shape: Any, dtype: Any) -> Variable:
    if scope.reuse is False:
        raise AlreadyExistsError(
            f"a variable named {full!r} exists, made at {found.op.site}",
            site=describe(capture()),
            hint="enter its variable_scope with reuse=True or reuse=tf.AUTO_REUSE to share it",
        )
    if shape is not None and not compatible(as_dims(shape), found.shape._dims):
        raise ShapeError(
            f"the variable {full!r} exists with another shape",
            expected=str(found.shape),
            got=show(as_dims(shape)),
            site=describe(capture()),
            hint=f"it was made at {found.op.site}",
        )
    if dtype is not None and as_dtype(dtype) is not found.dtype:
        raise DTypeError(
            f"the variable {full!r} exists with another dtype",
            expected=found.dtype.name,
            got=as_dtype(dtype).name,
            site=describe(capture()),
            hint=f"it was made at {found.op.site}",
        )
    return found


def _make(
    full: str,
    scope: VariableScope,
    shape: Any,
    dtype: Any,
    initializer: Any,
    trainable: bool,
    collections: Sequence[Any] | None,
) -> Variable:
    given = scope.initializer if initializer is None else initializer
    if given is not None and not callable(given):
        value: Any = given
        wanted = dtype
    else:
        wanted = as_dtype(dtype if dtype is not None else scope.dtype)
        dims = as_dims(shape)
        if dims is None or None in dims:
            raise InvalidArgumentError(
                f"get_variable({full!r}) needs a shape that is known", site=describe(capture()), got=show(dims)
            )
        maker = given or _default_initializer(wanted)
        if isinstance(maker, type):
            maker = maker()
        sizes = list(dims)
        value = lambda: maker(sizes, dtype=wanted)  # noqa: E731
    with init_scope(), _name_scope_cleared():
        return Variable(value, trainable, collections, name=full, dtype=wanted)


@contextlib.contextmanager
def _name_scope_cleared() -> Iterator[None]:
    with outermost_graph().name_scope(None):
        yield


def _default_initializer(dtype: Any) -> Any:
    import graphdock as tf

    return tf.glorot_uniform_initializer() if dtype.is_floating else tf.zeros_initializer()
