"""The intra-op pool: every part once, on any number of threads, from any number of callers, and in a forked child."""

from __future__ import annotations

import os
import sys
import threading

import cffi
import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Axis, RegionInput, RegionOutput, RegionProgram, Term, dtypes
from graphdock_llvm.pool import pool_address
from graphdock_llvm.printer import shares
from graphdock_llvm.schedule import Schedule
from graphdock_llvm.target import compiled, width

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no POSIX threads here")

FFI = cffi.FFI()
#: Adds one to the counter of its part, and spends some time with it.
COUNT = """
define void @region(ptr %counters, i64 %part) {
entry:
  %at = getelementptr i64, ptr %counters, i64 %part
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %seen = load volatile i64, ptr %at
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 200
  br i1 %more, label %loop, label %end
end:
  %before = atomicrmw add ptr %at, i64 1 monotonic
  ret void
}
"""


def run(counters, parts, threads):
    call = FFI.cast("void (*)(void *, void *, int64_t, int64_t)", pool_address())
    call(FFI.cast("void *", compiled(COUNT)), counters, parts, threads)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("parts", [0, 1, 2, 7, 100])
def test_every_part_is_computed_once(parts, threads):
    counters = FFI.new("int64_t[]", parts + 1)
    for _ in range(20):
        run(counters, parts, threads)
    assert list(counters) == [20] * parts + [0]


