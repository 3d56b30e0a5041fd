"""Runs of native calls: what Python hands over, and what is refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from graphdock.contracts import NativeCall
from graphdock_llvm import native
from graphdock_llvm.target import compiled

#: Adds one to a float32, and a number to another.
TEXT = """
define void @region(ptr %buffers, ptr %numbers) {
entry:
  %x = load ptr, ptr %buffers
  %second = getelementptr ptr, ptr %buffers, i64 1
  %y = load ptr, ptr %second
  %n = load i64, ptr %numbers
  %f = sitofp i64 %n to float
  %a = load float, ptr %x
  %sum = fadd float %a, %f
  store float %sum, ptr %y
  ret void
}
"""


#: The same; a number of 9 leaves a status, and nothing else.
FAILING = TEXT.replace(
    "  %f = sitofp",
    """  %third = getelementptr ptr, ptr %buffers, i64 2
  %status = load ptr, ptr %third
  %wrong = icmp eq i64 %n, 9
  br i1 %wrong, label %fail, label %go
fail:
  store i64 4, ptr %status
  ret void
go:
  %f = sitofp""",
)


@pytest.fixture(params=["method", "cffi"])
def chain(request, monkeypatch):
    if request.param == "cffi":
        monkeypatch.setattr(native, "_method", lambda: None)
    return native.chain


@pytest.mark.parametrize("brief", [True, False])
def test_calls_are_made_in_their_order_over_what_stays_and_what_is_given(chain, brief):
    address, kept = compiled(TEXT), np.zeros(1, np.float32)
    run = chain(
        [NativeCall(address, (1, kept), (5,), brief), NativeCall(address, (kept, 0), (7,), brief)],
        2,
    )
    out, first = np.zeros(1, np.float32), np.ones(1, np.float32)
    before = sys.getrefcount(None)
    for _ in range(100):
        assert run(out, first) is None
    assert (out[0], kept[0]) == (13, 6)
    assert abs(sys.getrefcount(None) - before) < 50
    alone = chain([NativeCall(address, (first, kept), (1,), brief)], 0)
    assert alone() is None and kept[0] == 2


def test_what_stays_is_kept_by_the_run(chain):
    run = chain([NativeCall(compiled(TEXT), (np.full(1, 3, np.float32), 0), (4,))], 1)
    out = np.zeros(1, np.float32)
    [np.full(1, 9, np.float32) for _ in range(100)]
    run(out)
    assert out[0] == 7


def test_arrays_of_derived_classes_are_read_and_other_objects_refused(tmp_path):
    run = native.chain([NativeCall(compiled(TEXT), (0, 1), (1,))], 2)
    out = np.memmap(tmp_path / "out", np.float32, "w+", shape=(1,))
    run(np.ones(1, np.float32), out)
    assert out[0] == 2
    for wrong in ([np.float32(1), out], [b"1234", out], [None, out], [out]):
        with pytest.raises(TypeError, match="one array for each of its buffers"):
            run(*wrong)


def test_a_run_keeps_the_method_that_it_was_made_of():
    """Two threads that make the first runs at once make two methods, of which the cache keeps one."""
    native._method.cache_clear()
    run = native.chain([NativeCall(compiled(TEXT), (0, 1), (1,))], 2)
    native._method.cache_clear()
    others = [native._MethodDef(b"other", 0, 0, b"") for _ in range(1000)]  # where the method was, were it gone
    x, y = np.float32([1.0]), np.zeros(1, np.float32)
    run(x, y)
    assert y[0] == 2.0 and len(others) == 1000


@pytest.mark.parametrize("brief", [True, False])
def test_behind_a_call_that_leaves_a_status_none_is_made(chain, brief):
    plain, failing = compiled(TEXT), compiled(FAILING)
    kept, number = np.zeros(2, np.float32), np.int64([1])
    run = chain(
        [
            NativeCall(plain, (0, kept[:1]), (1,), brief),
            NativeCall(failing, (kept[:1], kept[1:]), number, brief, status=True),
            NativeCall(plain, (kept[1:], 1), (1,), brief),
            NativeCall(failing, (1, 1), (1,), brief, status=True),
        ],
        2,
    )
    x, out = np.ones(1, np.float32), np.zeros(1, np.float32)
    assert run(x, out) is None
    assert (*kept, *out) == (2, 3, 5)
    number[:] = 9
    for value in (7, 8):
        x[:], out[:] = value, -1
        assert run(x, out) == 1
        assert (*kept, *out) == (value + 1, 3, -1)
    number[:] = 2
    assert run(x, out) is None  # the status was taken back
    assert (*kept, *out) == (9, 11, 13)
