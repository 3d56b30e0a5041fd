"""Helpers: what a decoder is given in the next step, in training and in use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import graphdock as _tf
from graphdock import nest
from graphdock.errors import InvalidArgumentError, ShapeError
from graphdock.typing import TensorLike

from graphdock_tf1.rnn.dynamic import swapped
from graphdock_tf1.rnn.steps import lengths_of


class Helper(ABC):
    """Base of what a BasicDecoder asks: how to begin, what to take of an output, and what to read next.

    One of one's own defines :attr:`batch_size`, :meth:`initialize`, :meth:`sample` and :meth:`next_inputs`.
    """

    @property
    @abstractmethod
    def batch_size(self) -> Any:
        """The number of sequences, an int32 scalar."""

    @property
    def sample_ids_shape(self) -> _tf.TensorShape:
        """The shape of one sample, without the batch."""
        return _tf.TensorShape([])

    @property
    def sample_ids_dtype(self) -> Any:
        """The dtype of samples."""
        return _tf.int32

    @abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """``(finished, inputs)``: a bool vector ``[batch]``, and the inputs of the first step."""

    @abstractmethod
    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The samples ``[batch]`` that the outputs of a step mean."""

    @abstractmethod
    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """``(finished, inputs, state)`` of the next step."""


class CustomHelper(Helper):
    """A helper of three functions, of the arguments and results of Helper's methods.

    Args:
      initialize_fn, sample_fn, next_inputs_fn: the functions.
      sample_ids_shape: the shape of one sample; default: a scalar. ``sample_ids_dtype``: its dtype; default: int32.
    """

    def __init__(
        self,
        initialize_fn: Callable[..., Any],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any],
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ) -> None:
        self._functions = initialize_fn, sample_fn, next_inputs_fn
        self._shape = _tf.TensorShape([] if sample_ids_shape is None else sample_ids_shape)
        self._dtype = _tf.as_dtype(sample_ids_dtype or _tf.int32)
        self._batch: Any = None

    @property
    def batch_size(self) -> Any:
        if self._batch is None:
            raise InvalidArgumentError("batch_size is known once initialize was called")
        return self._batch

    @property
    def sample_ids_shape(self) -> _tf.TensorShape:
        return self._shape

    @property
    def sample_ids_dtype(self) -> Any:
        return self._dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        finished, inputs = self._functions[0]()
        if self._batch is None:
            self._batch = _tf.size(finished)
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return self._functions[1](time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        found: tuple[Any, Any, Any] = self._functions[2](time=time, outputs=outputs, state=state, sample_ids=sample_ids)
        return found


class TrainingHelper(Helper):
    """Reads what is given, whatever the decoder says: teacher forcing.

    Args:
      inputs: tensor ``[batch, time, ...]``, or a structure of such; with ``time_major`` ``[time, batch, ...]``.
      sequence_length: integer vector ``[batch]``: after how many steps each sequence has finished, at most ``time``.
      time_major: the layout of the inputs.

    Raises:
      ShapeError: lengths that are no vector.
    """

    def __init__(
        self, inputs: Any, sequence_length: TensorLike, time_major: bool = False, name: str | None = None
    ) -> None:
        with _tf.name_scope(name or "TrainingHelper"):
            given = nest.map_structure(_tf.convert_to_tensor, inputs)
            self._inputs = given if time_major else nest.map_structure(swapped, given)
            self._lengths = _tf.cast(lengths_of(sequence_length), _tf.int32)
            self._zeros = nest.map_structure(lambda x: _tf.zeros_like(x[0]), self._inputs)
            self._batch = _tf.shape(self._lengths)[0]

    @property
    def inputs(self) -> Any:
        """The inputs, time first."""
        return self._inputs

    @property
    def sequence_length(self) -> Any:
        return self._lengths

    @property
    def batch_size(self) -> Any:
        return self._batch

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        with _tf.name_scope(name or "TrainingHelperInitialize"):
            finished = _tf.equal(0, self._lengths)
            return finished, self._at(0, _tf.reduce_all(finished))

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """The class of the largest output."""
        with _tf.name_scope(name or "TrainingHelperSample"):
            return _tf.argmax(outputs, axis=-1, output_type=_tf.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        with _tf.name_scope(name or "TrainingHelperNextInputs"):
            finished = (time + 1) >= self._lengths
            return finished, self._at(time + 1, _tf.reduce_all(finished)), state

    def _at(self, time: Any, over: Any) -> Any:
        """The inputs of a step, zeros once all sequences are over."""

        def read() -> list[Any]:
            return [_tf.gather(x, time) for x in nest.flatten(self._inputs)]

        zeros = nest.flatten(self._zeros)
        found = _tf.cond(over, lambda: [_tf.identity(z) for z in zeros], read)
        found = found if isinstance(found, list) else [found]
        for made, known in zip(found, zeros, strict=True):
            made.set_shape(known.shape)
        return nest.pack_sequence_as(self._inputs, found)


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Reads what is given, but now and then what the decoder itself has drawn (https://arxiv.org/abs/1506.03099).

    Args:
      inputs, sequence_length, time_major: as of TrainingHelper; ``inputs`` is one tensor.
      embedding: a tensor of rows, or a function of ids, for what is drawn.
      sampling_probability: how often each sequence reads a draw, a scalar.
      seed: of the draws. ``scheduling_seed``: of the choice between them and the inputs.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: TensorLike,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(inputs, sequence_length, time_major, name or "ScheduledEmbeddingSamplingWrapper")
        self._embed = _lookup(embedding)
        self._probability = _tf.convert_to_tensor(sampling_probability)
        if self._probability.shape.rank not in (0, 1, None):
            raise ShapeError("sampling_probability must be a scalar or a vector", got=str(self._probability.shape))
        self._seed, self._scheduling_seed = seed, scheduling_seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Draws of the outputs' distribution where a sequence reads them, and -1 elsewhere."""
        with _tf.name_scope(name or "ScheduledEmbeddingTrainingHelperSample"):
            chosen = _tf.random_uniform([self._batch], seed=self._scheduling_seed) < self._probability
            drawn = _drawn(outputs, self._seed)
            return _tf.where(chosen, drawn, _tf.fill([self._batch], -1))

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any = None, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        finished, inputs, state = super().next_inputs(time, outputs, state, sample_ids)
        embedded = self._embed(_tf.maximum(sample_ids, 0))
        mixed = _tf.where(sample_ids > -1, embedded, inputs)
        mixed.set_shape(inputs.shape)
        return finished, mixed, state


class GreedyEmbeddingHelper(Helper):
    """Reads the embedding of the class with the largest output, until that is the end.

    Args:
      embedding: a tensor of rows, or a function of ids.
      start_tokens: integer vector ``[batch]``: what each sequence begins with.
      end_token: integer scalar: what finishes one.

    Raises:
      ShapeError: ``start_tokens`` is no vector, ``end_token`` no scalar.
    """

    def __init__(self, embedding: Any, start_tokens: TensorLike, end_token: TensorLike) -> None:
        self._embed = _lookup(embedding)
        self._start = _tf.cast(_tf.convert_to_tensor(start_tokens), _tf.int32)
        self._end = _tf.cast(_tf.convert_to_tensor(end_token), _tf.int32)
        if self._start.shape.rank not in (None, 1):
            raise ShapeError("start_tokens must be a vector", got=str(self._start.shape))
        if self._end.shape.rank not in (None, 0):
            raise ShapeError("end_token must be a scalar", got=str(self._end.shape))
        self._batch = _tf.size(self._start)
        self._first = self._embed(self._start)

    @property
    def batch_size(self) -> Any:
        return self._batch

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return _tf.zeros_like(self._start, _tf.bool), self._first

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return _tf.argmax(outputs, axis=-1, output_type=_tf.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        inputs = self._embed(sample_ids)
        inputs.set_shape(self._first.shape)
        return _tf.equal(sample_ids, self._end), inputs, state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """As GreedyEmbeddingHelper, of a class that is drawn of the outputs' distribution.

    Args:
      embedding, start_tokens, end_token: as of GreedyEmbeddingHelper.
      softmax_temperature: what the outputs are divided by: the larger, the more even the distribution.
      seed: of the draws.
    """

    def __init__(
        self,
        embedding: Any,
        start_tokens: TensorLike,
        end_token: TensorLike,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(embedding, start_tokens, end_token)
        self._temperature, self._seed = softmax_temperature, seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return _drawn(outputs if self._temperature is None else outputs / self._temperature, self._seed)


def _lookup(embedding: Any) -> Callable[[Any], Any]:
    return embedding if callable(embedding) else lambda ids: _tf.nn.embedding_lookup(embedding, ids)


def _drawn(logits: Any, seed: int | None) -> Any:
    """A class for each row, drawn of the distribution of its logits."""
    return _tf.reshape(_tf.multinomial(logits, 1, seed=seed, output_dtype=_tf.int32), [-1])