def test_callers_at_once_get_all_their_parts():
    wrong = []

    def work():
        counters = FFI.new("int64_t[]", 16)
        for _ in range(300):
            run(counters, 16, 2)
        if list(counters) != [300] * 16:
            wrong.append(list(counters))

    callers = [threading.Thread(target=work) for _ in range(5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


#: Counts its parts by thread, the caller's and all others: those are slow, as where another process has their core.
SLOW = """
declare i64 @pthread_self()
declare i32 @usleep(i32)
define void @region(ptr %context, i64 %part) {
entry:
  %caller = load i64, ptr %context
  %me = call i64 @pthread_self()
  %mine = icmp eq i64 %me, %caller
  %at = select i1 %mine, i64 1, i64 2
  %time = select i1 %mine, i32 100, i32 100000
  %1 = call i32 @usleep(i32 %time)
  %counter = getelementptr i64, ptr %context, i64 %at
  %before = atomicrmw add ptr %counter, i64 1 monotonic
  ret void
}
"""


def test_jobs_are_computed_alone_after_one_that_others_were_late_with():
    context = FFI.new("int64_t[]", [threading.get_ident(), 0, 0])
    call = FFI.cast("void (*)(void *, void *, int64_t, int64_t)", pool_address())
    for _ in range(1000):
        call(FFI.cast("void *", compiled(SLOW)), context, 32, 2)
        if context[2]:
            break
    assert context[2] > 0, "no other thread took a part"
    others, mine = context[2], context[1]
    for _ in range(8):
        call(FFI.cast("void *", compiled(SLOW)), context, 32, 2)
    assert (context[2], context[1]) == (others, mine + 8 * 32)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own():
    counters = FFI.new("int64_t[]", 16)
    run(counters, 16, 2)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for _ in range(50):
                run(counters, 16, 2)
            code = 0 if list(counters) == [51] * 16 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def long(extents, dims, reduced):
    """tanh(x) of so many elements, and its sum over some axes."""
    f32, every = dtypes.float32, tuple(range(len(extents)))
    left = tuple(a for a in every if a not in reduced)
    terms = [Term("input", f32, (), dims, 0), Term("tanh", f32, (0,), dims)]
    outputs = [RegionOutput("y", 1, f32, extents, every)]
    if reduced:
        terms.append(Term("sum", f32, (1,), left, reduced))
        outputs.append(RegionOutput("s", 2, f32, tuple(extents[a] for a in left), left))
    axes = tuple(Axis(f"i{a}", n) for a, n in enumerate(extents))
    return RegionProgram("long", axes, (RegionInput("x", 0, f32, extents, dims),), tuple(terms), tuple(outputs))


@pytest.mark.parametrize(
    ("extents", "reduced"),
    [((1_000_003,), ()), ((700, 999), ()), ((700, 999), (1,)), ((700, 999), (0,)), ((3, 400_000), (1,))],
)
def test_large_regions_are_shared_and_give_the_same_bits_on_any_number_of_threads(call, extents, reduced):
    program = long(extents, tuple(range(len(extents))), reduced)
    assert shares(program, 1, width())
    x = np.random.default_rng(0).normal(size=extents).astype(np.float32)
    alone = call(program, [x])
    np.testing.assert_allclose(alone[0], np.tanh(x), 1e-5, 1e-6)
    if reduced:
        np.testing.assert_allclose(alone[1], np.tanh(x.astype(float)).sum(reduced), 1e-4, 1e-3)
    for threads in (2, 5):
        for got, want in zip(call(program, [x], 0, (threads, pool_address())), alone, strict=True):
            np.testing.assert_array_equal(got, want)


def test_small_regions_are_not_shared():
    assert not shares(long((100, 100), (0, 1), (1,)), 1, width())


def test_sessions_on_several_threads_share_the_pool():
    x = np.random.default_rng(0).normal(size=(600, 1000)).astype(np.float32)
    want, wrong = np.tanh(x) * x, []
    with tf.Graph().as_default():
        v = tf.Variable(x)
        y = tf.tanh(v) * v

        def work():
            with tf.Session(
                graph=y.graph, config=tf.SessionConfig(backends=("llvm", "cpu"), intra_op_threads=2)
            ) as sess:
                sess.run(v.initializer)
                assert sess.explain(y).kernels() == {"llvm.region": 1}
                for _ in range(5):
                    if not np.allclose(sess.run(y), want, 1e-4, 1e-5):
                        wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


#: So many jobs of 2 and of 64 parts in turn, as quickly as they come: counts the parts that were not computed once when a job ends.
TURNS = """
define internal void @part(ptr %counts, i64 %number) {
  %at = getelementptr i64, ptr %counts, i64 %number
  %1 = atomicrmw add ptr %at, i64 1 monotonic
  ret void
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define i64 @region(ptr %run, i64 %times, ptr %counts) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %after ]
  %wrong = phi i64 [ 0, %entry ], [ %sum, %after ]
  %odd = and i64 %i, 1
  %many = mul i64 %odd, 62
  %parts = add i64 %many, 2
  call void @llvm.memset.p0.i64(ptr %counts, i8 0, i64 512, i1 false)
  call void %run(ptr @part, ptr %counts, i64 %parts, i64 4)
  br label %look
look:
  %p = phi i64 [ 0, %loop ], [ %p.next, %look ]
  %bad = phi i64 [ %wrong, %loop ], [ %sum, %look ]
  %at = getelementptr i64, ptr %counts, i64 %p
  %count = load atomic i64, ptr %at monotonic, align 8
  %in = icmp ult i64 %p, %parts
  %want = zext i1 %in to i64
  %differs = icmp ne i64 %count, %want
  %one = zext i1 %differs to i64
  %sum = add i64 %bad, %one
  %p.next = add i64 %p, 1
  %more = icmp ult i64 %p.next, 64
  br i1 %more, label %look, label %after
after:
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, %times
  br i1 %again, label %loop, label %end
end:
  ret i64 %sum
}
"""


def test_a_thread_that_is_late_for_one_job_takes_no_part_of_the_next_before_it_is_there():
    """Jobs ended early, or never: a thread read the next job's parts under the ticket of the last one."""
    count = FFI.cast("int64_t (*)(void *, int64_t, void *)", compiled(TURNS))
    counts = FFI.new("int64_t[64]")
    assert count(FFI.cast("void *", pool_address()), 200_000, counts) == 0


def test_a_long_chain_over_few_elements_is_shared_and_has_the_same_bits():
    kind = dtypes.float32

    def parts(length):
        terms = [Term("input", kind, (), (0, 1), 0)]
        terms += [Term("add", kind, (n, 0), (0, 1)) for n in range(length)]
        axes, whole = (Axis("i", 64), Axis("j", 64)), ((64, 64), (0, 1))
        outs = (RegionOutput("y", length, kind, *whole),)
        return Schedule(RegionProgram("p", axes, (RegionInput("x", 0, kind, *whole),), tuple(terms), outs), 16).parts()

    assert parts(20) == parts(100) == 1 < parts(500) <= parts(1000)
    x = tf.placeholder(tf.float32, [64, 64])
    y = x
    for i in range(500):
        y = y * 0.999 + 0.001 if i % 2 else y - 0.0005 * x
    fed, found = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32), []
    for threads in (1, 2, 3):
        config = tf.SessionConfig(backends=("llvm", "cpu"), intra_op_threads=threads)
        with tf.Session(config=config) as session:
            assert session.explain(y).kernels().keys() == {"llvm.region"}
            found.append(session.run(y, {x: fed}))
    assert all(np.array_equal(found[0], other) for other in found[1:])
