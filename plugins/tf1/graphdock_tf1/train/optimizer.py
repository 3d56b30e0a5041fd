"""Optimizer: from a loss to an operation that changes variables. The base of all rules, and of custom ones."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import graphdock as _tf
import numpy as np
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.arguments import check_type
from graphdock.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    ShapeError,
    UnimplementedError,
    did_you_mean,
)
from graphdock.typing import HasTensor, TensorLike


class Optimizer:
    """Base of all optimizers.

    A rule is a subclass that defines :meth:`_apply_dense`, and :meth:`_create_slots` if it keeps state per variable::

        class SignDescent(tf.train.Optimizer):
            def __init__(self, learning_rate, name="SignDescent"):
                super().__init__(use_locking=False, name=name)
                self._rate = learning_rate

            def _apply_dense(self, grad, var):
                return var.assign_sub(self._hyper("learning_rate", self._rate, var) * tf.sign(grad), read_value=False)

    An optimizer belongs to one graph at a time and is used while that graph is built, from one thread.

    Args:
      use_locking: taken for TensorFlow's sake; updates are never torn.
      name: prefix of what it adds to the graph.
    """

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool = False, name: str = "Optimizer") -> None:
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError("an optimizer needs a name", got=repr(name))
        self._name = name
        self._use_locking = use_locking
        self._slots: dict[str, dict[Any, Any]] = {}
        self._non_slots: dict[tuple[str, Any], Any] = {}
        self._hypers: dict[tuple[str, Any, str], Any] = {}
        self._scope = name

    if not TYPE_CHECKING:  # for a type checker it would have every name

        def __getattr__(self, name: str) -> Any:
            public = [n for n in dir(type(self)) if not n.startswith("_")]
            near = None if name.startswith("_") else did_you_mean(name, public)
            said = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(said if near is None else f"{said}; {near}")

    def get_name(self) -> str:
        return self._name

    # from the loss to an operation

    def minimize(
        self,
        loss: HasTensor,
        global_step: _tf.Variable | _ops.Tensor | None = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: TensorLike | None = None,
    ) -> _ops.Operation:
        """An operation that changes variables so that ``loss`` gets smaller: compute_gradients, then apply_gradients.

        Args:
          loss: a floating tensor; of one that is not a scalar the sum is meant.
          global_step: an integer Variable to count up after the update.
          var_list: Variables to change; default: the trainable ones of the graph.
          name: name of the operation; default: the optimizer's.
          grad_loss: gradient that arrives at ``loss``; default: ones.

        Raises:
          InvalidArgumentError: there is no variable, or none that ``loss`` depends on.
          GradientError: an op on the way has no gradient.
        """
        pairs = self.compute_gradients(
            loss, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops, grad_loss
        )
        if not any(grad is not None for grad, _ in pairs):
            raise InvalidArgumentError(
                f"{self._name}: the loss depends on none of the variables",
                got=", ".join(v.name for _, v in pairs),
                hint="a path through integers, comparisons or stop_gradient carries no gradient",
            )
        return self.apply_gradients(pairs, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: TensorLike,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: TensorLike | None = None,
    ) -> list[tuple[Any, _tf.Variable]]:
        """Pairs of gradient and Variable, for :meth:`apply_gradients` or to be changed before it (clipping).

        The gradient is a Tensor, IndexedSlices, or None where ``loss`` does not depend on the Variable or that is not floating.
        Arguments are those of :meth:`minimize`; ``aggregation_method`` is taken for TensorFlow's sake.
        """
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise InvalidArgumentError(
                "gate_gradients must be GATE_NONE, GATE_OP or GATE_GRAPH", got=repr(gate_gradients)
            )
        loss = _ops.convert_to_tensor(loss)
        if not loss.dtype.is_floating:
            raise DTypeError(f"{self._name}: the loss must be floating", op=loss.op.name, got=loss.dtype.name)
        variables = _tf.trainable_variables() if var_list is None else list(_flat(var_list))
        if not variables:
            raise InvalidArgumentError(
                f"{self._name}: there is no variable to change", hint="make a tf.Variable, or pass var_list"
            )
        for var in variables:
            if not isinstance(var, _tf.Variable):
                raise InvalidArgumentError(f"{self._name}: var_list holds something else than Variables", got=repr(var))
        grads = _tf.gradients(
            loss,
            variables,
            grad_ys=grad_loss,
            gate_gradients=gate_gradients == self.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        if gate_gradients == self.GATE_GRAPH:
            grads = _tf.tuple(grads)
        return list(zip(grads, variables, strict=True))

    def apply_gradients(
        self,
        grads_and_vars: Iterable[Any],
        global_step: _tf.Variable | _ops.Tensor | None = None,
        name: str | None = None,
    ) -> _ops.Operation:
        """An operation that applies gradients.

        Args:
          grads_and_vars: pairs as :meth:`compute_gradients` returns them; pairs without a gradient are left out.
          global_step: an integer Variable to count up after the update.
          name: name of the operation; default: the optimizer's.

        Raises:
          InvalidArgumentError: no pair has a gradient. ShapeError, DTypeError: a gradient does not fit its Variable.
          FailedPreconditionError: a Variable with a constraint has a sparse gradient.
        """
        given = [(grad, var) for grad, var in grads_and_vars]
        pairs = [self._fitting(grad, var) for grad, var in given if grad is not None]
        if not pairs:
            raise InvalidArgumentError(
                f"{self._name}: no gradient for any variable", got=", ".join(v.name for _, v in given) or "no variables"
            )
        variables = [var for _, var in pairs]
        with _ops.init_scope():
            self._create_slots(variables)
        with _tf.name_scope(name or self._name) as scope:
            self._scope = scope
            self._hypers.clear()
            self._prepare()
            updates = []
            for grad, var in pairs:
                with _tf.name_scope("update_" + var.op.name.replace("/", "_")), _tf.colocate_with(var.op):
                    apply = self._apply_sparse if isinstance(grad, _tf.IndexedSlices) else self._apply_dense
                    updates.append(self._constrained(apply(grad, var), grad, var))
            if global_step is None:
                train_op = self._finish(updates, scope)
            else:
                with _tf.control_dependencies([self._finish(updates, "update")]), _tf.colocate_with(global_step.op):
                    train_op = global_step.assign_add(1, name=scope, read_value=False)
        _tf.add_to_collection(_tf.GraphKeys.TRAIN_OP, train_op)
        return train_op

    def _constrained(self, update: Any, grad: Any, var: Any) -> Any:
        """The update, and after it the variable's constraint where it has one."""
        if var.constraint is None:
            return update
        if isinstance(grad, _tf.IndexedSlices):
            raise FailedPreconditionError(
                f"{self._name}: {var.name} has a constraint, and its gradient is sparse",
                hint="a constraint needs the whole variable; leave it out, or make the gradient dense with tf.convert_to_tensor",
            )
        with _tf.control_dependencies([update]):
            return var.assign(var.constraint(var), read_value=False)

    def _fitting(self, grad: Any, var: Any) -> tuple[Any, Any]:
        if not isinstance(var, _tf.Variable):
            raise InvalidArgumentError(
                f"{self._name}: a gradient is paired with something else than a Variable", got=repr(var)
            )
        if not isinstance(grad, _tf.IndexedSlices):
            grad = _ops.convert_to_tensor(grad, var.dtype)
            if not var.shape.is_compatible_with(grad.shape):
                raise ShapeError(
                    f"{self._name}: the gradient of {var.name} has another shape",
                    op=grad.op.name,
                    site=grad.op.site,
                    expected=str(var.shape),
                    got=str(grad.shape),
                )
        elif grad.dtype is not var.dtype:
            raise DTypeError(
                f"{self._name}: the gradient of {var.name} has another dtype",
                expected=var.dtype.name,
                got=grad.dtype.name,
            )
        return grad, var

    # state

    def get_slot(self, var: _tf.Variable, name: str) -> _tf.Variable | None:
        """The Variable that keeps the state ``name`` of ``var``, or None."""
        return self._slots.get(name, {}).get(var.op)

    def get_slot_names(self) -> list[str]:
        """Names of the states this optimizer keeps, sorted."""
        return sorted(self._slots)

    def variables(self) -> list[_tf.Variable]:
        """All Variables this optimizer made in the default graph, in order of their names."""
        made = [v for slot in self._slots.values() for v in slot.values()] + list(self._non_slots.values())
        graph = _tf.get_default_graph()
        return sorted((v for v in made if v.graph is graph), key=lambda v: v.name)

    def _non_slot_variables(self) -> list[tuple[str, _tf.Variable]]:
        """Name and Variable of what this optimizer keeps once in the default graph, not for each variable."""
        graph = _tf.get_default_graph()
        return [(name, v) for (name, _), v in self._non_slots.items() if v.graph is graph]

    def _get_or_make_slot(self, var: Any, value: Any, slot_name: str, op_name: str) -> Any:
        """The slot of ``var``; made with the initial ``value``, a tensor or a function that returns one.

        It stands below the variable's own name, and that below the variable scope that holds here.
        """
        slots = self._slots.setdefault(slot_name, {})
        if var.op not in slots:
            around = _tf.get_variable_scope().name
            name = f"{around}/{var.op.name}/{op_name}" if around else f"{var.op.name}/{op_name}"
            with _tf.name_scope(None), _tf.colocate_with(var.op):
                slot = slots[var.op] = _tf.Variable(value, trainable=False, name=name, dtype=var.dtype)
            whole = var._save_slice_info
            if whole is not None and slot.shape == var.shape:  # a slot of a part is a part of a slot
                full = f"{around}/{whole.full_name}" if around else whole.full_name
                ending = slot.op.name.rpartition("/")[2]
                slot._save_slice_info = dataclasses.replace(whole, full_name=f"{full}/{ending}")
        return slots[var.op]

    def _get_or_make_slot_with_initializer(
        self, var: Any, initializer: Callable[..., Any], shape: Any, dtype: Any, slot_name: str, op_name: str
    ) -> Any:
        return self._get_or_make_slot(var, lambda: initializer(shape, dtype=dtype), slot_name, op_name)

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Any:
        """The slot of ``var``, initially zeros."""
        return self._filled_slot(var, 0, slot_name, op_name)

    def _filled_slot(self, var: Any, number: float, slot_name: str, op_name: str) -> Any:
        """The slot of ``var``, initially one number everywhere."""
        shape = var.shape
        if not shape.is_fully_defined():
            value: Any = _ops.zeros_like(var.initialized_value()) + _ops.constant(number, var.dtype)
        else:
            sizes = shape.as_list()

            def value() -> Any:
                return _tf.fill(sizes, _ops.constant(number, var.dtype))

        return self._get_or_make_slot(var, value, slot_name, op_name)

    def _create_non_slot_variable(self, initial_value: Any, name: str, colocate_with: Any, dtype: Any = None) -> Any:
        """A Variable that the optimizer keeps once per graph; named ``name`` in the name scope that holds here."""
        key = (name, colocate_with.graph)
        if key not in self._non_slots:
            with _tf.colocate_with(colocate_with.op):
                self._non_slots[key] = _tf.Variable(initial_value, trainable=False, name=name, dtype=dtype)
        return self._non_slots[key]

    def _get_non_slot_variable(self, name: str, graph: Any) -> Any:
        return self._non_slots.get((name, graph))

    # what a rule defines

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        """Make the state of ``var_list``. Optional; default: none."""

    def _prepare(self) -> None:
        """Make tensors that all updates share. Optional; default: none."""

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        """An operation (or tensor) that changes ``var`` by ``grad``, a Tensor of its shape."""
        return self._resource_apply_dense(grad, var)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        """TensorFlow's name of :meth:`_apply_dense` for variables behind handles, which all are here."""
        raise UnimplementedError(f"{type(self).__name__} does not define _apply_dense")

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        """The same for IndexedSlices. Optional; default: _apply_dense of the whole tensor."""
        return self._apply_dense(_ops.convert_to_tensor(grad), var)

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        """An operation that is done when all updates are. Optional; default: their group."""
        return _tf.group(*update_ops, name=name_scope)

    def _check_rates(self, **rates: Any) -> None:
        """Refuse a rate or decay that is no number, scalar tensor or Variable, nor a function that returns one.

        Raises:
          InvalidArgumentError: one of another type. ShapeError: a tensor or an array that is no scalar. Both name it.
        """
        for name, value in rates.items():
            if isinstance(value, _tf.Tensor | _tf.Variable):
                scalar = value.shape.rank in (None, 0)
            elif callable(value) or isinstance(value, int | float | np.number):
                continue
            elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
                scalar = value.ndim == 0
            else:
                raise InvalidArgumentError(
                    f"{self._name}: {name} is of the wrong type",
                    expected="a number, a scalar tensor, or a function that returns one",
                    got=reprlib.repr(value),
                )
            if not scalar:
                raise ShapeError(f"{self._name}: {name} must be a scalar", got=f"the shape {value.shape}")

    def _check_numbers(self, **numbers: Any) -> None:
        """Refuse an argument that must be a number while the optimizer is made, and is none.

        Raises:
          InvalidArgumentError: it names the argument.
        """
        for name, value in numbers.items():
            check_type(value, (int, float, np.number), f"{self._name}: {name}", "a number")

    def _check_not_negative(self, **numbers: Any) -> None:
        """Refuse an argument that is no number, or is below 0. Raises InvalidArgumentError, which names it."""
        self._check_numbers(**numbers)
        for name, value in numbers.items():
            if value < 0.0:
                raise InvalidArgumentError(f"{name} must not be negative", got=str(value))

    def _hyper(self, name: str, value: Any, var: Any) -> Any:
        """A rate or decay as a scalar tensor for the update of ``var``: of its dtype, float32 for narrow ones.

        ``value`` is a number, a scalar tensor or Variable, or a function that returns one of them. One tensor serves
        all variables of a dtype.
        """
        dtype = var.dtype.accumulator
        key = (name, var.graph, dtype.name)
        if key not in self._hypers:
            value = value() if callable(value) and not isinstance(value, _tf.Tensor | _tf.Variable) else value
            self._check_rates(**{name: value})
            with _tf.name_scope(self._scope):
                self._hypers[key] = _number(value, dtype, name)
        return self._hypers[key]


def _number(value: Any, dtype: dtypes.DType, name: str) -> Any:
    if isinstance(value, int | float):
        return _ops.constant(value, dtype, name=name)
    tensor = _ops.convert_to_tensor(value)
    return tensor if tensor.dtype is dtype else _ops.cast(tensor, dtype)


def _flat(variables: Any) -> Iterable[Any]:
    """Variables of nested lists, dicts and their views, in order."""
    stack = [variables]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            item = item.values()
        if isinstance(item, Iterable) and not isinstance(item, str | bytes | _tf.Variable | _ops.Tensor):
            stack.extend(reversed(list(item)))
        else:
            yield item
