"""``make_template``: a function that makes its variables at its first call, and shares them afterwards."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from graphdock import Variable, trainable_variables
from graphdock.errors import InvalidArgumentError

from graphdock_tf1.variables.scope import VariableScope, variable_scope


class Template:
    """Template that :func:`make_template` returns. Calling it calls the function inside of the template's own variable scope.

    Attributes:
      name: as it was given.
      variable_scope: the scope, None before the first call. ``variable_scope_name``: its name with a slash behind it, likewise.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        create_scope_now: bool = False,
        unique_name: str | None = None,
        custom_getter: Callable[..., Any] | None = None,
    ) -> None:
        self._name = name
        self._function = function
        self._unique_name = unique_name
        self._getter = custom_getter
        self._first = True
        self.variable_scope: VariableScope | None = None
        if create_scope_now:
            with self._opened(names=False) as scope:
                self.variable_scope = scope

    def _opened(self, names: bool = True) -> variable_scope:
        getter = self._getter
        return variable_scope(self._unique_name, self._name, custom_getter=getter, auxiliary_name_scope=names)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        first, self._first = self._first, False
        if self.variable_scope is None:
            with self._opened() as scope:
                self.variable_scope = scope
                return self._function(*args, **keywords)
        before = len(trainable_variables())
        with variable_scope(self.variable_scope, reuse=None if first else True):
            result = self._function(*args, **keywords)
        if not first and len(trainable_variables()) != before:
            raise InvalidArgumentError(
                f"the template {self.name!r} made a trainable variable after its first call",
                hint="tf.get_variable finds the variable of the first call again; tf.Variable makes another one",
            )
        return result

    @property
    def name(self) -> str:
        return self._name

    @property
    def variable_scope_name(self) -> str | None:
        if self.variable_scope is None:
            return None
        name = self.variable_scope.name
        return name if not name or name.endswith("/") else f"{name}/"

    @property
    def var_scope(self) -> VariableScope | None:
        return self.variable_scope

    @property
    def func(self) -> Callable[..., Any]:
        return self._function

    @property
    def variables(self) -> list[Variable]:
        """Its global and local variables."""
        return self.global_variables + self.local_variables

    @property
    def global_variables(self) -> list[Variable]:
        return [] if self.variable_scope is None else self.variable_scope.global_variables()

    @property
    def local_variables(self) -> list[Variable]:
        return [] if self.variable_scope is None else self.variable_scope.local_variables()

    @property
    def trainable_variables(self) -> list[Variable]:
        return [] if self.variable_scope is None else self.variable_scope.trainable_variables()


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> Template:
    """A function that makes its variables with ``get_variable`` at its first call, and shares them in later calls.

    Args:
      name_: of its variable scope, made unique. unique_name_: a name that is taken as it is.
      func_: the function. kwargs: arguments that each call of it gets.
      create_scope_now_: name the scope now, in the scope around this call, and not at the first call.
      custom_getter_: as of ``variable_scope``.

    Raises:
      InvalidArgumentError: ``func_`` can't be called, or ``unique_name_`` without a name.
    """
    if name_ is None:
        raise InvalidArgumentError("make_template: name_ is missing", expected="a name", got="None")
    if not callable(func_):
        raise InvalidArgumentError("make_template: func_ is of the wrong type", expected="a function", got=repr(func_))
    function = functools.partial(func_, **kwargs) if kwargs else func_
    return Template(name_, function, create_scope_now_, unique_name_, custom_getter_)
