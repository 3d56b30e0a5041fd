"""Datasets of files. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

from graphdock_data.dataset.dataset import Dataset, argument, integer
from graphdock_data.dataset.elements import flatten, map_up_to, pack
from graphdock_data.dataset.stages.files import FixedLengthRecords, Records, TextLines
from graphdock_data.dataset.stages.sql import Sql


def named_files(filenames: Any, compression_type: Any) -> dict[str, Any]:
    """The fields of a stage that reads files of strings."""
    compression = "" if compression_type is None else compression_type
    return {
        "names": argument(filenames, _tf.string),
        "compression": argument(compression, _tf.string),
        "types": (_tf.string,),
        "shapes": ((),),
        "site": _ops.call_site(),
    }


class TextLineDataset(Dataset):
    """The lines of text files, without their ends.

    Args:
      filenames: one or more. compression_type: ``"ZLIB"``, ``"GZIP"`` or none. buffer_size: without effect.
    """

    def __init__(self, filenames: Any, compression_type: Any = None, buffer_size: Any = None) -> None:
        super().__init__(TextLines(**named_files(filenames, compression_type)), 0)


class TFRecordDataset(Dataset):
    """The records of TFRecord files.

    Args:
      filenames: one or more. compression_type: ``"ZLIB"``, ``"GZIP"`` or none. buffer_size, num_parallel_reads: without effect.
    """

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None
    ) -> None:
        super().__init__(Records(**named_files(filenames, compression_type)), 0)


class FixedLengthRecordDataset(Dataset):
    """Records of one length.

    Args:
      filenames: one or more. record_bytes: of a record. header_bytes, footer_bytes: before and behind the records of a file.
      buffer_size: without effect.
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
    ) -> None:
        sizes = {
            "size": integer(record_bytes),
            "header": integer(header_bytes or 0),
            "footer": integer(footer_bytes or 0),
        }
        super().__init__(FixedLengthRecords(**named_files(filenames, None), **sizes), 0)


class SqlDataset(Dataset):
    """The rows that a query of an SQLite database gives, a tuple of scalars each.

    Args:
      driver_name: ``"sqlite"``. data_source_name: the path of the database. query: in SQL.
      output_types: a tuple of dtypes, one per column.

    Raises:
      in the step InvalidArgumentError: another driver, a query that fails, columns that do not fit. NotFoundError: no database.
    """

    def __init__(self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any) -> None:
        types = map_up_to(_tf.as_dtype, output_types, output_types)
        kinds = tuple(flatten(types))
        stage = Sql(
            driver=argument(driver_name, _tf.string),
            source=argument(data_source_name, _tf.string),
            query=argument(query, _tf.string),
            types=kinds,
            shapes=((),) * len(kinds),
            site=_ops.call_site(),
        )
        super().__init__(stage, pack(types, [0] * len(kinds)))
