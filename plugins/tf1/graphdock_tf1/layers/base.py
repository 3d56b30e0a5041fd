"""Layer: the base of all layers and recurrent cells. Names of variables, scopes and collections are TensorFlow 1's."""

from __future__ import annotations

import copy
import inspect
import math
import re
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypedDict

import graphdock as _tf
from graphdock import dtypes, nest
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError, UnimplementedError
from graphdock.typing import DTypeLike, ShapeLike
from graphdock_std.grad_support import is_tensor

from graphdock_tf1.layers.dependence import depends
from graphdock_tf1.layers.input_spec import check_inputs

#: Graph -> how many layers of a class were named after it.
_numbers: weakref.WeakKeyDictionary[_tf.Graph, Counter[str]] = weakref.WeakKeyDictionary()


#: Attributes that a deep copy of a layer has in common with it, as it has tensors and variables.
_SHARED = frozenset({"_scope", "_current_scope", "_losses", "_updates", "_calling", "_called"})


def snake_case(kind: str) -> str:
    """Return what layers of a class are called, by its name: ``conv2d_transpose`` of ``Conv2DTranspose``."""
    snake = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", kind)
    snake = re.sub(r"([a-z])([A-Z])", r"\1_\2", snake).lower()
    return f"private{snake}" if snake.startswith("_") else snake


class LayerKeywords(TypedDict, total=False):
    """Keywords that the class of a layer hands on to :class:`Layer`, which see."""

    dtype: DTypeLike | None
    _scope: Any
    _reuse: Any


