"""Public functions of candidate samplers, and the losses over sampled classes.

Names, argument names and defaults are TensorFlow 1's. Jean, Cho, Memisevic and Bengio, "On using very large target vocabulary for
neural machine translation", 2015, tell of sampled softmax; Gutmann and Hyvarinen, "Noise-contrastive estimation", 2010, of NCE.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Any, Literal

import graphdock as _tf
import numpy as np
from graphdock import dtypes
from graphdock import ops as _ops
from graphdock.errors import InvalidArgumentError
from graphdock.typing import TensorLike

from graphdock_std.random.functions import op_seeds

Sampled = tuple[_ops.Tensor, _ops.Tensor, _ops.Tensor]


def _sample(op: str, true_classes: Any, seed: int | None, name: str | None, **arguments: Any) -> Any:
    classes = _ops.convert_to_tensor(true_classes, preferred_dtype=dtypes.int64)
    return _ops.apply_op(op, true_classes=_ops.cast(classes, dtypes.int64), name=name, **arguments, **op_seeds(seed))


def uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Classes drawn evenly from ``[0, range_max)``.

    Args:
      true_classes: int64 ``[batch, num_true]``, the target classes.
      num_sampled: how many classes are drawn, for the whole batch.
      unique: draw no class twice.

    Returns:
      ``(sampled_candidates, true_expected_count, sampled_expected_count)``: int64 ``[num_sampled]``, and how often each
      target class and each sampled one is expected among them, float32 ``[batch, num_true]`` and ``[num_sampled]``.

    Raises:
      InvalidArgumentError: more unique classes than there are; in the step: a target class that there is not.
    """
    numbers = {"num_true": num_true, "num_sampled": num_sampled, "unique": unique, "range_max": range_max}
    return _sample("UniformCandidateSampler", true_classes, seed, name, **numbers)


def log_uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Classes drawn by Zipf's law: for classes in the order of falling frequency. As :func:`uniform_candidate_sampler`."""
    numbers = {"num_true": num_true, "num_sampled": num_sampled, "unique": unique, "range_max": range_max}
    return _sample("LogUniformCandidateSampler", true_classes, seed, name, **numbers)


def learned_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Classes drawn as often as they were target classes so far, each counted once more. As :func:`uniform_candidate_sampler`.

    The counts are a variable, ``<name>/counts``, that is not trained: it is initialised with the others, and checkpoints hold it.
    """
    with _tf.name_scope(name or "LearnedUnigramCandidateSampler") as scope:
        initial = _tf.ones([range_max], dtypes.float64)
        counts = _tf.Variable(initial, trainable=False, name="counts")
        numbers = {"num_true": num_true, "num_sampled": num_sampled, "unique": unique, "range_max": range_max}
        weights = _ops.identity(counts.read_value())
        sampled = _sample("FixedUnigramCandidateSampler", true_classes, seed, scope, unigrams=weights, **numbers)
        with _tf.control_dependencies(list(sampled)):
            classes = _tf.reshape(_ops.convert_to_tensor(true_classes, preferred_dtype=dtypes.int64), [-1])
            seen = _tf.scatter_add(counts, classes, _ops.ones_like(_ops.cast(classes, dtypes.float64)))
        with _tf.control_dependencies([seen]):
            candidates, of_true, of_sampled = [_ops.identity(t) for t in sampled]
        return candidates, of_true, of_sampled


def fixed_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Classes drawn by weights that are given. As :func:`uniform_candidate_sampler`; besides:

    Args:
      vocab_file: a CSV file with a line per class, read now; the last field is its weight.
      distortion: the weights are raised to this power; 0 makes them even.
      num_reserved_ids: classes before the first weight, which are never drawn.
      num_shards, shard: of all classes, those that belong to this shard (``i % num_shards == shard``) are the range.
      unigrams: the weights, in place of a file.

    Raises:
      InvalidArgumentError: both or neither of vocab_file and unigrams, or not ``range_max`` weights.
    """
    if bool(vocab_file) == bool(len(unigrams)):
        raise InvalidArgumentError("fixed_unigram_candidate_sampler needs one of vocab_file and unigrams")
    given = _weights_of(vocab_file) if vocab_file else [float(w) for w in unigrams]
    weights = [0.0 for i in range(num_reserved_ids) if i % num_shards == shard]
    first = len(weights)
    weights += [w**distortion for i, w in enumerate(given, first) if i % num_shards == shard]
    if len(weights) != range_max:
        raise InvalidArgumentError(
            "range_max must be the number of classes that have a weight, with those reserved",
            expected=str(len(weights)),
            got=str(range_max),
        )
    numbers = {"num_true": num_true, "num_sampled": num_sampled, "unique": unique, "range_max": range_max}
    table = np.array(weights, np.float64)
    return _sample("FixedUnigramCandidateSampler", true_classes, seed, name, unigrams=table, **numbers)


def _weights_of(vocab_file: str) -> list[float]:
    with open(vocab_file, newline="") as lines:
        try:
            return [float(row[-1]) for row in csv.reader(lines) if row]
        except ValueError as error:
            raise InvalidArgumentError(f"the last field of a line of {vocab_file} is no weight: {error}") from None


