"""Datasets of CSV files. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

import collections
import csv
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock.errors import InvalidArgumentError, NotFoundError

from graphdock_data.dataset.dataset import Dataset, argument
from graphdock_data.dataset.readers import named_files
from graphdock_data.dataset.stages.files import CsvRecords, TextLines
from graphdock_data.dataset.stages.stage import Run
from graphdock_data.dataset.transformations import ignore_errors as _ignore_errors
from graphdock_data.resources.files import matching

#: Dtypes of columns, in the order in which they are tried.
_GUESSES: tuple[tuple[Any, Callable[[str], Any]], ...] = (
    (_tf.int32, lambda text: _whole(np.int32, text)),
    (_tf.int64, lambda text: _whole(np.int64, text)),
    (_tf.float32, lambda text: _finite(np.float32, text)),
    (_tf.float64, lambda text: _finite(np.float64, text)),
)


def _whole(kind: Any, text: str) -> Any:
    found = int(text)
    if not np.iinfo(kind).min <= found <= np.iinfo(kind).max:
        raise OverflowError(text)
    return kind(found)


def _finite(kind: Any, text: str) -> Any:
    with np.errstate(over="ignore"):
        found = kind(text)
    if np.isinf(found) and "inf" not in text.lower():
        raise OverflowError(text)
    return found


class CsvDataset(Dataset):
    """The records of CSV files (RFC 4180), a tuple of scalars each.

    Args:
      filenames: one or more.
      record_defaults: one per column: a dtype where a field must not be empty, or what an empty field stands for. Dtypes are
        float32, float64, int32, int64 and string.
      compression_type: ``"ZLIB"``, ``"GZIP"`` or none. buffer_size: without effect.
      header: the first line of each file is passed over. field_delim: one character between fields.
      use_quote_delim: fields may stand in double quotes, also over several lines. na_value: what else stands for an empty field.
      select_cols: numbers of the columns to take, rising; default: all.

    Raises:
      in the step InvalidArgumentError: a record of another number of fields, or a field that is no such number.
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: Any = None,
        buffer_size: Any = None,
        header: Any = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
    ) -> None:
        defaults = [_default(given) for given in record_defaults]
        header_, quoted = argument(header, _tf.bool), argument(use_quote_delim, _tf.bool)
        stage = CsvRecords(**named_files(filenames, compression_type), header=header_, quoted=quoted)

        def fields(record: Any) -> Any:
            columns = _tf.decode_csv(
                record, defaults, field_delim, use_quote_delim, na_value=na_value, select_cols=select_cols
            )
            return tuple(columns)

        made = Dataset(stage, 0).map(fields)
        super().__init__(made._stage, made._structure)


def _default(given: Any) -> Any:
    if isinstance(given, _tf.DType):
        return np.zeros(0, given.np)
    if isinstance(given, _tf.Tensor):
        return _tf.reshape(given, [-1])
    return given if isinstance(given, list | np.ndarray) else [given]


def make_csv_dataset(
    file_pattern: Any,
    batch_size: Any,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: Any = None,
    shuffle: bool = True,
    shuffle_buffer_size: Any = 10000,
    shuffle_seed: Any = None,
    prefetch_buffer_size: Any = None,
    num_parallel_reads: Any = 1,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: Any = None,
    ignore_errors: bool = False,
) -> Dataset:
    """Batches of the records of CSV files: dicts of columns, or pairs of such a dict and the column of the label.

    Args:
      file_pattern: paths, or patterns of them.
      column_names: in the order of the file; default: the first line of the first file.
      column_defaults: as ``record_defaults`` of :class:`CsvDataset`; default: guessed by the first ``num_rows_for_inference``
        records (None: by all): int32, int64, float32, float64 or string, with 0 and the empty string for empty fields.
      label_name: of the column that is the label. select_columns: names or numbers of the columns to take.
      header: the first line of each file has the names. num_epochs: how many times; default: for good.
      num_parallel_reads: files that are read at once. sloppy: without effect. ignore_errors: damaged records are passed over.

    Raises:
      ValueError: names that there are not, or twice; as many defaults as there are no columns. NotFoundError: no file matches.
    """
    patterns = [file_pattern] if isinstance(file_pattern, str | bytes) else list(file_pattern)
    paths = sorted({os.fsdecode(path) for pattern in patterns for path in matching(os.fsencode(pattern))})
    if not paths:
        raise NotFoundError(f"no file matches {', '.join(map(str, patterns))}")
    rows = _Rows(paths, field_delim, use_quote_delim, compression_type, header)
    if column_names is None:
        if not header:
            raise InvalidArgumentError("Cannot infer column names without a header line.")
        column_names = rows.names()
    names = list(column_names)
    if len(set(names)) != len(names):
        raise InvalidArgumentError("Cannot have duplicate column names.", got=str(names))
    chosen = _chosen(names, select_columns)
    taken = [names[at] for at in chosen]
    if column_defaults is None:
        column_defaults = rows.guessed(len(names), chosen, na_value, num_rows_for_inference)
    elif len(column_defaults) != len(chosen):
        raise InvalidArgumentError(
            "as many column_defaults as columns are taken",
            expected=str(len(chosen)),
            got=str(len(column_defaults)),
        )
    if label_name is not None and label_name not in taken:
        raise InvalidArgumentError("`label_name` provided must be one of the columns.", got=label_name)

    def read(path: Any) -> Dataset:
        return CsvDataset(
            path, column_defaults, compression_type, None, header, field_delim, use_quote_delim, na_value, chosen
        )

    def mapped(*columns: Any) -> Any:
        features = collections.OrderedDict(zip(taken, columns, strict=True))
        return features if label_name is None else (features, features.pop(label_name))

    files = Dataset.from_tensor_slices(np.array(paths, object))
    if shuffle:
        files = files.shuffle(len(paths), shuffle_seed)
    dataset = files.interleave(read, num_parallel_reads)
    if ignore_errors:
        dataset = dataset.apply(_ignore_errors())
    return fed_in_batches(
        dataset,
        batch_size,
        num_epochs,
        shuffle_buffer_size if shuffle else None,
        shuffle_seed,
        mapped,
        prefetch_buffer_size,
    )


