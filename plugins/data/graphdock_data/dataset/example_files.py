"""Datasets of Examples in files. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from graphdock.errors import InvalidArgumentError

from graphdock_data.dataset.csv_files import fed_in_batches
from graphdock_data.dataset.dataset import Dataset
from graphdock_data.dataset.readers import TFRecordDataset
from graphdock_data.dataset.transformations import Transformation
from graphdock_data.records.parsing import parse_example


def parse_example_dataset(features: Mapping[str, Any], num_parallel_calls: Any = 1) -> Transformation:
    """Features that ``tf.parse_example`` makes of each batch of serialized Examples."""
    calls = None if num_parallel_calls == 1 else num_parallel_calls
    return lambda dataset: dataset.map(lambda serialized: parse_example(serialized, features), calls)


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: Any,
    features: Mapping[str, Any],
    reader: Callable[..., Dataset] = TFRecordDataset,
    label_key: str | None = None,
    reader_args: Any = None,
    num_epochs: Any = None,
    shuffle: bool = True,
    shuffle_buffer_size: Any = 10000,
    shuffle_seed: Any = None,
    prefetch_buffer_size: Any = None,
    reader_num_threads: Any = None,
    parser_num_threads: Any = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Batches of Examples of files: dicts of features, or pairs of such a dict and the label.

    Args:
      file_pattern: a path, a pattern, or several. features: as of ``tf.parse_example``. label_key: the feature that is the label.
      reader: makes a dataset of a path, also called with ``reader_args``. num_epochs: how many times; default: for good.
      reader_num_threads: files that are read at once. parser_num_threads: batches that are parsed at once.
      sloppy_ordering: without effect.

    Raises:
      ValueError: there is no feature ``label_key``.
    """
    if label_key is not None and label_key not in features:
        raise InvalidArgumentError(
            "The `label_key` provided must be one of the `features` keys.",
            expected=str(sorted(features)),
            got=label_key,
        )
    patterns = file_pattern if isinstance(file_pattern, str | bytes) else np.array(list(file_pattern), object)
    files = Dataset.list_files(patterns, shuffle=shuffle, seed=shuffle_seed)
    args = list(reader_args or [])
    dataset = files.interleave(lambda path: reader(path, *args), reader_num_threads or 1)
    if dataset.output_types == (dataset._stage.types[0],) * 2:
        dataset = dataset.map(lambda _, value: value)

    def parsed(serialized: Any) -> Any:
        made = parse_example(serialized, features)
        return made if label_key is None else (made, made.pop(label_key))

    return fed_in_batches(
        dataset,
        batch_size,
        num_epochs,
        shuffle_buffer_size if shuffle else None,
        shuffle_seed,
        parsed,
        prefetch_buffer_size,
        drop_final_batch,
    )
