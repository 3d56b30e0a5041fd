"""``variable_scope``: where the names and defaults of the variables that ``get_variable`` makes come from."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Final

from graphdock import GraphKeys, Variable
from graphdock.dtypes import as_dtype, float32
from graphdock.errors import ArgumentTypeError, InvalidArgumentError
from graphdock.locks import new_lock
from graphdock.ops import name_scope, outermost_graph
from graphdock.typing import DTypeLike


class _AutoReuse:
    def __repr__(self) -> str:
        return "tf.AUTO_REUSE"


#: ``reuse=tf.AUTO_REUSE``: make a variable at its first use, share it afterwards.
AUTO_REUSE: Final = _AutoReuse()

#: What a scope hands on to those inside it, and ``variable_scope`` may set: attribute -> the argument's name.
_DEFAULTS = ("initializer", "regularizer", "caching_device", "partitioner", "dtype", "use_resource", "constraint")


class VariableScope:
    """Settings by which ``get_variable`` works here.

    ``reuse_variables`` and the ``set_`` methods change the scope itself: what is made in it from then on, and in scopes that are
    entered inside it from then on.

    Attributes:
      name: prefix of the names, without a slash at the end.
      reuse: False: variables are new; True: they must exist; AUTO_REUSE: either.
      initializer, regularizer, partitioner, constraint, dtype: defaults of variables made here.
      custom_getter: called in place of ``get_variable``'s own work, with that as its first argument.
      caching_device, use_resource: taken for TensorFlow's sake; every variable is a resource, and reads are shared anyway.
      original_name_scope: name scope that ``variable_scope`` opened, with its slash.
    """

    def __init__(
        self,
        reuse: Any = False,
        name: str = "",
        initializer: Any = None,
        regularizer: Callable[[Any], Any] | None = None,
        caching_device: Any = None,
        partitioner: Callable[..., Any] | None = None,
        custom_getter: Callable[..., Any] | None = None,
        name_scope: str = "",
        dtype: DTypeLike = float32,
        use_resource: bool | None = None,
        constraint: Callable[[Any], Any] | None = None,
    ) -> None:
        self.name = name
        self.reuse = reuse
        self.initializer = initializer
        self.regularizer = regularizer
        self.caching_device = caching_device
        self.partitioner = partitioner
        self.custom_getter = custom_getter
        self.original_name_scope = name_scope
        self.dtype: Any = dtype
        self.use_resource = use_resource
        self.constraint = constraint

    def full_name(self, name: str) -> str:
        return f"{self.name}/{name}" if self.name else name

    def reuse_variables(self) -> None:
        """From now on variables must exist."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        self.initializer = initializer

    def set_regularizer(self, regularizer: Callable[[Any], Any] | None) -> None:
        self.regularizer = regularizer

    def set_caching_device(self, caching_device: Any) -> None:
        self.caching_device = caching_device

    def set_partitioner(self, partitioner: Callable[..., Any] | None) -> None:
        self.partitioner = partitioner

    def set_custom_getter(self, custom_getter: Callable[..., Any] | None) -> None:
        self.custom_getter = custom_getter

    def set_dtype(self, dtype: DTypeLike) -> None:
        self.dtype = as_dtype(dtype)

    def set_use_resource(self, use_resource: bool | None) -> None:
        self.use_resource = use_resource

    def get_collection(self, name: Any) -> list[Any]:
        """The items of a collection whose names stand in this scope."""
        return outermost_graph().get_collection(name, self.name + "/" if self.name else None)

    def global_variables(self) -> list[Variable]:
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def trainable_variables(self) -> list[Variable]:
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)

    def local_variables(self) -> list[Variable]:
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def inner(self, name: str, name_scope: str, reuse: Any, **given: Any) -> VariableScope:
        """A scope inside this one, or this one again, with what is ``given`` and not None in place of its own."""
        made = VariableScope(reuse, name, custom_getter=self.custom_getter, name_scope=name_scope)
        for field in _DEFAULTS:
            setattr(made, field, getattr(self, field) if given[field] is None else given[field])
        made.dtype = as_dtype(made.dtype)
        getter = given["custom_getter"]
        if getter is not None:
            made.custom_getter = getter if self.custom_getter is None else _nested(getter, self.custom_getter)
        return made

    def __repr__(self) -> str:
        return f"<tf.VariableScope {self.name!r} reuse={self.reuse!r}>"