def all_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """All classes, ``0`` to ``num_sampled - 1``, each expected once: for checking what a sampler leaves out."""
    with _tf.name_scope(name or "AllCandidateSampler"):
        classes = _ops.convert_to_tensor(true_classes, preferred_dtype=dtypes.int64)
        ones = _ops.cast(_ops.ones_like(classes), dtypes.float32)
        return _ops.constant(np.arange(num_sampled, dtype=np.int64)), ones, _tf.ones([num_sampled])


def compute_accidental_hits(
    true_classes: TensorLike,
    sampled_candidates: TensorLike,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> Sampled:
    """Pairs of a row and a candidate that is one of its target classes.

    Returns:
      ``(indices, ids, weights)``: int32 rows, int64 positions among ``sampled_candidates``, and the least float32 for each.
    """
    classes = _ops.cast(_ops.convert_to_tensor(true_classes, preferred_dtype=dtypes.int64), dtypes.int64)
    candidates = _ops.convert_to_tensor(sampled_candidates, dtypes.int64)
    op = "ComputeAccidentalHits"
    return _ops.apply_op(op, true_classes=classes, sampled_candidates=candidates, num_true=num_true, name=name)


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    remove_accidental_hits: bool,
    partition_strategy: Any,
    seed: int | None,
) -> tuple[Any, Any]:
    """Logits of the target classes and the sampled ones, ``[batch, num_true + num_sampled]``; labels that add up to 1 per row."""
    labels = _ops.cast(_ops.convert_to_tensor(labels, preferred_dtype=dtypes.int64), dtypes.int64)
    inputs = _ops.convert_to_tensor(inputs)
    flat = _tf.reshape(labels, [-1])
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
    sampled, true_count, sampled_count = [_ops.stop_gradient(t) for t in sampled_values]
    sampled = _ops.cast(sampled, dtypes.int64)
    ids = _tf.concat([flat, sampled], 0)
    rows = _tf.nn.embedding_lookup(weights, ids, partition_strategy)
    offsets = _tf.nn.embedding_lookup(biases, ids, partition_strategy)
    of_true = _tf.shape(flat)[0]
    true_rows, sampled_rows = rows[:of_true], rows[of_true:]
    width = _tf.shape(true_rows)[1]
    per_class = _tf.reshape(true_rows, _tf.stack([-1, num_true, width]))
    true_logits = _tf.reduce_sum(_tf.expand_dims(inputs, 1) * per_class, 2) + _tf.reshape(
        offsets[:of_true], [-1, num_true]
    )
    sampled_logits = _tf.matmul(inputs, sampled_rows, transpose_b=True) + offsets[of_true:]
    if remove_accidental_hits:
        hit = _tf.reduce_any(_tf.equal(_tf.expand_dims(labels, 2), sampled), 1)
        lowest = _ops.constant(inputs.dtype.min, inputs.dtype)
        sampled_logits = sampled_logits + _ops.cast(hit, inputs.dtype) * lowest
    true_logits = true_logits - _ops.cast(_tf.log(true_count), inputs.dtype)
    sampled_logits = sampled_logits - _ops.cast(_tf.log(sampled_count), inputs.dtype)
    out_labels = _tf.concat([_ops.ones_like(true_logits) / num_true, _ops.zeros_like(sampled_logits)], 1)
    return _tf.concat([true_logits, sampled_logits], 1), out_labels


def sampled_softmax_loss(
    weights: Any,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: Literal["mod", "div"] = "mod",
    name: str | None = "sampled_softmax_loss",
    seed: int | None = None,
) -> _ops.Tensor:
    """Cross-entropy over the target classes and some that are drawn: for training where there are very many classes.

    Args:
      weights: ``[num_classes, dim]``, or a list of its shards.
      biases: ``[num_classes]``, likewise.
      labels: integers, ``[batch, num_true]``.
      inputs: ``[batch, dim]``.
      num_sampled: how many classes are drawn per batch.
      sampled_values: what a candidate sampler returned; default: that of :func:`log_uniform_candidate_sampler`.
      remove_accidental_hits: leave out drawn classes that are a row's target.
      partition_strategy: see ``tf.nn.embedding_lookup``.

    Returns:
      One number per row.
    """
    with _tf.name_scope(name or "sampled_softmax_loss"):
        logits, targets = _sampled_logits(
            weights,
            biases,
            labels,
            inputs,
            num_sampled,
            num_classes,
            num_true,
            sampled_values,
            remove_accidental_hits,
            partition_strategy,
            seed,
        )
        return _tf.nn.softmax_cross_entropy_with_logits_v2(labels=_ops.stop_gradient(targets), logits=logits)


def nce_loss(
    weights: Any,
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: Literal["mod", "div"] = "mod",
    name: str | None = "nce_loss",
) -> _ops.Tensor:
    """Noise-contrastive estimation: tells target classes from drawn ones. Arguments as of :func:`sampled_softmax_loss`."""
    with _tf.name_scope(name or "nce_loss"):
        logits, targets = _sampled_logits(
            weights,
            biases,
            labels,
            inputs,
            num_sampled,
            num_classes,
            num_true,
            sampled_values,
            remove_accidental_hits,
            partition_strategy,
            None,
        )
        losses = _tf.nn.sigmoid_cross_entropy_with_logits(labels=targets, logits=logits)
        return _tf.reduce_sum(losses, 1)
