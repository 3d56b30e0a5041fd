"""Beam search: a decoder that follows the likeliest sequences of each batch entry side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import graphdock as _tf
from graphdock import nest
from graphdock.errors import ShapeError
from graphdock.typing import TensorLike

from graphdock_tf1.rnn.arrays import joined, parted
from graphdock_tf1.rnn.cell import check_cell
from graphdock_tf1.seq2seq.beam_scores import attention_of, masked, scores_of
from graphdock_tf1.seq2seq.decoder import Decoder
from graphdock_tf1.seq2seq.gather_tree import ancestors, gather_tree


class BeamSearchDecoderState(NamedTuple):
    """The state of a BeamSearchDecoder; of ``[batch, beam]`` each but the cell's, ``[batch, beam, ...]``.

    Attributes:
      cell_state: the cell's. ``log_probs``: of the sequences so far.
      finished: whether each has ended. ``lengths``: int64, the end counted.
      accumulated_attention_probs: ``[batch, beam, rows]``, how much each row of the memory counted so far; () without a penalty.
    """

    cell_state: Any
    log_probs: Any
    finished: Any
    lengths: Any
    accumulated_attention_probs: Any


class BeamSearchDecoderOutput(NamedTuple):
    """Outputs of a step, ``[batch, beam]`` each: scores, ids, and the beams of the step before that they continue."""

    scores: Any
    predicted_ids: Any
    parent_ids: Any


class FinalBeamSearchDecoderOutput(NamedTuple):
    """Result of dynamic_decode: whole sequences, ``[batch, time, beam]``, the best in beam 0; and the outputs of the steps."""

    predicted_ids: Any
    beam_search_decoder_output: Any


class BeamSearchDecoder(Decoder):
    """A cell that reads what it has chosen, in ``beam_width`` sequences per batch entry: the best continuations of all of them.

    Args:
      cell: an RNNCell. One with attention needs a memory, lengths and a state that went through ``tile_batch``.
      embedding: a tensor of rows, or a function of ids.
      start_tokens: int32 vector ``[batch]``: what each sequence begins with.
      end_token: int32 scalar: what finishes one.
      initial_state: of the cell, ``[batch * beam_width, ...]``.
      beam_width: how many sequences, a number.
      output_layer: a layer that the outputs go through.
      length_penalty_weight: scores are log probabilities divided by ``((5 + length) / 6) ** weight``. An end that the step
        itself chooses does not count in the length.
      coverage_penalty_weight: what rows of the memory left aside cost a finished sequence (https://arxiv.org/abs/1609.08144).
      reorder_tensor_arrays: whether arrays of steps in the cell's last state, such as an AttentionWrapper's alignment history, are
        put in the order of the sequences.

    Raises:
      TypeError: no cell, or no layer. ShapeError: ``start_tokens`` is no vector, ``end_token`` no scalar.
    """

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: TensorLike,
        end_token: TensorLike,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: Any = 0.0,
        coverage_penalty_weight: Any = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        check_cell("cell", cell)
        if output_layer is not None and not hasattr(output_layer, "compute_output_shape"):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer)}")
        self._cell, self._output_layer, self._width = cell, output_layer, int(beam_width)
        self._embed: Callable[[Any], Any] = (
            embedding if callable(embedding) else lambda ids: _tf.nn.embedding_lookup(embedding, ids)
        )
        start = _tf.cast(_tf.convert_to_tensor(start_tokens), _tf.int32)
        self._end = _tf.cast(_tf.convert_to_tensor(end_token), _tf.int32)
        if start.shape.rank != 1:
            raise ShapeError("start_tokens must be a vector", got=str(start.shape))
        if self._end.shape.rank != 0:
            raise ShapeError("end_token must be a scalar", got=str(self._end.shape))
        self._length_penalty, self._coverage_penalty = length_penalty_weight, coverage_penalty_weight
        self._reorders = reorder_tensor_arrays
        self._static_batch = start.shape.as_list()[0]
        self._batch: Any = _tf.size(start) if self._static_batch is None else self._static_batch
        self._first = self._embed(_tf.tile(start[:, None], [1, self._width]))
        self._initial = initial_state

    @property
    def batch_size(self) -> Any:
        return self._batch

    @property
    def tracks_own_finished(self) -> bool:
        """True: a step gives its beams another order."""
        return True

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        return BeamSearchDecoderOutput(*[_tf.TensorShape([self._width])] * 3)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        return BeamSearchDecoderOutput(parted(self._initial)[0][0].dtype, _tf.int32, _tf.int32)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """All beams begin alike, so that all but the first count as finished and impossible."""
        cell_state = self._each(self._split, self._initial)
        first = _tf.tile(_tf.equal(_tf.range(self._width), 0)[None], _tf.stack([self._batch, 1]))
        first.set_shape([self._static_batch, self._width])
        dtype = self.output_dtype.scores
        impossible = _tf.fill(_tf.shape(first), _tf.constant(float("-inf"), dtype))
        log_probs = _tf.where(first, _tf.zeros_like(impossible), impossible)
        log_probs.set_shape(first.shape)
        seen: Any = ()
        attention = attention_of(self._initial, self._coverage_penalty)
        if attention is not None:
            seen = self._split(attention)
        lengths = _tf.zeros_like(first, _tf.int64)
        state = BeamSearchDecoderState(cell_state, log_probs, _tf.logical_not(first), lengths, seen)
        return state.finished, self._first, state

    def step(self, time: Any, inputs: Any, state: Any, name: str | None = None) -> tuple[Any, Any, Any, Any]:
        with _tf.name_scope(name or "BeamSearchDecoderStep"):
            given = nest.map_structure(self._merged, inputs)
            outputs, cell_state = self._cell(given, self._each(self._merged, state.cell_state))
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            output, following = self._chosen(self._split(outputs), cell_state, state)
            inputs = _tf.cond(
                _tf.reduce_all(following.finished),
                lambda: _tf.identity(self._first),
                lambda: self._embed(output.predicted_ids),
            )
            inputs.set_shape(self._first.shape)
        return output, following, inputs, following.finished

    def _chosen(self, logits: Any, cell_state: Any, state: BeamSearchDecoderState) -> tuple[Any, Any]:
        """The best continuations of all beams, and the state in their order."""
        words = logits.shape.as_list()[-1]
        if words is None:
            raise ShapeError("the outputs of a beam search must know how many ids there are", got=str(logits.shape))
        over = state.finished
        total = state.log_probs[:, :, None] + masked(_tf.nn.log_softmax(logits), over, self._end)
        going = _tf.cast(_tf.logical_not(over), _tf.int64)
        longer = _tf.one_hot(self._end, words, on_value=0, off_value=1, dtype=_tf.int64) * going[:, :, None]
        seen: Any = ()
        attention = attention_of(cell_state, self._coverage_penalty)
        if attention is not None:
            now = self._split(attention)
            seen = state.accumulated_attention_probs + now * _tf.cast(going, now.dtype)[:, :, None]
        scores = scores_of(
            total, longer + state.lengths[:, :, None], self._length_penalty, over, seen, self._coverage_penalty
        )
        flat = _tf.stack([self._batch, self._width * words])
        best, at = _tf.nn.top_k(_tf.reshape(scores, flat), self._width)
        ids, parents = at % words, at // words

        def of_parents(value: Any) -> Any:
            made = _tf.batch_gather(value, parents)
            made.set_shape(value.shape)
            return made

        over, lengths = of_parents(over), of_parents(state.lengths)
        following = BeamSearchDecoderState(
            self._each(lambda t: of_parents(self._split(t)), cell_state),
            _tf.batch_gather(_tf.reshape(total, flat), at),
            _tf.logical_or(over, _tf.equal(ids, self._end)),
            lengths + _tf.cast(_tf.logical_not(over), _tf.int64),
            nest.pack_sequence_as(seen, [of_parents(s) for s in nest.flatten(seen)]),
        )
        return BeamSearchDecoderOutput(best, ids, parents), following

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Whole sequences of what the steps gave, time first, and the last state; ``sequence_lengths`` are those of the state."""
        longest = _tf.cast(_tf.reduce_max(final_state.lengths, 1), _tf.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end)
        if self._reorders:
            tensors, arrays = parted(final_state.cell_state)
            ordered = [self._ordered(array.stack(), outputs.parent_ids, final_state.lengths) for array in arrays]
            final_state = final_state._replace(cell_state=joined(final_state.cell_state, tensors, ordered))
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state

    def _ordered(self, rows: Any, parent_ids: Any, lengths: Any) -> Any:
        """Return what the cell left in each step, ``[time, batch * beam, ...]``, in the order of the sequences found.

        The cell stood in the beams of the step before, so that a sequence's row is its parent's.
        """
        beams, _ = ancestors(parent_ids, _tf.cast(_tf.reduce_max(lengths, 1), _tf.int32))
        time = _tf.shape(rows)[0]
        split = _tf.reshape(rows, _tf.concat([[time, self._batch, self._width], _tf.shape(rows)[2:]], 0))
        found = _tf.reshape(_tf.batch_gather(split, _tf.batch_gather(parent_ids, beams)), _tf.shape(rows))
        found.set_shape(rows.shape)
        return found

    # beams side by side, and as one batch

    def _each(self, function: Callable[[Any], Any], state: Any) -> Any:
        """A state of the cell, whose tensors of a row each went through a function; scalars and arrays stay."""
        tensors, arrays = parted(state)
        return joined(
            state, [t if t.shape.rank == 0 else function(t) for t in map(_tf.convert_to_tensor, tensors)], arrays
        )

    def _split(self, tensor: Any) -> Any:
        """``[batch * beam, ...]`` as ``[batch, beam, ...]``."""
        dims = self._dims(tensor)[1:]
        made = _tf.reshape(tensor, _tf.concat([[self._batch, self._width], _tf.shape(tensor)[1:]], 0))
        made.set_shape([self._static_batch, self._width, *dims])
        return made

    def _merged(self, tensor: Any) -> Any:
        """``[batch, beam, ...]`` as ``[batch * beam, ...]``."""
        dims = self._dims(tensor)[2:]
        made = _tf.reshape(tensor, _tf.concat([[self._batch * self._width], _tf.shape(tensor)[2:]], 0))
        made.set_shape([None if self._static_batch is None else self._static_batch * self._width, *dims])
        return made

    def _dims(self, tensor: Any) -> list[Any]:
        if tensor.shape.rank is None:
            raise ShapeError("a beam search must know the rank of a cell's outputs and states", got=tensor.name)
        return list(tensor.shape.as_list())
