"""Decoders: what computes one step after another from its own state, and dynamic_decode, which runs them to their end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import graphdock as _tf
from graphdock import nest
from graphdock import ops as _ops
from graphdock.errors import ShapeError
from graphdock.typing import TensorLike

from graphdock_tf1.rnn.arrays import behind, flows, joined, parted
from graphdock_tf1.rnn.cell import check_cell, full_shape
from graphdock_tf1.rnn.dynamic import swapped
from graphdock_tf1.rnn.steps import check_nesting, copied_through


class BasicDecoderOutput(NamedTuple):
    """Result of a step of a BasicDecoder: the outputs, and the samples that the helper made of them."""

    rnn_output: Any
    sample_id: Any


class Decoder(ABC):
    """Base of what dynamic_decode runs.

    One of one's own defines :attr:`batch_size`, :attr:`output_size`, :attr:`output_dtype`, :meth:`initialize` and :meth:`step`.
    """

    @property
    @abstractmethod
    def batch_size(self) -> Any:
        """The number of sequences, an integer scalar."""

    @property
    @abstractmethod
    def output_size(self) -> Any:
        """Sizes of the outputs of a step, without the batch: numbers, TensorShapes, or a structure of them."""

    @property
    @abstractmethod
    def output_dtype(self) -> Any:
        """Dtypes of the outputs, in the same structure."""

    @property
    def tracks_own_finished(self) -> bool:
        """Return whether :meth:`step` says of all sequences that have finished, and not of those that just did."""
        return False

    @abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """``(finished, inputs, state)`` to begin with."""

    @abstractmethod
    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        """``(outputs, next state, next inputs, finished)``."""

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Return what becomes of the stacked outputs and the last state. Optional; default: nothing."""
        return outputs, final_state


