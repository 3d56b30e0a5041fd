"""Element types: one object per name, NumPy's sizes and limits, and the nearest name for one that is not there."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import graphdock as tf
import ml_dtypes
import numpy as np
import pytest
from graphdock import dtypes
from graphdock.dtypes import ALL, as_dtype
from graphdock.errors import DTypeError

NUMERIC = sorted(d.name for d in ALL.values() if d.kind in "iuf")


def test_narrow_floats_accumulate_in_float32_and_the_others_in_themselves():
    wide = {d.name: d.accumulator.name for d in ALL.values() if d.is_floating}
    assert wide == {"float16": "float32", "bfloat16": "float32", "float32": "float32", "float64": "float64"}


def test_every_dtype_is_a_name_of_the_module():
    assert all(getattr(tf, name) is dtype for name, dtype in ALL.items() if name != "bool")
    assert tf.bool is dtypes.bool_


@pytest.mark.parametrize("name", [n for n, d in ALL.items() if d.kind not in "SRV"])
def test_sizes_are_numpys_and_names_lead_back(name):
    dtype = ALL[name]
    assert dtype.np.itemsize == dtype.size
    for spelled in (name, dtype, dtype.np, dtype.as_numpy_dtype):
        assert as_dtype(spelled) is dtype


@pytest.mark.parametrize("name", NUMERIC)
def test_limits_are_numpys(name):
    dtype = ALL[name]
    facts = ml_dtypes.finfo if dtype.is_floating else np.iinfo
    assert (dtype.min, dtype.max) == (facts(dtype.np).min, facts(dtype.np).max)


@pytest.mark.parametrize("name", ["bool", "complex64", "string", "resource", "variant"])
def test_what_has_no_order_has_no_limits(name):
    with pytest.raises(DTypeError, match=f"{name} has no smallest or largest value"):
        _ = ALL[name].max


def test_python_types_mean_what_tensorflow_means_by_them():
    found = {t.__name__: as_dtype(t).name for t in (bool, int, float, complex, str, bytes)}
    assert found == {
        "bool": "bool",
        "int": "int32",
        "float": "float32",
        "complex": "complex128",
        "str": "string",
        "bytes": "string",
    }


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(DTypeError, match="no dtype named 'flaot32'") as caught:
        as_dtype("flaot32")
    assert caught.value.hint == "did you mean 'float32'?"


@pytest.mark.parametrize("value", [np.dtype("datetime64[s]"), np.longdouble, object()])
def test_what_numpy_has_and_graphdock_has_not_is_refused(value):
    if value is np.longdouble and np.dtype(value) == np.float64:
        pytest.skip("long double is double here")
    with pytest.raises(DTypeError):
        as_dtype(value)


def test_a_dtype_equals_its_spellings_and_nothing_else():
    assert dtypes.float32 == "float32" and dtypes.float32 == np.float32 and dtypes.float32 == np.dtype("f4")
    assert dtypes.float32 != "float64" and dtypes.float32 != "no dtype" and dtypes.float32 is not None
    assert len({dtypes.int32, as_dtype(np.int32), as_dtype("int32")}) == 1


def test_copies_are_the_same_object():
    for dtype in ALL.values():
        assert pickle.loads(pickle.dumps(dtype)) is dtype is copy.deepcopy(dtype)


def test_listing_dtypes_does_not_import_numpy():
    code = "import sys; from graphdock.dtypes import ALL, as_dtype; as_dtype('int8'); print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_functions_that_plugins_publish_below_dtypes():
    assert tf.dtypes.cast is tf.cast and tf.dtypes.saturate_cast is tf.saturate_cast and tf.dtypes.bool is tf.bool
    assert {"as_string", "complex", "float32"} <= set(dir(tf.dtypes))
    with pytest.raises(AttributeError, match="no attribute 'casst'; did you mean 'cast'"):
        _ = tf.dtypes.casst
