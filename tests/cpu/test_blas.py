"""BLAS keeps to one thread while somebody is inside, and gets back what it had."""

from __future__ import annotations

import os
import signal
import sys
import threading

import graphdock as tf
import numpy as np
import pytest
import threadpoolctl
from graphdock_cpu import blas
from graphdock_cpu.blas import OneThread
from graphdock_cpu.kernels import sharing
from threadpoolctl import threadpool_info, threadpool_limits

from tests.laws.lab import interrupted


@pytest.fixture
def three():
    """BLAS may use three threads, whatever machine this is."""
    assert np.dot is not None  # NumPy's BLAS is loaded
    with threadpool_limits(3, "blas"):
        yield


def allowed():
    return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}


def test_one_thread_inside_and_as_before_outside(three):
    one = OneThread()
    assert one.holds and not one.held
    for _ in range(2):
        with one:
            assert allowed() == {1} and one.held
        assert allowed() == {3} and not one.held


def test_an_error_gives_back_too(three):
    with pytest.raises(ZeroDivisionError), OneThread():
        _ = 1 / 0
    assert allowed() == {3}


def test_it_lasts_until_the_last_thread_has_left(three):
    one, inside, leave = OneThread(), threading.Event(), threading.Event()

    def other():
        with one:
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with one:
        thread.start()
        assert inside.wait(60)
    assert allowed() == {1} and not one.held  # the other is inside
    leave.set()
    thread.join(60)
    assert allowed() == {3}


class Library:
    """One that says what it was told."""

    def __init__(self):
        self.number, self.told = 3, []

    def get(self):
        return self.number

    def set(self, number):
        self.number = number
        self.told.append(number)


@pytest.fixture
def library(monkeypatch):
    found = Library()
    monkeypatch.setattr(blas, "_libraries", lambda: [found])
    return found


def kept_from_leaving(one):
    one.__enter__()  # Ctrl-C came before the block


def test_who_was_kept_from_leaving_leaves_next_time(library):
    one = OneThread()
    kept_from_leaving(one)
    assert library.number == 1
    with one:
        assert library.number == 1
    assert library.number == 3


def inside(one, function=lambda: None):
    with one:
        return function()


def test_a_step_within_a_step_leaves_the_outer_one_inside(library):
    one = OneThread()

    def outer():
        inside(one)
        assert one.held and library.number == 1
        kept_from_leaving(one)

    inside(one, outer)
    assert not one.held and library.number == 3


def test_a_thread_that_ended_inside_is_forgotten(library):
    one = OneThread()
    thread = threading.Thread(target=kept_from_leaving, args=(one,))
    with one:
        thread.start()
        thread.join(60)
    assert library.number == 3


def test_threads_that_leave_do_not_ask_for_the_frames_of_all(library, monkeypatch):
    """CPython 3.11.7 stops for ever where the garbage collector finalizes a generator in ``sys._current_frames()`` (gh-106883)."""
    monkeypatch.setattr(sys, "_current_frames", lambda: pytest.fail("asked for the frames of all threads"))
    one, there, leave = OneThread(), threading.Event(), threading.Event()

    def other():
        with one:
            there.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    assert there.wait(60)
    inside(one)
    assert library.number == 1
    leave.set()
    thread.join(60)
    assert library.number == 3


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals are the main thread's")
@pytest.mark.parametrize("levels", [1, 2])
def test_ctrl_c_anywhere_gives_back(library, levels):
    one, at, late = OneThread(), 0, 0
    while interrupted(lambda: inside(one, (lambda: inside(one)) if levels == 2 else lambda: None), at):
        late += library.number != 3
        inside(one)
        assert library.number == 3 and not one.held, f"after an interrupt at point {at}"
        at += 1
    assert at > 20 * levels and late <= 1  # only before the first try of the last __exit__


def test_only_where_all_listen(monkeypatch):
    real = threadpoolctl.threadpool_info()
    assert OneThread().holds
    for other in (
        {"user_api": "blas", "internal_api": "mkl", "threading_layer": "intel", "filepath": "libmkl_rt.so"},
        {"user_api": "blas", "internal_api": "openblas", "threading_layer": "openmp", "filepath": "libopenblas.so"},
    ):
        monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda other=other: [*real, other])
        assert not OneThread().holds  # NumPy may be the one that calls it
    monkeypatch.setattr(threadpoolctl, "threadpool_info", list)
    assert not OneThread().holds
    with OneThread():
        pass