class BasicDecoder(Decoder):
    """A cell that reads what a helper says.

    Args:
      cell: an RNNCell.
      helper: a Helper.
      initial_state: of the structure of the cell's state.
      output_layer: a layer, such as ``tf.layers.Dense``, that the outputs go through.

    Raises:
      TypeError: no cell, or no helper.
    """

    def __init__(self, cell: Any, helper: Any, initial_state: Any, output_layer: Any = None) -> None:
        check_cell("cell", cell)
        if not hasattr(helper, "next_inputs"):
            raise TypeError(f"helper must be a Helper, received: {type(helper)}")
        if output_layer is not None and not callable(output_layer):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer)}")
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> Any:
        return self._helper.batch_size

    @property
    def output_size(self) -> BasicDecoderOutput:
        size = self._cell.output_size
        if self._output_layer is not None:
            whole = _tf.TensorShape([None]).concatenate(size if isinstance(size, _tf.TensorShape) else [size])
            size = self._output_layer.compute_output_shape(whole)[1:]
        return BasicDecoderOutput(size, self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        dtype = next(iter(nest.flatten(self._initial_state))).dtype
        size = self.output_size.rnn_output
        outputs = dtype if isinstance(size, _tf.TensorShape) else nest.map_structure(lambda _: dtype, size)
        return BasicDecoderOutput(outputs, self._helper.sample_ids_dtype)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        finished, inputs = self._helper.initialize()
        return finished, inputs, self._initial_state

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        with _tf.name_scope(name or "BasicDecoderStep"):
            outputs, state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            samples = self._helper.sample(time=time, outputs=outputs, state=state)
            finished, following, state = self._helper.next_inputs(
                time=time, outputs=outputs, state=state, sample_ids=samples
            )
        return BasicDecoderOutput(outputs, samples), state, following, finished


def dynamic_decode(
    decoder: Any,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: TensorLike | None = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Run a decoder until all sequences have finished.

    Args:
      decoder: a Decoder.
      output_time_major: the outputs are ``[time, batch, ...]``; otherwise ``[batch, time, ...]``.
      impute_finished: outputs of a sequence that has finished are zeros, and its state stays as it is.
      maximum_iterations: integer scalar: at most so many steps.
      parallel_iterations: how many steps a dataflow executor may overlap.
      swap_memory: taken for TensorFlow's sake.
      scope: variable scope; default: ``decoder``.

    Returns:
      ``(outputs, state, lengths)``: the outputs of all steps, the last state, and an int32 vector of after how many steps each
      sequence had finished.

    Raises:
      TypeError: ``decoder`` is no decoder. ShapeError: ``maximum_iterations`` is no scalar. InvalidArgumentError: what a step
      returns nests differently than what it was given.
    """
    if not hasattr(decoder, "step"):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    with _tf.variable_scope(scope, "decoder"):
        limit = None
        if maximum_iterations is not None:
            limit = _tf.cast(_tf.convert_to_tensor(maximum_iterations, name="maximum_iterations"), _tf.int32)
            if limit.shape.rank != 0:
                raise ShapeError("maximum_iterations must be a scalar", got=str(limit.shape))
        finished, inputs, state = decoder.initialize()
        carried, arrays = parted(state)
        carried = [_tf.convert_to_tensor(s) for s in carried]
        inputs = nest.pack_sequence_as(inputs, [_tf.convert_to_tensor(x) for x in nest.flatten(inputs)])
        sizes, batch_size = _sizes(decoder.output_size), decoder.batch_size
        lengths = _tf.zeros_like(finished, _tf.int32)
        count = len(carried)
        like: list[Any] = []

        def going_on(time: Any, over: Any, *_: Any) -> Any:
            on = _tf.logical_not(_tf.reduce_all(over))
            return on if limit is None else _tf.logical_and(on, time < limit)

        def body(variables: list[Any], _: list[Any]) -> tuple[list[Any], list[Any]]:
            time, over, seen, *rest = variables
            rest, lists = rest[: len(rest) - len(arrays)], rest[len(rest) - len(arrays) :]
            before = joined(state, rest[:count], behind(arrays, lists))
            given = nest.pack_sequence_as(inputs, rest[count:])
            outputs, after, following, done = decoder.step(time, given, before)
            for what, a, b in (("state", before, after), ("inputs", given, following)):
                check_nesting(f"a decoder's step returned {what} that nest differently than those before", a, b)
            done = done if decoder.tracks_own_finished else _tf.logical_or(done, over)
            seen = _tf.where(over, seen, _tf.fill(_tf.shape(seen), time + 1))
            kept, (states, written) = nest.flatten(outputs), parted(after)
            if impute_finished:
                kept = copied_through(over, [_tf.zeros_like(t) for t in kept], kept)
                states = copied_through(over, rest[:count], states)
            like.append(outputs)
            return [time + 1, done, seen, *states, *nest.flatten(following), *flows(written)], kept

        last, stacked = _ops.scan_loop(
            lambda variables, rows: _with_shapes(*body(variables, rows), variables),
            [_tf.constant(0), finished, lengths, *carried, *nest.flatten(inputs), *flows(arrays)],
            cond=going_on,
            element_shapes=lambda kept: [_known(t, s, batch_size) for t, s in zip(kept, sizes, strict=True)],
            parallel_iterations=parallel_iterations,
        )
        outputs, seen = nest.pack_sequence_as(like[0], stacked), last[2]
        final = joined(state, last[3 : 3 + count], behind(arrays, last[len(last) - len(arrays) :]))
        outputs, final = decoder.finalize(outputs, final, seen)
        if not output_time_major:
            outputs = nest.pack_sequence_as(outputs, [swapped(t) for t in nest.flatten(outputs)])
    return outputs, final, seen


def _with_shapes(following: list[Any], kept: list[Any], before: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return what a step returns, with the static shapes that its loop variables keep."""
    for new, old in zip(following, before, strict=True):
        if new.shape.is_compatible_with(old.shape):
            new.set_shape(old.shape)
    return following, kept


def _sizes(structure: Any) -> list[Any]:
    """The sizes of a structure; a TensorShape is one."""
    if isinstance(structure, _tf.TensorShape):
        return [structure]
    if isinstance(structure, list | tuple):
        return [size for item in structure for size in _sizes(item)]
    return nest.flatten(structure)


def _known(kept: Any, size: Any, batch_size: Any) -> list[Any]:
    """The dims of an output of a step, as outside of the loop."""
    _, static = full_shape(0, size)
    dims = kept.shape.as_list() if kept.shape.rank is not None else [None, *static[1:]]
    return [
        dims[0] if dims[0] is not None else batch_size,
        *(d if d is not None else s for d, s in zip(dims[1:], static[1:], strict=True)),
    ]