def fed_in_batches(
    dataset: Dataset,
    batch_size: Any,
    num_epochs: Any,
    shuffle_buffer_size: Any,
    shuffle_seed: Any,
    mapped: Callable[..., Any],
    prefetch_buffer_size: Any,
    drop_final_batch: bool = False,
) -> Dataset:
    """Elements shuffled, where there is a size for that, repeated, in batches, mapped and made ahead."""
    if shuffle_buffer_size is not None:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    whole = drop_final_batch or num_epochs is None
    return (
        dataset.batch(batch_size, whole)
        .map(mapped)
        .prefetch(1 if prefetch_buffer_size is None else prefetch_buffer_size)
    )


def _chosen(names: list[str], select: Sequence[Any] | None) -> list[int]:
    """The numbers of the columns to take."""
    if select is None:
        return list(range(len(names)))
    kinds = {type(one) for one in select}
    if kinds == {str} and set(select) <= set(names):
        found = sorted(names.index(one) for one in select)
    elif kinds == {int} and all(0 <= one < len(names) for one in select):
        found = sorted(select)
    else:
        raise InvalidArgumentError(
            "select_columns: names or numbers of columns", expected=str(names), got=str(list(select))
        )
    if len(set(found)) != len(found):
        raise InvalidArgumentError("select_columns has a column twice", got=str(list(select)))
    return found


class _Rows:
    """The records of files, as lists of texts: for names and dtypes, when a graph is made."""

    def __init__(self, paths: list[str], delim: str, quoted: bool, compression: Any, header: bool) -> None:
        self._paths, self._delim, self._header = paths, delim, header
        self._quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
        self._compression = compression or ""

    def _of(self, path: str) -> Iterator[list[str]]:
        stage = TextLines(**named_files(path, self._compression))
        lines = stage.records(Run({}, {}), path, self._compression)
        texts = (line.decode("utf-8", "surrogateescape") + "\n" for line in lines)
        return csv.reader(texts, delimiter=self._delim, quoting=self._quoting)

    def names(self) -> list[str]:
        first = next(self._of(self._paths[0]), None)
        if first is None:
            raise InvalidArgumentError("Empty header line in file", got=self._paths[0])
        for path in self._paths[1:]:
            if next(self._of(path), None) != first:
                raise InvalidArgumentError("Files provided have different header lines", expected=str(first), got=path)
        return first

    def guessed(self, width: int, chosen: list[int], na_value: str, limit: int | None) -> list[Any]:
        """A default for each of the columns, of the first dtype that all its fields have."""
        rows = itertools.chain.from_iterable(
            itertools.islice(self._of(path), 1 if self._header else 0, None) for path in self._paths
        )
        kinds = [0] * len(chosen)
        for row in itertools.islice(rows, limit):
            if len(row) != width:
                raise InvalidArgumentError(
                    "Problem inferring types: CSV row has different number of fields than expected.",
                    expected=str(width),
                    got=repr(row),
                )
            for i, at in enumerate(chosen):
                if row[at] not in ("", na_value):
                    kinds[i] = _guess(row[at], kinds[i])
        return [np.zeros(1, _GUESSES[kind][0].np) if kind < len(_GUESSES) else [b""] for kind in kinds]


def _guess(text: str, least: int) -> int:
    """The first dtype, from one on, that a field has; behind all of them it is a string."""
    for at in range(least, len(_GUESSES)):
        try:
            _GUESSES[at][1](text)
        except (ValueError, OverflowError):
            continue
        return at
    return len(_GUESSES)
