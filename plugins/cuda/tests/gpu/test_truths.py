"""On a real GPU: what an emulator can't know. ``pytest -m gpu``; ``scripts/gpu_check.sh`` runs each part and prints one table.

Parts are named by ``-k``: driver, threads, overlap, capture, shared, large, lost, memory, epilogues, leaks, bitwise.
"""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import dtypes
from graphdock.plugin.host import Host
from graphdock_cuda.compiled import source
from graphdock_cuda.driver.api import Gemm
from graphdock_cuda.launch import Launch, i64, u64
from graphdock_cuda.testing.blas import REFUSED

pytestmark = [pytest.mark.gpu, pytest.mark.slow, pytest.mark.plain]

SPIN = source(
    name="spin",
    code="GD_KERNEL(spin)(float* x, i64 n) { float y = *x; for (i64 i = 0; i < n; ++i) y = y * 0.5f + 1.0f; *x = y; }",
)
SHARED = source(
    name="fill_shared",
    code="""GD_KERNEL(fill_shared)(i32* out, i64 n) {
  GD_DYNAMIC_SHARED(i32, held);
  __shared__ i32 own[64];
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) held[i] = static_cast<i32>(i);
  if (threadIdx.x < 64) own[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) out[0] = held[n - 1] + own[63];
}""",
)
CONFIG = {"backends": ("cuda", "cpu"), "fallback": "forbid"}


class Work:
    """A stream of the device, and a kernel that takes its time there."""

    def __init__(self, device: Any, turns: int) -> None:
        self.device, self.queue, self.driver = device, device.new_queue(), device.driver
        self.x = device.empty(dtypes.float32, (1,))
        device.from_host(np.zeros(1, np.float32), self.x)
        self.turns = turns
        self.function = device.images.function(SPIN, "spin")

    def spin(self) -> None:
        params = (u64(self.x.address), i64(self.turns))
        Launch(self.driver, self.function, (1,), (1,), 0, params, self.queue.stream).run()


@pytest.fixture
def work(device: Any, emulated: bool) -> Iterator[Work]:
    with device.current():
        yield Work(device, 10 if emulated else 200_000_000)


def test_driver_events_are_not_ready_and_then_are(work: Work, emulated: bool) -> None:
    driver, answers = work.driver, set()
    begin, end = driver.event(timing=True), driver.event(timing=True)
    for _ in range(30 if emulated else 1):
        driver.event_record(begin, work.queue.stream)
        work.spin()
        driver.event_record(end, work.queue.stream)
        answers.add(driver.event_query(end))
        driver.event_synchronize(end)
        assert driver.event_query(end) is True and driver.event_elapsed(begin, end) > 0
    assert False in answers
    for event in (begin, end):
        driver.event_destroy(event)


def test_driver_calls_one_by_one(device: Any, work: Work) -> None:
    """Each does what ``Driver`` says, as far as one GPU shows it."""
    driver = device.driver
    assert driver.device_count() >= 1 and driver.get_device() == device.index and driver.has_context(device.index)
    assert driver.driver_version() >= 12000 and driver.runtime_version() >= 12000
    facts = driver.properties(device.index)
    assert facts.capability >= (7, 0) and facts.shared_memory >= 48 << 10 and facts.warp_size == 32 and facts.l2_cache
    free, total = driver.memory_info(device.index)
    assert 0 < free <= total
    stream, other = driver.stream(), driver.stream()
    memory, pinned = driver.malloc(1024, stream), driver.host_alloc(1024)
    held = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_uint8 * 1024).from_address(pinned))  # type: ignore[attr-defined]
    assert memory % 256 == 0
    driver.fill(memory, 7, 1024, stream)
    event = driver.event()
    assert driver.event_query(event) is True  # it was never recorded
    driver.event_record(event, stream)
    driver.stream_wait(other, event)
    driver.copy(pinned, memory, 1024, other)
    driver.stream_synchronize(other)
    assert (held == 7).all()
    driver.capture_begin(stream)
    driver.fill(memory, 9, 1024, stream)
    driver.copy(pinned, memory, 1024, stream)
    graph = driver.capture_end(stream)
    executable = driver.instantiate(graph, stream)
    driver.graph_destroy(graph)
    for _ in range(2):
        held[:] = 0
        driver.graph_launch(executable, stream)
        driver.stream_synchronize(stream)
        assert (held == 9).all()
    driver.graph_exec_destroy(executable)
    driver.free(memory, stream)
    driver.trim(device.index)
    driver.device_synchronize()
    driver.host_free(pinned)
    driver.event_destroy(event)
    for made in (stream, other):
        driver.stream_destroy(made)
    assert not driver.can_access_peer(device.index, device.index)
    print("conditions:", driver.conditions() or "yes")


