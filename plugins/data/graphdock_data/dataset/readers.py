"""Datasets of files. Names, arguments and defaults are TensorFlow 1's."""

from __future__ import annotations

from typing import Any

import graphdock as _tf
from graphdock import ops as _ops

from graphdock_data.dataset.dataset import Dataset, argument, integer
from graphdock_data.dataset.stages.files import FixedLengthRecords, Records, TextLines


def _named(filenames: Any, compression_type: Any) -> dict[str, Any]:
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
        super().__init__(TextLines(**_named(filenames, compression_type)), 0)


class TFRecordDataset(Dataset):
    """The records of TFRecord files.

    Args:
      filenames: one or more. compression_type: ``"ZLIB"``, ``"GZIP"`` or none. buffer_size, num_parallel_reads: without effect.
    """

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None
    ) -> None:
        super().__init__(Records(**_named(filenames, compression_type)), 0)


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
        super().__init__(FixedLengthRecords(**_named(filenames, None), **sizes), 0)
