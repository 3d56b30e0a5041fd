"""Rule: an optimizer whose update of a variable is one op."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from graphdock.errors import InvalidArgumentError, UnimplementedError

from graphdock_tf1.train.optimizer import Optimizer


class Rule(Optimizer):
    """An optimizer whose update is an op of the variable, its slots, some scalars and the gradient, in this order.

    Args:
      use_locking, name: as of Optimizer.
      slots: name of a slot -> the number that it is filled with at first.
      rates: the scalars in the order of the op: numbers, scalar tensors, or functions that return one.

    Raises:
      InvalidArgumentError, ShapeError: a rate is none.
    """

    #: How many scalars come before the gradient; None: all.
    _before_gradient: ClassVar[int | None] = None

    def __init__(self, use_locking: bool, name: str, slots: Mapping[str, float] | None = None, **rates: Any) -> None:
        super().__init__(use_locking, name)
        self._check_rates(**rates)
        self._rates: dict[str, Any] = rates
        self._starts = dict(slots or {})

    def _regularize(self, l1_regularization_strength: float, l2_regularization_strength: float) -> None:
        """Add two scalars, which must be numbers and not negative."""
        self._check_not_negative(
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )
        self._rates |= {"l1": l1_regularization_strength, "l2": l2_regularization_strength}

    def _check_positive(self, **numbers: Any) -> None:
        """Refuse an argument that is no number, or is not above 0. Raises InvalidArgumentError, which names it."""
        self._check_numbers(**numbers)
        for name, value in numbers.items():
            if not value > 0.0:
                raise InvalidArgumentError(f"{name} must be positive", got=str(value))

    def _updates(self) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
        """The op for a gradient, and that for one of some rows: values and indices; None: rows are made a whole tensor."""
        raise UnimplementedError(f"{type(self).__name__} does not define _updates")

    def _scalars(self, var: Any) -> list[Any]:
        return [self._hyper(name, value, var) for name, value in self._rates.items()]

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            for slot, number in self._starts.items():
                self._filled_slot(var, number, slot, self._name)

    def _apply(self, update: Callable[..., Any], var: Any, *gradient: Any) -> Any:
        scalars, at = self._scalars(var), self._before_gradient
        at = len(scalars) if at is None else at
        slots = [self.get_slot(var, name).handle for name in self._starts]
        return update(var.handle, *slots, *scalars[:at], *gradient, *scalars[at:])

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return self._apply(self._updates()[0], var, grad)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        update = self._updates()[1]
        return (
            super()._apply_sparse(grad, var) if update is None else self._apply(update, var, grad.values, grad.indices)
        )