def test_threads_first_steps_draw_on_new_threads(host: Host) -> None:
    found: list[Any] = []

    def work(seed: int) -> None:
        try:
            with tf.Graph(host=host).as_default():
                x = tf.random_normal([64], seed=seed)
                with tf.Session(config=tf.SessionConfig(**CONFIG), host=host) as session:
                    found.append(session.run(x))
        except Exception as error:  # noqa: BLE001 - shown by the assertion
            found.append(error)

    for seed in range(6):
        thread = threading.Thread(target=work, args=(seed,))
        thread.start()
        thread.join()
    assert all(isinstance(x, np.ndarray) and np.isfinite(x).all() for x in found), found


def _sums(host: Host, size: int, most: int, steps: int) -> tuple[float, int]:
    """What two sessions add to, in turn, and how many steps were in flight at once."""
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [size, size])
        with tf.container(f"{size} {most} {steps}"):
            w, total = tf.Variable(np.eye(size, dtype=np.float32)), tf.Variable(0.0)
        add = tf.assign_add(total, tf.reduce_mean(tf.matmul(tf.matmul(x, w), x)))
        with tf.control_dependencies([add]):
            step = tf.group(tf.assign_add(w, x))
        config = tf.SessionConfig(**CONFIG, steps_in_flight=most)
        deepest = 0
        with tf.Session(config=config, host=host) as one, tf.Session(config=config, host=host) as other:
            one.run(tf.global_variables_initializer())
            for number in range(steps):
                session = (one, other)[number % 2]
                session.run(step, {x: np.full((size, size), (1 + number % 3) / size, np.float32)})
                queued = [s for t in (one, other) if t._overlap is not None for s in t._overlap.in_flight.pending]
                deepest = max(deepest, sum(not step.passed() for step in queued))
            one.synchronize()
            other.synchronize()
            return float(one.run(total)), deepest


def test_overlap_of_steps_that_share_variables(host: Host, emulated: bool) -> None:
    """The same bits as one step at a time; and while the host queues, more than one step is not done."""
    size = 16 if emulated else 4096
    alone, overlapped = _sums(host, size, 1, 24), _sums(host, size, 2, 24)
    assert alone[0] == overlapped[0]
    assert overlapped[1] > 1, "no two steps were in flight"


def test_capture_beside_allocation(host: Host, device: Any, emulated: bool) -> None:
    """A thread takes and gives memory while another records; nobody's recording breaks."""
    stop, failures = threading.Event(), []

    def churn() -> None:
        try:
            queue = device.new_queue()
            with device.current():
                while not stop.is_set():
                    kept = [queue.empty(dtypes.float32, (1 << n,)) for n in range(4, 16)]
                    del kept
                    queue.synchronize()
        except Exception as error:  # noqa: BLE001 - shown by the assertion
            failures.append(error)

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for width in range(1, 4 if emulated else 40):
            with tf.Graph(host=host).as_default():
                x = tf.placeholder(tf.float32, [width])
                y = tf.tanh(x) * 2.0 + tf.reduce_sum(x)
                with tf.Session(config=tf.SessionConfig(**CONFIG), host=host) as session:
                    for _ in range(4):
                        np.testing.assert_allclose(
                            session.run(y, {x: np.ones(width)}), np.tanh(1) * 2 + width, rtol=1e-5
                        )
    finally:
        stop.set()
        thread.join()
    assert not failures, failures