def _nested(inner: Callable[..., Any], outer: Callable[..., Any]) -> Callable[..., Any]:
    """The getter of an inner scope, for which the outer scope's stands in the place of ``get_variable``'s own work."""

    def getter(true_getter: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        return inner(functools.partial(outer, true_getter), *args, **keywords)

    return getter


class Store(threading.local):
    """The scopes of this thread; ``variables`` is the graph's, shared by its threads.

    Attributes:
      variables: full name -> Variable, or PartitionedVariable.
      current: the scope that holds.
      openings: full name -> how often a scope of that name was opened since a scope around it was left.
    """

    def __init__(self, variables: dict[str, Any], lock: threading.RLock) -> None:
        self.variables = variables
        self.lock = lock
        self.current = VariableScope()
        self.openings: dict[str, int] = {}

    def open(self, name: str) -> None:
        self.openings[name] = self.openings.get(name, 0) + 1

    def close_inside(self, name: str) -> None:
        """Default names inside begin again when the scope is entered again."""
        for opened in self.openings:
            if opened.startswith(name + "/"):
                self.openings[opened] = 0

    def unused(self, name: str) -> str:
        """``name``, or ``name_1``, ... when a scope of that name was opened in the current one."""
        found, number = name, 1
        while self.openings.get(self.current.full_name(found)):
            found, number = f"{name}_{number}", number + 1
        return found


def store_of_graph() -> Store:
    """The store of the outermost graph."""
    held: dict[str, Any] = vars(outermost_graph())
    found = held.get("_variable_store")
    if found is None:
        found = held.setdefault("_variable_store", Store({}, new_lock()))
    return found  # type: ignore[no-any-return]


def get_variable_scope() -> VariableScope:
    """The variable scope that holds here."""
    return store_of_graph().current


class variable_scope:  # noqa: N801 - TensorFlow's name
    """Prefix the names of variables that ``get_variable`` makes inside, and of operations (as ``name_scope`` does).

        with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", [784, 10])

    Args:
      name_or_scope: a name below the current scope, or a scope to enter again.
      default_name: used when ``name_or_scope`` is None, with a number where a scope of that name was opened before in the scope
        around it. Numbers begin again when that scope is entered again, so that its variables are found again.
      values: taken for TensorFlow's sake.
      initializer, regularizer, partitioner, constraint, dtype: defaults of variables made inside; inherited.
      custom_getter: called as ``custom_getter(getter, name, **arguments)`` for each variable; inside others it comes first.
      caching_device, use_resource: taken for TensorFlow's sake; every variable is a resource.
      reuse: True: variables must exist; AUTO_REUSE: they are made when they do not; None: inherited; once True it stays.
      auxiliary_name_scope: also open a name scope for operations.

    Raises:
      InvalidArgumentError: neither a name nor a default one, ``reuse=True`` with a default one, or something else than a name.
    """

    def __init__(
        self,
        name_or_scope: Any = None,
        default_name: str | None = None,
        values: Sequence[Any] | None = None,
        initializer: Any = None,
        regularizer: Callable[[Any], Any] | None = None,
        caching_device: Any = None,
        partitioner: Callable[..., Any] | None = None,
        custom_getter: Callable[..., Any] | None = None,
        reuse: Any = None,
        dtype: DTypeLike | None = None,
        use_resource: bool | None = None,
        constraint: Callable[[Any], Any] | None = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if name_or_scope is None and default_name is None:
            raise ArgumentTypeError("variable_scope needs name_or_scope or default_name")
        named = default_name if name_or_scope is None else name_or_scope
        if not isinstance(named, (str, VariableScope)):
            raise ArgumentTypeError("variable_scope takes a name or a VariableScope", got=repr(named))
        if reuse not in (None, True, False, AUTO_REUSE):
            raise InvalidArgumentError(
                "variable_scope: reuse is wrong", expected="True, False, None or tf.AUTO_REUSE", got=repr(reuse)
            )
        if name_or_scope is None and reuse is True:
            raise InvalidArgumentError(
                "reuse=True cannot be used without a name_or_scope", hint="default names are new"
            )
        self._named: str | VariableScope | None = name_or_scope
        self._default = default_name
        self._reuse = reuse
        self._auxiliary = auxiliary_name_scope
        self._given = {
            "initializer": initializer,
            "regularizer": regularizer,
            "caching_device": caching_device,
            "partitioner": partitioner,
            "custom_getter": custom_getter,
            "dtype": None if dtype is None else as_dtype(dtype),
            "use_resource": use_resource,
            "constraint": constraint,
        }
        self._entered: list[tuple[VariableScope, str, dict[str, int] | None, contextlib.ExitStack]] = []

    def __enter__(self) -> VariableScope:
        store = store_of_graph()
        outer, named = store.current, self._named
        names = contextlib.ExitStack()
        if isinstance(named, VariableScope):
            label: str | None = named.name.rpartition("/")[2]
            base, full = named, named.name
        else:
            base = outer
            label = self._default if named is None else named
            full = outer.full_name(store.unused(str(self._default)) if named is None else named)
        opened = ""
        if label and self._auxiliary:
            opened = names.enter_context(name_scope(label))
        reuse = base.reuse if self._reuse is None else self._reuse
        if outer.reuse is True:
            reuse = True
        again = isinstance(named, VariableScope)
        made = base.inner(full, base.original_name_scope if again else opened, reuse, **self._given)
        store.open(full)
        self._entered.append((outer, full, dict(store.openings) if again else None, names))
        store.current = made
        return made

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        outer, full, openings, names = self._entered.pop()
        store = store_of_graph()
        if openings is None:
            store.close_inside(full)
        else:  # a scope that is entered again counts for nothing where it is entered
            store.openings = openings
        store.current = outer
        names.__exit__(kind, error, trace)


def variable_op_scope(
    values: Sequence[Any], name_or_scope: Any, default_name: str | None = None, *args: Any, **keywords: Any
) -> variable_scope:
    """:class:`variable_scope` with the order of arguments of before TensorFlow 1.0; further ones are the same."""
    return variable_scope(name_or_scope, default_name, values, *args, **keywords)


@contextlib.contextmanager
def op_scope(values: Sequence[Any], name: str | None, default_name: str | None = None) -> Iterator[str]:
    """``tf.name_scope`` with the order of arguments of before TensorFlow 1.0; yields the full prefix."""
    with name_scope(name, default_name, values) as scope:
        yield scope
