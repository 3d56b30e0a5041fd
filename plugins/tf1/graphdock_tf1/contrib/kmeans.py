"""``tf.contrib.factorization.KMeans``: the graph of a clustering, whose centers are a variable."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock.errors import InvalidArgumentError, ShapeError, UnimplementedError

SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE = "squared_euclidean", "cosine"
RANDOM_INIT, KMEANS_PLUS_PLUS_INIT, KMC2_INIT = "random", "kmeans_plus_plus", "kmc2"


class KMeans:
    """Clusters of rows.

    Args:
      inputs: ``[rows, columns]`` of known columns, or a list of such.
      num_clusters: how many. initial_clusters: ``"random"``, rows drawn with replacement, or an array of centers.
      distance_metric: ``"squared_euclidean"`` or ``"cosine"``, of rows of length 1.
      use_mini_batch: each step moves the centers that its rows belong to, by less the more rows these have had.
      mini_batch_steps_per_iteration: 1. random_seed: of the draw.
      kmeans_plus_plus_num_retries, kmc2_chain_length: without effect.

    Raises:
      UnimplementedError: another way to begin, or several steps an iteration. InvalidArgumentError: a metric that is not known.
    """

    SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE = SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE
    RANDOM_INIT, KMEANS_PLUS_PLUS_INIT, KMC2_INIT = RANDOM_INIT, KMEANS_PLUS_PLUS_INIT, KMC2_INIT

    def __init__(
        self,
        inputs: Any,
        num_clusters: int,
        initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE,
        use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1,
        random_seed: int = 0,
        kmeans_plus_plus_num_retries: int = 2,
        kmc2_chain_length: int = 200,
    ) -> None:
        if distance_metric not in (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE):
            raise InvalidArgumentError(
                f"no distance_metric {distance_metric!r}", expected="squared_euclidean or cosine"
            )
        if isinstance(initial_clusters, str) and initial_clusters != RANDOM_INIT:
            raise UnimplementedError(f"KMeans: initial_clusters={initial_clusters!r}", hint="'random', or an array")
        if mini_batch_steps_per_iteration != 1:
            raise UnimplementedError("KMeans: mini_batch_steps_per_iteration is 1 here")
        given = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        self._inputs = [_tf.convert_to_tensor(each, dtype=_tf.float32) for each in given]
        self._number, self._initial, self._seed = num_clusters, initial_clusters, random_seed
        self._cosine, self._mini_batch = distance_metric == COSINE_DISTANCE, use_mini_batch

    def _distances(self, rows: Any, centers: Any) -> Any:
        if self._cosine:
            return 1.0 - _tf.matmul(_tf.nn.l2_normalize(rows, 1), _tf.nn.l2_normalize(centers, 1), transpose_b=True)
        squares = _tf.reduce_sum(_tf.square(rows), 1, keepdims=True) + _tf.reduce_sum(_tf.square(centers), 1)
        return _tf.maximum(squares - 2.0 * _tf.matmul(rows, centers, transpose_b=True), 0.0)

    def training_graph(self) -> tuple[Any, Any, Any, Any, Any, Any]:
        """Make the graph.

        Returns:
          For each of the inputs its distances ``[rows, clusters]``; the nearest center of each row (int64); its distance; then a
          variable that says whether there are centers, an operation that makes them of its step's rows, one that moves them.

        Raises:
          ShapeError: the number of columns is not known.
        """
        columns = self._inputs[0].shape.as_list()[-1]
        if columns is None:
            raise ShapeError("KMeans needs rows of a known number of columns", got=str(self._inputs[0].shape))
        started = _tf.Variable(False, name="initialized", trainable=False)
        centers = _tf.Variable(_tf.zeros([self._number, columns]), name="clusters", trainable=False)
        rows = _tf.concat(self._inputs, 0) if len(self._inputs) > 1 else self._inputs[0]
        count = _tf.shape(rows, out_type=_tf.int64)[0]
        if isinstance(self._initial, str):
            drawn = _tf.random_uniform([self._number], maxval=count, dtype=_tf.int64, seed=self._seed)
            first = _tf.gather(rows, drawn)
        else:
            first = _tf.convert_to_tensor(self._initial, dtype=_tf.float32)
        if self._cosine:
            first = _tf.nn.l2_normalize(first, 1)
        begin = _tf.group(
            _tf.assign(centers, _tf.cond(started, lambda: _tf.identity(centers), lambda: first)), name="begin"
        )
        with _tf.control_dependencies([begin]):
            init_op = _tf.group(_tf.assign(started, True), name="init")
        distances = [self._distances(each, centers) for each in self._inputs]
        nearest = [_tf.argmin(each, 1) for each in distances]
        scores = [_tf.reduce_min(each, 1) for each in distances]
        ids = _tf.concat(nearest, 0) if len(nearest) > 1 else nearest[0]
        return distances, nearest, scores, started, init_op, self._moved(centers, rows, ids)

    def _moved(self, centers: Any, rows: Any, ids: Any) -> Any:
        """The operation that moves centers to the rows that are nearest to them."""
        if self._cosine:
            rows = _tf.nn.l2_normalize(rows, 1)
        sums = _tf.unsorted_segment_sum(rows, ids, self._number)
        counts = _tf.unsorted_segment_sum(_tf.ones_like(ids, dtype=_tf.float32), ids, self._number)
        if not self._mini_batch:
            made = sums / (counts[:, None] + 1e-6)
            return _tf.assign(centers, _tf.nn.l2_normalize(made, 1) if self._cosine else made).op
        had = _tf.Variable(_tf.zeros([self._number]), name="counts", trainable=False)
        total = had + counts
        step = (sums - counts[:, None] * centers) / _tf.maximum(total, 1.0)[:, None]
        return _tf.group(_tf.assign_add(centers, step), _tf.assign(had, total))