@pytest.mark.parametrize("beside", [-256, -4, 0, 4, 256])
def test_shared_memory_edges(device: Any, beside: int) -> None:
    """Right below and above 48 KiB, less what the kernel has by itself, and the most that there is."""
    queue, out = device.new_queue(), device.empty(dtypes.int32, (1,))
    most = device.info.shared_memory_bytes
    for nbytes in ((48 << 10) - 256 + beside, (48 << 10) + beside, most - 256 - abs(beside)):
        with device.current():
            function = device.images.function(SHARED, "fill_shared", nbytes)
            params = (u64(out.address), i64(nbytes // 4))
            Launch(device.driver, function, (1,), (128,), nbytes, params, queue.stream).run()
            queue.synchronize()
        found = np.zeros(1, np.int32)
        device.to_host(out, found)
        assert found[0] == nbytes // 4


def test_large_arrays_of_more_than_two_to_the_31_elements(host: Host, emulated: bool) -> None:
    if emulated:
        pytest.skip("an emulator is too slow for 2^31 elements")
    count = (1 << 31) + 1000
    with tf.Graph(host=host).as_default():
        one = tf.placeholder(tf.int8, [])
        x = tf.fill([count], one)
        last = tf.concat([x[:5], x[-5:]], 0)
        halves = tf.reduce_sum(tf.cast(tf.reshape(x[: 1 << 31], [1 << 16, 1 << 15]), tf.int32), 1)
        with tf.Session(config=tf.SessionConfig(**CONFIG), host=host) as session:
            ends, sums = session.run([last, halves], {one: 1})
    assert (ends == 1).all() and (sums == 1 << 15).all()


#: An address that nobody has, a failed step, and an end in order.
LOST = """
import sys
import numpy as np, graphdock as tf
from graphdock.errors import DeviceLostError
from graphdock.plugin.host import Host
from graphdock_cuda.compiled import source
from graphdock_cuda.launch import Launch, u64
host = Host()
host.backend("cuda")
device = host.open_device("/device:cuda:0")
bad = source(name="bad", code="GD_KERNEL(bad)(float* x) { x[threadIdx.x] = 1.0f; }")
with tf.Graph(host=host).as_default():
    x = tf.placeholder(tf.float32, [8])
    y = tf.square(x)
    session = tf.Session(config=tf.SessionConfig(backends=("cuda", "cpu")), host=host)
    assert (session.run(y, {x: np.ones(8)}) == 1).all()
    queue = device.new_queue()
    with device.current():
        Launch(device.driver, device.images.function(bad, "bad"), (1,), (32,), 0, (u64(16),), queue.stream).run()
        try:
            queue.synchronize()
        except DeviceLostError as error:
            print("lost:", error)
        else:
            sys.exit("the address was taken")
    try:
        session.run(y, {x: np.ones(8)})
    except DeviceLostError:
        pass
    else:
        sys.exit("a step ran on a lost device")
    try:
        session.close()
    except DeviceLostError:
        pass
host.close()
print("closed")
"""


def test_lost_device_closes_and_the_process_exits(host: Host) -> None:
    run = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0 and "closed" in run.stdout, run.stdout + run.stderr


def test_memory_runs_out_and_the_session_goes_on(host: Host, device: Any) -> None:
    free, _ = device.driver.memory_info(device.index)
    with tf.Graph(host=host).as_default():
        x = tf.placeholder(tf.float32, [1024])
        wide = tf.reduce_max(tf.cumsum(tf.tile(x, [free // 4096 + 1])))
        small = tf.square(x)
        with tf.Session(config=tf.SessionConfig(**CONFIG), host=host) as session:
            for number in range(3):
                with pytest.raises(tf.errors.ResourceExhaustedError):
                    session.run(wide, {x: np.ones(1024)})
                assert (session.run(small, {x: np.full(1024, number)}) == number * number).all()


def test_epilogues_that_find_an_algorithm(device: Any) -> None:
    """Those that ``graphdock_cuda.testing.blas.REFUSED`` does not list; the table is printed."""
    epilogues = "none bias relu relu_bias gelu gelu_bias gelu_aux_bias dgelu sums_a sums_b".split()
    wrong = []
    for dtype, (m, n, k) in itertools.product(
        ("float16", "bfloat16", "float32", "float64"), ((64, 64, 64), (7, 12, 9), (16, 8, 1))
    ):
        row = []
        for epilogue in epilogues:
            gemm = Gemm(m, n, k, dtype, epilogue=epilogue)
            plan = device.gemm_plan(gemm)
            expected = not any(refused(gemm) for refused in REFUSED.values())
            row.append("-" if plan is None else f"a{plan.aligned}")
            if (plan is not None) != expected:
                wrong.append(f"{dtype} {m}x{n}x{k} {epilogue}: {'found' if plan else 'refused'}")
        print(
            f"{dtype:9} {m:3}x{n:3}x{k:3}  "
            + "  ".join(f"{e}:{found}" for e, found in zip(epilogues, row, strict=True))
        )
    assert not wrong, wrong


def _trained(host: Host, steps: int, each: Callable[[int], None] = lambda number: None) -> list[np.ndarray]:
    """Weights after training steps with dropout, recorded and replayed."""
    rng = np.random.default_rng(5)
    rows, labels = rng.standard_normal((32, 24)).astype(np.float32), rng.integers(0, 10, 32)
    with tf.Graph(host=host).as_default():
        tf.set_random_seed(3)
        x, y = tf.placeholder(tf.float32, rows.shape), tf.placeholder(tf.int32, labels.shape)
        hidden = tf.nn.dropout(tf.layers.dense(x, 48, activation=tf.nn.relu), rate=0.3, seed=1)
        mean, variance = tf.nn.moments(hidden, [-1], keep_dims=True)
        normed = (hidden - mean) * tf.rsqrt(variance + 1e-5)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.layers.dense(normed, 10))
        )
        train = tf.train.AdamOptimizer(0.01).minimize(loss)
        with tf.Session(config=tf.SessionConfig(**CONFIG, steps_in_flight=2), host=host) as session:
            session.run(tf.global_variables_initializer())
            for number in range(steps):
                session.run(train, {x: rows, y: labels})
                each(number)
            session.synchronize()
            return list(session.run(tf.trainable_variables()))


def test_leaks_over_many_steps(host: Host, device: Any, emulated: bool) -> None:
    seen: dict[int, tuple[int, int]] = {}
    steps = 120 if emulated else 10_000

    def look(number: int) -> None:
        if number + 1 in (steps // 10, steps):
            gc.collect()
            device.pool.settle()
            device.synchronize()
            device.driver.trim(device.index)
            seen[number] = device.pool.in_use, device.driver.memory_info(device.index)[0]

    _trained(host, steps, look)
    (early, free), (late, left) = seen.values()
    assert late == early and left >= free - (1 << 20), (seen, "bytes of the pool in use, and free on the GPU")


def test_bitwise_repetition(host: Host, emulated: bool) -> None:
    """Two trainings with random numbers give the same bits, however steps overlapped."""
    steps = 10 if emulated else 300
    first, second = _trained(host, steps), _trained(host, steps)
    for mine, theirs in zip(first, second, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_sanitized_programs_run(host: Host) -> None:
    """What compute-sanitizer looks at: products, norms, reductions, draws, sorts and scatters, recorded and replayed."""
    begin = time.perf_counter()
    _trained(host, 4)
    with tf.Graph(host=host).as_default():
        x, at = tf.placeholder(tf.float32, [33, 65]), tf.placeholder(tf.int32, [33])
        fetches = [
            tf.nn.softmax(x),
            tf.reduce_max(x, 0),
            tf.cumsum(x, 1),
            tf.nn.top_k(x, 3)[0],
            tf.unsorted_segment_sum(x, at, 7),
            tf.gather(x, at),
            tf.matmul(x, x, transpose_a=True),
            tf.random_uniform([100], seed=2),
        ]
        feed = {x: np.random.default_rng(1).standard_normal((33, 65)), at: np.arange(33) % 7}
        with tf.Session(config=tf.SessionConfig(**CONFIG), host=host) as session:
            for _ in range(3):
                assert all(np.isfinite(found).all() for found in session.run(fetches, feed))
    print(f"{time.perf_counter() - begin:.1f} s in process {os.getpid()} of {Path(sys.executable).name}")
