"""``tensorflow.python.ops.control_flow_ops``: dataflow's primitives, of which cond and while_loop of TensorFlow 1 are made.

Names that are not here are those of ``tf``. Functions with an underscore are TensorFlow's own, which programs call all the same.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import graphdock as tf

__all__ = [
    "MergeOutput",
    "control_trigger",
    "enter",
    "exit",
    "loop_cond",
    "merge",
    "next_iteration",
    "switch",
    "with_dependencies",
]

#: Outputs of :func:`merge`.
MergeOutput = namedtuple("MergeOutput", ["output", "value_index"])


def _op(kind: str, inputs: Sequence[Any], name: str | None, **attrs: Any) -> Any:
    return tf.get_default_graph().create_op(kind, list(inputs), attrs=attrs, name=name)


def switch(data: Any, pred: Any, dtype: Any = None, name: str | None = None) -> tuple[Any, Any]:
    """``data`` at one of two outputs: the first where ``pred`` (a bool, shape []) is False, the second where it is True.

    The other one is dead: what takes it, or follows what took it, does not run.
    """
    false, true = _op("Switch", [tf.convert_to_tensor(data, dtype), tf.convert_to_tensor(pred, tf.bool)], name).outputs
    return false, true


def merge(inputs: Sequence[Any], name: str | None = None) -> MergeOutput:
    """The first of some tensors of one dtype that comes and is not dead, and which one it is (an int32, shape []).

    Where ``inputs`` is what enters a loop, twice, ``output.op._update_input(1, next_iteration(...))`` closes the loop.

    Raises:
      InvalidArgumentError: there is no input, or one is None.
    """
    given = list(inputs)
    if not given or any(each is None for each in given):
        raise tf.errors.InvalidArgumentError(f"merge: inputs has {len(given)} tensors, of which none may be None")
    return MergeOutput(*_op("Merge", [tf.convert_to_tensor(each) for each in given], name).outputs)


def enter(
    data: Any,
    frame_name: str,
    is_constant: bool = False,
    parallel_iterations: int = 10,
    use_ref: bool = True,
    use_input_shape: bool = True,
    name: str | None = None,
) -> Any:
    """``data`` in a frame: in its first iteration, or in each where ``is_constant``.

    Args:
      parallel_iterations: so many of the frame's may run at once; what the first Enter says counts.
      use_ref: not looked at: there are no references. use_input_shape: False where the shape changes from iteration to iteration.
    """
    tensor = tf.convert_to_tensor(data)
    if not use_input_shape:
        tensor = tf.placeholder_with_default(tensor, None)
    facts = {"frame_name": frame_name, "is_constant": is_constant, "parallel_iterations": parallel_iterations}
    return _op("Enter", [tensor], name, **facts).outputs[0]


def exit(data: Any, name: str | None = None) -> Any:  # noqa: A001 - TensorFlow's name
    """``data`` outside of its frame."""
    return _op("Exit", [data], name).outputs[0]


def next_iteration(data: Any, name: str | None = None) -> Any:
    """``data`` in the next iteration, for a Merge made before, whose ``op._update_input`` takes it."""
    return _op("NextIteration", [data], name).outputs[0]


def loop_cond(pred: Any, name: str | None = None) -> Any:
    """The condition of a loop: a bool, shape []."""
    return _op("LoopCond", [pred], name).outputs[0]


def control_trigger(name: str | None = None) -> Any:
    """An operation that does nothing; what follows it runs, though what it follows is dead."""
    return _op("ControlTrigger", [], name)


_Enter, _NextIteration, _SwitchRefOrTensor = enter, next_iteration, switch


def with_dependencies(dependencies: Sequence[Any], output_tensor: Any, name: str | None = None) -> Any:
    """The tensor (or IndexedSlices), had only when the dependencies have run."""
    with (
        tf.name_scope(name, "control_dependency", [*dependencies, output_tensor]) as scope,
        tf.control_dependencies(dependencies),
    ):
        if isinstance(output_tensor, tf.IndexedSlices):
            values, indices = tf.identity(output_tensor.values), tf.identity(output_tensor.indices)
            return tf.IndexedSlices(values, indices, output_tensor.dense_shape)
        return tf.identity(output_tensor, name=scope)
