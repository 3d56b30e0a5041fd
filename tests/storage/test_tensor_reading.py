"""Tensors of messages; what lies about its size stands in tests/tensorflow/graphs/test_values.py and tests/laws."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.errors import DataLossError
from graphdock.messages import make
from graphdock_storage.tensor_reading import array_of, sole


def test_the_last_element_stands_for_the_rest():
    proto = make("TensorProto", dtype=3, tensor_shape={"dim": [{"size": 4}]}, int_val=[1, 2])
    np.testing.assert_array_equal(array_of(proto, "it"), [1, 2, 2, 2])
    assert sole(proto, "it") is None
    with pytest.raises(DataLossError, match="lies"):
        array_of(make("TensorProto", dtype=3, tensor_shape={"dim": [{"size": 1}]}, int_val=[1, 2]), "it")
