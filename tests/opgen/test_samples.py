"""From samples of specs to arrays: which dtypes, which elements, the same in every process."""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from graphdock.contracts.opdef import ArgDef, OpDef, TypeVarDef
from graphdock.dtypes import ALL
from graphdock_opgen.samples import bindings, make_arrays, random_array

OP = OpDef(
    "t.Op",
    inputs=(ArgDef("x", "T"), ArgDef("i", "I")),
    types=(TypeVarDef("T"), TypeVarDef("I", default="int64")),
)


def case(sample, types=None):
    return {
        "types": types or {"T": ("float16", "float32"), "I": ("int32", "int64")},
        "args": {"x": "T", "i": "I", "v": "resource"},
        "samples": (sample,),
    }


def sample(inputs, **more):
    return {"inputs": inputs, "attrs": {}, "types": {}, "note": "", **more}


def test_each_free_type_takes_each_of_its_dtypes_once():
    given = sample({"x": {"shape": [2]}, "i": {"shape": []}})
    found = list(bindings(OP, case(given), given))
    assert found == [
        {"T": "float32", "I": "int64"},
        {"T": "float16", "I": "int64"},
        {"T": "float32", "I": "int32"},
    ]


def test_a_list_of_types_that_the_sample_gives_is_as_it_says():
    for listed, first in ((["float16", "float32"], "float16"), ([], "float32")):
        given = sample({"i": {"shape": [], "dtype": "int32"}}, attrs={"T": listed})
        assert list(bindings(OP, case(given), given)) == [{"T": first, "I": "int32"}]


@pytest.mark.parametrize(
    "given",
    [
        sample({"x": {"shape": [2]}}, types={"T": "float16"}),
        sample({"x": {"value": 1.0, "dtype": "float16"}}),
        sample({"x": {"shape": [2]}}, attrs={"T": "float16"}),
    ],
)
def test_a_type_that_the_sample_fixes_is_not_varied(given):
    assert {b["T"] for b in bindings(OP, case(given), given)} == {"float16"}


def test_values_lists_and_absent_inputs():
    given = sample({"x": ({"value": [1, 2]}, {"shape": [3]}), "i": None, "v": {"value": [[1.5]]}})
    arrays = make_arrays(case(given), given, {"T": "float16", "I": "int32"}, "seed")
    assert [a.dtype.name for a in arrays["x"]] == ["float16", "float16"] and arrays["x"][1].shape == (3,)
    assert arrays["i"] is None and arrays["v"].dtype == np.float16 and arrays["v"].tolist() == [[1.5]]


def test_a_value_is_bent_into_a_dtype_that_can_not_hold_it():
    given = sample({"x": {"value": [float("inf"), float("nan"), -1.5]}})
    arrays = make_arrays(case(given), given, {"T": "uint8"}, "seed")
    assert arrays["x"].tolist() == [100, 0, 1]


def test_texts_become_bytes():
    given = sample({"x": {"value": ["a", "ü"]}})
    assert make_arrays(case(given), given, {"T": "string"}, "s")["x"].tolist() == [b"a", "ü".encode()]


@pytest.mark.parametrize("name", sorted(n for n, d in ALL.items() if d.kind != "R"))
def test_random_elements_lie_where_they_should(name):
    dtype = ALL[name]
    array = random_array(dtype, (50,), np.random.default_rng(1), -1.5, 1.5)
    assert array.dtype == dtype.np and array.shape == (50,)
    if dtype.kind in "iuf":
        wide = array.astype(np.float64)
        assert wide.min() >= (0 if dtype.kind == "u" else -1.5) and wide.max() <= 1.5 + (name == "bfloat16") * 0.01
    assert ml_dtypes is not None


def test_the_same_seed_gives_the_same_arrays_in_every_process():
    code = (
        "import numpy as np; from graphdock.dtypes import ALL; from graphdock_opgen.samples import make_arrays;"
        "s = {'inputs': {'x': {'shape': [3]}}, 'attrs': {}, 'types': {}};"
        "print(make_arrays({'args': {'x': 'T'}, 'types': {}}, s, {'T': 'float64'}, 'seed')['x'].tolist())"
    )
    outs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**__import__("os").environ, "PYTHONHASHSEED": h},
        ).stdout
        for h in ("1", "2")
    }
    assert len(outs) == 1