class Layer:
    """Base of all layers: something that makes its variables at its first call, and uses them again in later ones.

    A layer of one's own defines :meth:`build`, which makes variables, and :meth:`call`, which uses them::

        class Scale(tf.layers.Layer):
            def build(self, input_shape):
                self.gain = self.add_weight("gain", [int(input_shape[-1])], initializer=tf.ones_initializer())
                self.built = True

            def call(self, inputs):
                return inputs * self.gain

    Variables stand below a variable scope: that of ``_scope``, else one of the layer's name, ``dense``, ``dense_1`` for the
    second. Layers are made and called while a graph is built, from one thread.

    Args:
      trainable: whether its variables join ``GraphKeys.TRAINABLE_VARIABLES``.
      name: its name; default: the class's in snake case, and a number.
      dtype: of its variables; default: that of the first input.
      activity_regularizer: function of an output; its result, divided by the batch's size, is a loss of the layer.
      _scope: name of its variable scope, or a VariableScope.
      _reuse: True: its variables must exist; ``tf.AUTO_REUSE``: they are made where they do not.

    Attributes:
      built: whether its variables are made; ``build`` sets it.
      trainable: as the argument; of a layer that is not, all variables are among ``non_trainable_variables``.
      input_spec: an InputSpec (or one for each input) that inputs are held to.
    """

    def __init__(
        self,
        trainable: bool = True,
        name: Any = None,
        dtype: DTypeLike | None = None,
        *,
        activity_regularizer: Callable[[Any], Any] | None = None,
        _scope: Any = None,
        _reuse: Any = None,
    ) -> None:
        self.built = False
        self.trainable = trainable
        self.input_spec: Any = None
        self.activity_regularizer = activity_regularizer
        self._reuse = _reuse
        self._dtype = None if dtype is None else _tf.as_dtype(dtype)
        self._trainable_weights: list[_tf.Variable] = []
        self._non_trainable_weights: list[_tf.Variable] = []
        #: Losses and updates, each with whether it depends on the inputs of a call.
        self._losses: list[tuple[Any, bool]] = []
        self._updates: list[tuple[Any, bool]] = []
        #: Inputs and outputs of the first call.
        self._called: tuple[Any, Any] | None = None
        self._calling: Any = None
        self._set_name(name)
        self._scope: Any = None
        self._current_scope: Any = None
        if _scope:
            with _tf.variable_scope(_scope) as captured:
                self._scope = captured

    def _set_name(self, name: Any) -> None:
        snake = self._base_name = snake_case(type(self).__name__)
        if isinstance(name, str) and name:
            self._name = self._base_name = name
            return
        if isinstance(name, _tf.VariableScope):
            self._base_name = name.name
        with _ops.init_scope():
            numbers = _numbers.setdefault(_tf.get_default_graph(), Counter())
        numbers[snake] += 1
        self._name = f"{snake}_{numbers[snake]}"

    # -- facts ------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._name

    @property
    def dtype(self) -> Any:
        """Dtype of its variables; None before the first call, where none was given."""
        return self._dtype

    @property
    def scope_name(self) -> str:
        """Name of its variable scope.

        Raises:
          InvalidArgumentError: it has none before the first call.
        """
        if self._scope is None:
            raise InvalidArgumentError(
                f"the layer {self._name!r} has no variable scope yet", hint="its first call opens it: call the layer"
            )
        name: str = self._scope.name
        return name

    @property
    def trainable_weights(self) -> list[_tf.Variable]:
        """Variables that optimizers change, in order of creation; none of a layer that is not trainable."""
        return list(self._trainable_weights) if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[_tf.Variable]:
        """The other variables, in order of creation."""
        return list(
            self._non_trainable_weights if self.trainable else self._trainable_weights + self._non_trainable_weights
        )

    @property
    def weights(self) -> list[_tf.Variable]:
        """All variables, the trainable ones first."""
        return self.trainable_weights + self.non_trainable_weights

    @property
    def variables(self) -> list[_tf.Variable]:
        """As :attr:`weights`."""
        return self.weights

    @property
    def trainable_variables(self) -> list[_tf.Variable]:
        """As :attr:`trainable_weights`."""
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[_tf.Variable]:
        """As :attr:`non_trainable_weights`."""
        return self.non_trainable_weights

    @property
    def losses(self) -> list[Any]:
        """Losses that regularizers and :meth:`add_loss` gave it, in order."""
        return [loss for loss, _ in self._losses]

    @property
    def updates(self) -> list[Any]:
        """Operations that a training step should run; none of a layer that is not trainable."""
        return [update for update, _ in self._updates] if self.trainable else []

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """Losses that depend on ``inputs``; of None those that depend on no call, such as weights'."""
        return self._of_inputs(self._losses, inputs)

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """Updates that depend on ``inputs``; of None those that depend on no call."""
        return self._of_inputs(self._updates if self.trainable else [], inputs)

    @staticmethod
    def _of_inputs(kept: list[tuple[Any, bool]], inputs: Any) -> list[Any]:
        if inputs is None:
            return [made for made, of_call in kept if not of_call]
        return [made for made, of_call in kept if of_call and depends(made, inputs)]

    def count_params(self) -> int:
        """Return how many numbers its variables hold.

        Raises:
          InvalidArgumentError: it is not built yet.
        """
        if not self.built:
            raise InvalidArgumentError(
                f"the layer {self._name!r} has no parameters to count yet", hint="call it, or build(input_shape)"
            )
        return sum(math.prod(v.shape.as_list()) for v in self.weights)

    @property
    def input(self) -> Any:
        """Return what it was called with; of several calls the first one's."""
        return self._call_of("input")[0]

    @property
    def output(self) -> Any:
        """Return what it returned; of several calls the first one."""
        return self._call_of("output")[1]

    @property
    def input_shape(self) -> Any:
        """The shape of :attr:`input`, or a structure of shapes."""
        return nest.map_structure(lambda x: x.shape, self._call_of("input shape")[0])

    @property
    def output_shape(self) -> Any:
        """The shape of :attr:`output`, or a structure of shapes."""
        return nest.map_structure(lambda x: x.shape, self._call_of("output shape")[1])

    def _call_of(self, what: str) -> tuple[Any, Any]:
        if self._called is None:
            raise AttributeError(f"the layer {self._name!r} was never called: it has no {what}")
        return self._called

    def compute_output_shape(self, input_shape: Any) -> _tf.TensorShape:
        """The shape of its output for inputs of that shape. Optional.

        Raises:
          UnimplementedError: the layer does not say.
        """
        raise UnimplementedError(f"{type(self).__name__} does not define compute_output_shape")

    # -- what build and call use ------------------------------------------------------------------------------------

    def add_weight(
        self,
        name: str,
        shape: ShapeLike,
        dtype: DTypeLike | None = None,
        initializer: Any = None,
        regularizer: Callable[[Any], Any] | None = None,
        trainable: bool | None = None,
        constraint: Callable[[Any], Any] | None = None,
        use_resource: bool | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        partitioner: Callable[..., Any] | None = None,
    ) -> Any:
        """A variable of the layer: ``tf.get_variable`` in its scope, which shares it from the second call on.

        Args:
          name: below the scope's name.
          shape: its shape.
          dtype: default: the layer's, else float32.
          initializer: default: the scope's, else Glorot's uniform one.
          regularizer: function of the variable; its result is a loss of the layer, once per variable.
          trainable: False: optimizers leave it; also where the layer itself is not trainable.
          constraint, partitioner: as of ``tf.get_variable``.
          use_resource, synchronization, aggregation: taken for TensorFlow's sake.

        Raises:
          What ``tf.get_variable`` raises.
        """
        self._set_scope(None)
        wanted = (trainable is None or trainable) and self.trainable
        before = len(_tf.get_collection_ref(_tf.GraphKeys.GLOBAL_VARIABLES))
        with _tf.variable_scope(
            self._scope, reuse=True if self.built else self._reuse, auxiliary_name_scope=False
        ) as scope:
            self._current_scope = scope
            variable = _tf.get_variable(
                name,
                shape,
                dtype=_tf.as_dtype(dtype or self._dtype or dtypes.float32),
                initializer=initializer,
                trainable=wanted,
                constraint=constraint,
                partitioner=partitioner,
                use_resource=use_resource,
            )
            parts = list(variable) if isinstance(variable, _tf.PartitionedVariable) else [variable]
            new = _tf.get_collection_ref(_tf.GraphKeys.GLOBAL_VARIABLES)[before:]
            if regularizer is not None and all(any(part is v for v in new) for part in parts):
                for part in parts:
                    self._regularize(name, part, regularizer)
        for part in parts:
            if not isinstance(part, _tf.Variable):  # what a getter of the program's made of one
                continue
            kept = self._trainable_weights if wanted and part.trainable else self._non_trainable_weights
            if not any(part is v for v in kept):
                kept.append(part)
        return variable

    def add_variable(self, *args: Any, **keywords: Any) -> Any:
        """As :meth:`add_weight`."""
        return self.add_weight(*args, **keywords)

    def _regularize(self, name: str, variable: Any, regularizer: Callable[[Any], Any]) -> None:
        """Add the loss of a variable, outside of bodies of loops and conds."""
        with _ops.init_scope(), _tf.name_scope(self._name_scope()), _tf.name_scope(f"{name}/Regularizer"):
            self.add_loss(regularizer(variable))

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Add to :attr:`losses`, and to ``GraphKeys.REGULARIZATION_LOSSES``.

        Args:
          losses: a scalar tensor, a function that returns one, or a list of either; None is left out.
          inputs: what they depend on; None where they depend on no call.
        """
        for given in nest.flatten(losses):
            loss = given() if callable(given) and not is_tensor(given) else given
            if loss is not None:
                self._losses.append((loss, inputs is not None))
                add_once(_tf.GraphKeys.REGULARIZATION_LOSSES, [loss])

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Add to :attr:`updates`; a call puts them into ``GraphKeys.UPDATE_OPS``.

        Args:
          updates: an operation, a tensor for its operation, or a list of them.
          inputs: what they depend on; default: found out, where it is called within ``call``.
        """
        relevant = self._calling if inputs is None else inputs
        for update in nest.flatten(updates):
            made = update if isinstance(update, _ops.Operation) else update.op
            self._updates.append((made, relevant is not None and (inputs is not None or depends(made, relevant))))

    # -- calling ----------------------------------------------------------------------------------------------------

    def build(self, input_shape: Any) -> None:
        """Make the variables, for inputs of that shape (or structure of shapes). Optional; default: none."""
        self.built = True

    def call(self, inputs: Any, *args: Any, **keywords: Any) -> Any:
        """The output for ``inputs``. Optional; default: the inputs."""
        return inputs

    def apply(self, inputs: Any, *args: Any, **keywords: Any) -> Any:
        """Call it."""
        return self(inputs, *args, **keywords)

    def __call__(self, inputs: Any, *args: Any, scope: Any = None, **keywords: Any) -> Any:
        """Make the variables at the first call, then compute :meth:`call` within the layer's scopes.

        Args:
          inputs: a tensor, an array, or a structure of them; other arguments are handed on to ``call``.
          scope: variable scope of the first call, where the layer has none yet.

        Returns:
          What ``call`` returns.

        Raises:
          ShapeError, DTypeError: the inputs are not what :attr:`input_spec` wants.
        """
        self._set_scope(scope)
        reuse = True if self.built else self._reuse
        with _tf.variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as entered:
            self._current_scope = entered
            if "scope" in inspect.signature(self.call).parameters:
                keywords["scope"] = entered
            with _tf.name_scope(self._name_scope()):
                inputs = _tensors(inputs)
                check_inputs(self.input_spec, inputs, self._name)
                around, self._calling = self._calling, inputs
                try:
                    self._maybe_build(inputs)
                    outputs = self.call(inputs, *args, **keywords)
                finally:
                    self._calling = around
                if outputs is None:
                    raise InvalidArgumentError(f"{type(self).__name__}.call returned None", expected="a tensor")
                if self.activity_regularizer is not None:
                    self._regularize_activity(inputs, outputs)
        add_once(_tf.GraphKeys.UPDATE_OPS, self.updates)
        self._called = self._called or (inputs, outputs)
        return outputs

    def _maybe_build(self, inputs: Any) -> None:
        if self.built:
            return
        first = next(iter(nest.flatten(inputs)), None)
        if self._dtype is None and is_tensor(first):
            self._dtype = first.dtype
        self.build(nest.map_structure(lambda x: x.shape if is_tensor(x) else None, inputs))
        self.built = True

    def _regularize_activity(self, inputs: Any, outputs: Any) -> None:
        with _tf.name_scope("ActivityRegularizer"):
            for output in nest.flatten(outputs):
                loss = self.activity_regularizer(output)  # type: ignore[misc]
                self.add_loss(loss / _tf.cast(_tf.shape(output)[0], loss.dtype), inputs=inputs)

    def _name_scope(self) -> str:
        """The name scope that calls enter again."""
        name: str = self._current_scope.original_name_scope
        return name

    def _set_scope(self, scope: Any) -> None:
        if self._scope is not None:
            return
        if self._reuse:
            opened = _tf.variable_scope(self._base_name if scope is None else scope)
        else:
            opened = _tf.variable_scope(scope, default_name=self._base_name)
        with opened as captured:
            self._scope = captured

    def __deepcopy__(self, memo: dict[int, Any]) -> Layer:
        """A layer with attributes of its own, and the same scope, tensors and variables."""
        made: Layer = object.__new__(type(self))
        memo[id(self)] = made
        for name, value in vars(self).items():
            if name in _SHARED or all(is_tensor(v) or isinstance(v, _ops.Operation) for v in nest.flatten(value)):
                vars(made)[name] = copy.copy(value) if isinstance(value, list | dict) else value
            else:
                vars(made)[name] = copy.deepcopy(value, memo)
        return made

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name!r}>"


def add_once(key: str, items: Iterable[Any]) -> None:
    """Add to a collection what is not in it yet."""
    held = _tf.get_collection_ref(key)
    known = {id(item) for item in held}
    held.extend(item for item in items if id(item) not in known)


def _tensors(inputs: Any) -> Any:
    """Arrays and numbers as tensors; lists of numbers alone are one tensor."""
    given = nest.flatten(inputs)
    if isinstance(inputs, list | tuple) and given and not any(map(is_tensor, given)):
        return _ops.convert_to_tensor(inputs)
    return nest.map_structure(lambda x: x if x is None or is_tensor(x) else _ops.convert_to_tensor(x), inputs)
