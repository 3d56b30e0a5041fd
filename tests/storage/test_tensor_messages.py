"""Tensors and shapes as messages, by bytes of TensorFlow's ``tf.make_tensor_proto``."""

from __future__ import annotations

import numpy as np
from graphdock.dtypes import ALL, as_dtype, string
from graphdock_storage.tensor_messages import number_of, shape_proto, tensor_proto
from graphdock_tensorflow.checkpoints.names import dtype_of


def test_tensors_of_tensorflow():
    made = tensor_proto(np.array([[1.0, 2.0]], np.float32), as_dtype("float32"))
    assert made.SerializeToString() == b'\x08\x01\x12\x08\x12\x02\x08\x01\x12\x02\x08\x02"\x08\0\0\x80?\0\0\0@'
    words = tensor_proto(np.array([b"a", b"b"], object), string)
    assert words.SerializeToString() == b"\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x01b"
    scalar = tensor_proto(np.array(3, ">i4"), as_dtype("int32"))
    assert scalar.tensor_content == b"\3\0\0\0" and scalar.HasField("tensor_shape")


def test_shapes():
    assert shape_proto(None).unknown_rank and [d.size for d in shape_proto((2, None)).dim] == [2, -1]
    assert shape_proto(()).SerializeToString() == b""


def test_every_dtype_has_a_number():
    for name, dtype in ALL.items():
        if name not in ("resource", "variant"):
            assert dtype_of(number_of(dtype)) is dtype
    assert number_of(ALL["resource"]) == 20 and number_of(ALL["variant"]) == 21
