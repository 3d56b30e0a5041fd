"""``tf.contrib.legacy_seq2seq``: an encoder and a decoder over lists of steps.

Arguments are those of :mod:`graphdock_tf1.seq2seq.legacy_decoders`, and ``encoder_inputs``, a list of steps. ``feed_previous`` may
be a boolean tensor: a step of the session says then whether symbols are fed back.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import graphdock as _tf
from graphdock import dtypes, nest
from graphdock.typing import DTypeLike

from graphdock_tf1.rnn.projections import EmbeddingWrapper, OutputProjectionWrapper
from graphdock_tf1.rnn.static import static_rnn
from graphdock_tf1.seq2seq import legacy_decoders as _decoders
from graphdock_tf1.seq2seq.legacy_decoders import Decoded, Loop


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    dtype: DTypeLike = dtypes.float32,
    scope: Any = None,
) -> Decoded:
    """A cell over the inputs, and another of its kind that decodes from its last state."""
    with _tf.variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return _decoders.rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    loop_function: Loop | None = None,
    dtype: DTypeLike = dtypes.float32,
    scope: Any = None,
) -> Decoded:
    """:func:`basic_rnn_seq2seq` with one set of variables for both."""
    with _tf.variable_scope("combined_tied_rnn_seq2seq"):
        inner = scope or "tied_rnn_seq2seq"
        _, state = static_rnn(cell, encoder_inputs, dtype=dtype, scope=inner)
        _tf.get_variable_scope().reuse_variables()
        return _decoders.rnn_decoder(decoder_inputs, state, cell, loop_function=loop_function, scope=inner)


def _either(feed_previous: Any, decode: Callable[[bool], Decoded], like: Any) -> Decoded:
    """Return what ``decode`` gives for a bool, or for the value that a boolean tensor has in a step."""
    if isinstance(feed_previous, bool):
        return decode(feed_previous)

    def branch(fed: bool) -> Callable[[], list[Any]]:
        def make() -> list[Any]:
            with _tf.variable_scope(_tf.get_variable_scope(), reuse=None if fed else True):
                outputs, state = decode(fed)
            return [*outputs, *nest.flatten(state)]

        return make

    found = list(_tf.cond(feed_previous, branch(True), branch(False)))
    count = len(found) - len(nest.flatten(like))
    return found[:count], nest.pack_sequence_as(like, found[count:])


def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: DTypeLike | None = None,
    scope: Any = None,
) -> Decoded:
    """Symbols to symbols: outputs are logits of ``num_decoder_symbols``, or the cell's where there is an ``output_projection``."""
    with _tf.variable_scope(scope or "embedding_rnn_seq2seq", dtype=dtype) as entered:
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        _, state = static_rnn(encoder, encoder_inputs, dtype=entered.dtype)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
        updating = isinstance(feed_previous, bool)

        def decode(fed: bool) -> Decoded:
            return _decoders.embedding_rnn_decoder(
                decoder_inputs,
                state,
                cell,
                num_decoder_symbols,
                embedding_size,
                output_projection=output_projection,
                feed_previous=fed,
                update_embedding_for_previous=updating,
            )

        return _either(feed_previous, decode, state)


def embedding_tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_symbols: int,
    embedding_size: int,
    num_decoder_symbols: int | None = None,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: DTypeLike | None = None,
    scope: Any = None,
) -> Decoded:
    """:func:`embedding_rnn_seq2seq` with one embedding and one set of variables for both."""
    with _tf.variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as entered:
        _decoders.check_projection(output_projection, num_symbols, entered.dtype)
        embedding = _tf.get_variable("embedding", [num_symbols, embedding_size])
        read, written = (
            [_tf.nn.embedding_lookup(embedding, i) for i in steps] for steps in (encoder_inputs, decoder_inputs)
        )
        like = cell.zero_state(1, entered.dtype)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols or num_symbols)
        updating = isinstance(feed_previous, bool)

        def decode(fed: bool) -> Decoded:
            loop = _decoders.fed_back(embedding, output_projection, updating) if fed else None
            return tied_rnn_seq2seq(read, written, cell, loop_function=loop, dtype=entered.dtype)

        return _either(feed_previous, decode, like)


def embedding_attention_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: DTypeLike | None = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> Decoded:
    """:func:`embedding_rnn_seq2seq` whose decoder attends to the encoder's outputs."""
    with _tf.variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as entered:
        encoder = EmbeddingWrapper(copy.deepcopy(cell), num_encoder_symbols, embedding_size)
        outputs, state = static_rnn(encoder, encoder_inputs, dtype=entered.dtype)
        attended = _tf.concat([_tf.reshape(o, [-1, 1, cell.output_size]) for o in outputs], 1)
        output_size = None
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
            output_size = num_decoder_symbols
        updating = isinstance(feed_previous, bool)

        def decode(fed: bool) -> Decoded:
            return _decoders.embedding_attention_decoder(
                decoder_inputs,
                state,
                attended,
                cell,
                num_decoder_symbols,
                embedding_size,
                num_heads=num_heads,
                output_size=output_size,
                output_projection=output_projection,
                feed_previous=fed,
                update_embedding_for_previous=updating,
                initial_state_attention=initial_state_attention,
            )

        return _either(feed_previous, decode, state)


def one2many_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs_dict: Mapping[str, Sequence[Any]],
    enc_cell: Any,
    dec_cells_dict: Mapping[str, Any],
    num_encoder_symbols: int,
    num_decoder_symbols_dict: Mapping[str, int],
    embedding_size: int,
    feed_previous: Any = False,
    dtype: DTypeLike | None = None,
    scope: Any = None,
) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """One encoder and several decoders, by name, each with its cell and its number of symbols.

    Returns:
      Name -> logits of each step, and name -> last state.
    """
    with _tf.variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as entered:
        encoder = EmbeddingWrapper(enc_cell, num_encoder_symbols, embedding_size)
        _, state = static_rnn(encoder, encoder_inputs, dtype=entered.dtype)
        updating = isinstance(feed_previous, bool)
        outputs, states = {}, {}
        for name, inputs in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[name]
            with _tf.variable_scope(f"one2many_decoder_{name}"):
                cell = OutputProjectionWrapper(dec_cells_dict[name], symbols)

                def decode(fed: bool, inputs: Any = inputs, cell: Any = cell, symbols: int = symbols) -> Decoded:
                    return _decoders.embedding_rnn_decoder(
                        inputs,
                        state,
                        cell,
                        symbols,
                        embedding_size,
                        feed_previous=fed,
                        update_embedding_for_previous=updating,
                    )

                outputs[name], states[name] = _either(feed_previous, decode, state)
        return outputs, states