def test_threads_that_ask_at_once_get_the_same(monkeypatch):
    monkeypatch.setattr(blas, "_MADE", {})
    both, found = threading.Barrier(2, timeout=60), []

    def slow():
        both.wait()  # both are about to make one
        return []

    monkeypatch.setattr(blas, "_libraries", slow)
    threads = [threading.Thread(target=lambda: found.append(blas.one_thread())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found[0] is found[1] is blas.one_thread()


@pytest.mark.parametrize(
    ("shapes", "told"),
    [
        (((64, 64), (64, 64)), []),  # BLAS uses no threads
        (((65, 64), (64, 64)), [1, 3]),
        (((256, 256), (256, 256)), [1, 3]),
        (((257, 256), (256, 256)), [1, 3]),  # our own threads pay
        (((5, 80, 80), (5, 80, 80)), [1, 3]),  # BLAS gets matrix by matrix
        (((40, 64, 64), (40, 64, 64)), []),
        (((1, 120), (120, 120)), []),
        (((1, 200), (200, 200)), [1, 3]),
        (((1, 1025), (1025, 1024)), []),  # BLAS's own pay
    ],
)
@pytest.mark.parametrize("ways", [{}, {"transpose_b": True}, {"transpose_a": True, "transpose_b": True}])
@pytest.mark.parametrize("known", [True, False])
def test_products_that_blas_threads_would_not_quicken_are_computed_on_one(
    library, monkeypatch, shapes, told, ways, known
):
    monkeypatch.setattr(blas, "_MADE", {})
    turned = [
        (s[:-2] + s[:-3:-1] if w in ways else s) for s, w in zip(shapes, ("transpose_a", "transpose_b"), strict=True)
    ]
    x, y = (np.ones(shape, np.float32) for shape in turned)
    with tf.Graph().as_default():
        a, b = (tf.placeholder(tf.float32, v.shape if known else [None] * v.ndim) for v in (x, y))
        product = tf.matmul(a, b, **ways)
        with tf.Session(config=tf.SessionConfig(intra_op_threads=2)) as sess:
            assert sess.run(product, {a: x, b: y}).min() == shapes[0][-1]
    assert library.told == told


def _product(x):
    return tf.matmul(x, x, transpose_a=True)


def _sum_of_products(x):
    return _product(x) + _product(x + 1)


def _convolution(x):
    return tf.nn.conv2d(tf.reshape(x, [1, 128, 128, 8]), tf.reshape(x[:9, :64], [3, 3, 8, 8]), 1, "VALID")


@pytest.mark.parametrize("executor", ["straight_line", "dataflow"])
@pytest.mark.parametrize("build", [_product, _convolution, _sum_of_products])
def test_one_thread_within_a_kernel_holds_for_blas_too(library, monkeypatch, build, executor):
    monkeypatch.setattr(blas, "_MADE", {})
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [1024, 128])
        with tf.Session(config=tf.SessionConfig(intra_op_threads=1, executor=executor)) as sess:
            sess.run(build(x), {x: np.ones((1024, 128))})
    assert library.told[0] == 1 and library.told[-1] == 3


def test_products_within_a_step_on_one_thread_tell_nothing_more(library, monkeypatch):
    one = OneThread()
    monkeypatch.setattr(blas, "_MADE", {"one": one})
    x = np.ones((100, 100), np.float32)
    with one:
        assert sharing.dot(x, x)[0, 0] == 100
    assert library.told == [1, 3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.parametrize("forks_inside", [False, True])
def test_a_child_forgets_its_parents_threads(three, monkeypatch, forks_inside):
    one, there, leave = OneThread(), threading.Event(), threading.Event()
    monkeypatch.setattr(blas, "_MADE", {"one": one})

    def other():
        with one, one._lock:  # where the fork finds it
            there.set()
            leave.wait(60)

    def forked():
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # a child that waits for ever fails
            before = allowed()
            with one:
                pass
            os._exit(0 if before == ({1} if forks_inside else {3}) and one.held == forks_inside else 1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def run():
        thread.start()
        assert there.wait(60)
        try:
            assert forked() == 0
        finally:
            leave.set()
            thread.join(60)

    thread = threading.Thread(target=other)
    if forks_inside:
        inside(one, run)
    else:
        run()
    assert allowed() == {3} and not one.held


@pytest.mark.parametrize("had", [None, "False"])
def test_looking_for_libraries_leaves_the_environment(monkeypatch: pytest.MonkeyPatch, had: str | None) -> None:
    """threadpoolctl sets KMP_DUPLICATE_LIB_OK when it is imported, which is in the first step that multiplies."""
    monkeypatch.delitem(sys.modules, "threadpoolctl")
    monkeypatch.delenv("KMP_DUPLICATE_LIB_OK", raising=False)
    if had is not None:
        monkeypatch.setenv("KMP_DUPLICATE_LIB_OK", had)
    before = dict(os.environ)
    assert len(blas._libraries()) == len(OneThread()._libraries)
    assert dict(os.environ) == before
