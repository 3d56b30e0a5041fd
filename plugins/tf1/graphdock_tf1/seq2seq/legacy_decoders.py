"""``tf.contrib.legacy_seq2seq``: decoders over lists of steps, with and without embeddings and attention.

Arguments that several have in common:

* ``decoder_inputs``: a list of steps: tensors ``[batch, n]``, integers ``[batch]`` where there is an embedding.
* ``cell``: an RNNCell; ``initial_state``: its first state; ``scope``: the variable scope; default: the function's name.
* ``loop_function``: takes the output before and the number of the step, gives what is read in place of the input.
* ``output_projection``: ``(weights, biases)`` that make logits of outputs, for the symbol that is fed back.
* ``feed_previous``: read the likeliest symbol of the step before, in place of the input; the first input is read.
* ``update_embedding_for_previous``: with gradients through that.

Each gives ``(outputs, state)``: a list of the steps' outputs, and the last state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as _tf
from graphdock import dtypes, nest
from graphdock.errors import ShapeError
from graphdock.typing import DTypeLike

from graphdock_tf1.rnn.projections import linear

Decoded = tuple[list[Any], Any]
#: A step's output and its number -> the next step's input.
Loop = Callable[[Any, int], Any]


def rnn_decoder(
    decoder_inputs: Any, initial_state: Any, cell: Any, loop_function: Loop | None = None, scope: Any = None
) -> Decoded:
    """Run a cell over the inputs, or over what ``loop_function`` makes of its outputs."""
    with _tf.variable_scope(scope or "rnn_decoder"):
        state, outputs = initial_state, []
        for i, given in enumerate(decoder_inputs):
            x = _looped(loop_function, outputs, i, given)
            if i > 0:
                _tf.get_variable_scope().reuse_variables()
            output, state = cell(x, state)
            outputs.append(output)
    return outputs, state


def _looped(loop_function: Loop | None, outputs: list[Any], i: int, given: Any) -> Any:
    """The input of a step: the given one, or what the output before makes."""
    if loop_function is None or not outputs:
        return given
    with _tf.variable_scope("loop_function", reuse=True):
        return loop_function(outputs[-1], i)


def fed_back(embedding: Any, output_projection: Any = None, update_embedding: bool = True) -> Loop:
    """A loop function: the row of the likeliest symbol."""

    def loop(previous: Any, i: int) -> Any:
        logits = previous if output_projection is None else _tf.nn.xw_plus_b(previous, *output_projection)
        found = _tf.nn.embedding_lookup(embedding, _tf.argmax(logits, 1))
        return found if update_embedding else _tf.stop_gradient(found)

    return loop


def check_projection(output_projection: Any, num_symbols: int, dtype: Any) -> None:
    """Refuse projections that make no logits of the symbols. Raises ValueError (ShapeError)."""
    if output_projection is not None:
        for given, wanted in zip(output_projection, ([None, num_symbols], [num_symbols]), strict=True):
            _tf.convert_to_tensor(given, dtype=dtype).shape.assert_is_compatible_with(wanted)


def embedding_rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> Decoded:
    """:func:`rnn_decoder` of symbols: rows of a variable ``embedding``, ``[num_symbols, embedding_size]``."""
    with _tf.variable_scope(scope or "embedding_rnn_decoder") as entered:
        check_projection(output_projection, num_symbols, entered.dtype)
        embedding = _tf.get_variable("embedding", [num_symbols, embedding_size])
        loop = fed_back(embedding, output_projection, update_embedding_for_previous) if feed_previous else None
        rows = [_tf.nn.embedding_lookup(embedding, i) for i in decoder_inputs]
        return rnn_decoder(rows, initial_state, cell, loop_function=loop)


def attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: Loop | None = None,
    dtype: DTypeLike | None = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> Decoded:
    """A decoder that reads, beside each input, a mean of states weighted by its own state (Vinyals and others, "Grammar as a
    foreign language", 2014).

    Args:
      attention_states: ``[batch, length, size]``, the size known.
      output_size: of the outputs; default: the cell's. num_heads: how many means. dtype: of the variables; default: the scope's.
      initial_state_attention: begin with the means of ``initial_state``, else with zeros.

    Raises:
      ValueError: no inputs, no heads, or a size that is not known.
    """
    if not decoder_inputs:
        raise ValueError("Must provide at least 1 input to attention decoder.")
    if num_heads < 1:
        raise ValueError("With less than 1 heads, use a non-attention decoder.")
    sizes = attention_states.shape.as_list()
    if sizes[2] is None:
        raise ValueError(f"Shape[2] of attention_states must be known: {attention_states.shape}")
    size = sizes[2]
    output_size = cell.output_size if output_size is None else output_size
    with _tf.variable_scope(scope or "attention_decoder", dtype=dtype):
        attend = _attention(attention_states, size, num_heads)
        state, outputs = initial_state, []
        batch = _tf.shape(decoder_inputs[0])[0]
        means = [_tf.zeros(_tf.stack([batch, size]), attention_states.dtype) for _ in range(num_heads)]
        for mean in means:
            mean.set_shape([None, size])
        if initial_state_attention:
            means = attend(initial_state)
        for i, given in enumerate(decoder_inputs):
            if i > 0:
                _tf.get_variable_scope().reuse_variables()
            x = _looped(loop_function, outputs, i, given)
            depth = x.shape.as_list()[-1] if x.shape.rank == 2 else None
            if depth is None:
                raise ShapeError(f"Could not infer input size from input: {x.name}")
            output, state = cell(linear([x, *means], depth), state)
            with _tf.variable_scope(
                _tf.get_variable_scope(), reuse=True if i == 0 and initial_state_attention else None
            ):
                means = attend(state)
            with _tf.variable_scope("AttnOutputProjection"):
                outputs.append(linear([output, *means], output_size))
    return outputs, state


def _attention(states: Any, size: int, num_heads: int) -> Callable[[Any], list[Any]]:
    """A function of a cell's state: the mean of the states for each head, ``[batch, size]``."""
    length = states.shape.as_list()[1]
    length = _tf.shape(states)[1] if length is None else length
    hidden = _tf.reshape(states, [-1, length, 1, size])
    features, scales = [], []
    for head in range(num_heads):
        kernel = _tf.get_variable(f"AttnW_{head}", [1, 1, size, size])
        features.append(_tf.nn.conv2d(hidden, kernel, [1, 1, 1, 1], "SAME"))
        scales.append(_tf.get_variable(f"AttnV_{head}", [size]))

    def attend(query: Any) -> list[Any]:
        parts = nest.flatten(query)
        means = []
        for head, (feature, scale) in enumerate(zip(features, scales, strict=True)):
            with _tf.variable_scope(f"Attention_{head}"):
                y = _tf.reshape(linear([_tf.concat(parts, 1)] if len(parts) > 1 else parts, size), [-1, 1, 1, size])
                scores = _tf.reduce_sum(scale * _tf.tanh(feature + y), [2, 3])
                weights = _tf.cast(_tf.nn.softmax(_tf.cast(scores, dtypes.float32)), hidden.dtype)
                mean = _tf.reduce_sum(_tf.reshape(weights, [-1, length, 1, 1]) * hidden, [1, 2])
                means.append(_tf.reshape(mean, [-1, size]))
        return means

    return attend


def embedding_attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: DTypeLike | None = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> Decoded:
    """:func:`attention_decoder` of symbols: rows of a variable ``embedding``, ``[num_symbols, embedding_size]``."""
    output_size = cell.output_size if output_size is None else output_size
    with _tf.variable_scope(scope or "embedding_attention_decoder", dtype=dtype) as entered:
        check_projection(output_projection, num_symbols, entered.dtype)
        embedding = _tf.get_variable("embedding", [num_symbols, embedding_size])
        loop = fed_back(embedding, output_projection, update_embedding_for_previous) if feed_previous else None
        return attention_decoder(
            [_tf.nn.embedding_lookup(embedding, i) for i in decoder_inputs],
            initial_state,
            attention_states,
            cell,
            output_size=output_size,
            num_heads=num_heads,
            loop_function=loop,
            initial_state_attention=initial_state_attention,
        )
