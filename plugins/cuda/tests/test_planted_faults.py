"""Faults planted in the driver over CuPy, the device, its memory, queues and stream slots: each is found without a GPU.

Each runs in a process of its own (``tests/laws/planted_source.py``), in which one test has to fail. The table says which.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from graphdock_cuda.testing import find_compiler

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


class Fault(NamedTuple):
    """One fault: what is wrong; the text of the module that stands there once, and what it is replaced by; who finds it."""

    name: str
    right: str
    wrong: str
    finder: str


DRIVER = "driver/test_cupy_driver.py::test_"
MEMORY = "test_memory.py::test_"
DEVICE = "test_device.py::test_"
OVERLAP = "steps/test_overlap.py::test_two_sessions_with_steps_in_flight_share_variables"
QUERY, COUNTING = DRIVER + "an_event_that_is_not_reached_is_not_ready", DRIVER + "counting_devices_opens_none"
PEERS = DRIVER + "a_gpu_is_asked_for_its_own_way_to_a_peer_and_let_into_the_peers_pool"
RELIEF = MEMORY + "the_pool_gives_back_where_others_find_no_memory"
COPIES = "testing/test_memory_calls.py::test_pinned_memory_is_read_when_the_copy_runs"
RECORDS = "testing/test_capture_calls.py::test_nothing_runs_before_the_launch_and_all_of_it_at_each"
CURRENT = DEVICE + "what_was_current_on_a_thread_is_current_again"
WITHIN = MEMORY + "nothing_is_loaded_and_planned_within_a_recording"

#: Module -> its faults.
FAULTS = {
    "graphdock_cuda.driver.cupy_driver": [
        Fault("a status is taken for a truth", "return bool(status == 0)", "return True", QUERY),
        Fault("what a query reports is dropped", "if status not in (0, _NOT_READY):", "if False:", QUERY),
        Fault("the pool keeps nothing", "(1 << 64) - 1)", "0)", COUNTING),
        Fault(
            "memory is asked of the current device",
            "        self.set_device(device)\n        try:",
            "        try:",
            COUNTING,
        ),
        Fault("the device asked of stays current", "if self.has_context(before):", "if False:", COUNTING),
        Fault(
            "all devices are open",
            "return device in self._pooled or",
            "return True or",
            DEVICE + "work_on_one_gpu_opens_no_other",
        ),
        Fault("trimming leaves a gigabyte", "DefaultMemPool(device), 0)", "DefaultMemPool(device), 1 << 30)", RELIEF),
        Fault("pinned memory is one GPU's", "_PORTABLE_MAPPED = 3", "_PORTABLE_MAPPED = 2", COPIES),
        Fault("all copies come from the host", "_ANY_TO_ANY = 4", "_ANY_TO_ANY = 1", COPIES),
        Fault("recordings are of all threads", "_THREAD_LOCAL = 1", "_THREAD_LOCAL = 0", RECORDS),
        Fault("streams wait for the default one", "_NON_BLOCKING = 1", "_NON_BLOCKING = 0", RECORDS),
        Fault(
            "events with timing have none",
            "0 if timing else _NO_TIMING",
            "_NO_TIMING if timing else 0",
            "testing/test_stream_calls.py::test_elapsed_time_is_of_the_work_between",
        ),
        Fault(
            "milliseconds are seconds",
            "/ 1e3",
            "/ 1",
            "testing/test_stream_calls.py::test_elapsed_time_is_of_the_work_between",
        ),
        Fault(
            "another attribute is set",
            "_MAX_DYNAMIC_SHARED = 8",
            "_MAX_DYNAMIC_SHARED = 9",
            "testing/test_code_calls.py::test_much_shared_memory_must_be_allowed",
        ),
        Fault(
            "launches have parameters twice",
            "launch(*args, 0)",
            "launch(*args, 1)",
            "testing/test_code_calls.py::test_bounds_of_a_kernel",
        ),
        Fault(
            "graphs are not uploaded",
            "self._runtime.graphUpload(made, stream)",
            "pass",
            DRIVER + "a_graph_is_uploaded_or_gone",
        ),
        Fault(
            "a graph that is not uploaded stays",
            "            self.graph_exec_destroy(made)\n",
            "",
            DRIVER + "a_graph_is_uploaded_or_gone",
        ),
        Fault(
            "a second way to a peer is an error",
            "_PEER_ALREADY = 704",
            "_PEER_ALREADY = 705",
            DRIVER + "reaching_a_peer_twice_is_reaching_it",
        ),
        Fault(
            "no way to a peer is one",
            "if error.status != _PEER_ALREADY:",
            "if False:",
            DRIVER + "reaching_a_peer_twice_is_reaching_it",
        ),
        Fault(
            "the peer is let into the own pool",
            "self._allow(self._runtime.deviceGetDefaultMemPool(peer), self.get_device())",
            "self._allow(self._runtime.deviceGetDefaultMemPool(self.get_device()), peer)",
            PEERS,
        ),
        Fault(
            "the peer is asked for its way",
            "deviceCanAccessPeer(device, peer)",
            "deviceCanAccessPeer(peer, device)",
            PEERS,
        ),
        Fault(
            "a body that is given up stays recorded",
            "if self._conditionals.leave(stream):",
            "if False:",
            DRIVER + "a_recording_that_ends_within_a_body_is_given_up",
        ),
        Fault(
            "facts are in another order",
            'fact("L2CacheSize"),',
            'fact("WarpSize"),',
            DRIVER + "what_is_known_of_a_device",
        ),
    ],
    "graphdock_cuda.driver.cublaslt": [
        Fault(
            "7 is an error of the library",
            "_NOTHING = (7, 15)",
            "_NOTHING = (15,)",
            "driver/test_cublaslt.py::test_what_the_library_has_not",
        ),
        Fault(
            "fusions for aligned addresses are lost",
            "in aligned or anyhow:",
            "in anyhow:",
            "driver/test_cublaslt.py::test_an_algorithm_for_aligned_addresses_alone_says_so",
        ),
    ],
    "graphdock_cuda.driver.errors": [
        Fault(
            "cuBLAS finds no memory, and that is an internal error",
            "if error.code == _NO_MEMORY:",
            "if False:",
            DRIVER + "cublas_numbers_are_not_cudas",
        ),
    ],
    "graphdock_cuda.toolkit": [
        Fault(
            "the newest compiler is taken",
            "Nvrtc(driver.driver_version() // 1000)",
            "Nvrtc()",
            "test_toolkit.py::test_the_compiler_is_no_newer_than_the_driver",
        ),
    ],
    "graphdock_cuda.compiled": [
        Fault(
            "shared memory below 48 KiB is never asked for",
            "if shared > self._allowed.get(function, 0):",
            "if shared > 48 << 10:",
            "test_compiled.py::test_a_kernel_runs_with_any_shared_memory_whatever_it_ran_with_before",
        ),
        Fault("code is loaded within a recording", "if recording is not None:", "if False:", WITHIN),
    ],
    "graphdock_cuda.device": [
        Fault(
            "a thread on device 0 has a context",
            ' or not hasattr(self._thread, "entered")',
            "",
            DRIVER + "random_numbers_on_a_new_thread",
        ),
        Fault("what was current is left", "if self.driver.has_context(previous):", "if False:", CURRENT),
        Fault(
            "what nobody has opened is opened",
            "if self.driver.has_context(previous):",
            "if True:",
            DEVICE + "work_on_one_gpu_opens_no_other",
        ),
        Fault(
            "products are planned within a recording",
            "if self.recording is not None:  # the library",
            "if False:  # the library",
            WITHIN,
        ),
        Fault("libraries find no memory that the pool keeps", "        self.pool.relieve()\n", "", RELIEF),
        Fault(
            "no matrix library is an error",
            "if self.toolkit.blas is None:",
            "if False:",
            "test_sessions.py::test_products_without_the_matrix_library_are_tiles_and_a_warning_says_so",
        ),
        Fault(
            "a forked child calls CUDA",
            "for device in list(_open):",
            "for device in ():",
            "test_forks.py::test_a_forked_child_is_told_and_makes_no_call",
        ),
        Fault(
            "a lost device is asked again",
            "if isinstance(made, errors.DeviceLostError) and self._lost is None:",
            "if False:",
            DEVICE + "a_kernel_that_fails_loses_the_device",
        ),
    ],
    "graphdock_cuda.memory": [
        Fault(
            "blocks are freed into a recording",
            "if drop.stream in self._recorded:",
            "if False:",
            MEMORY + "what_goes_on_another_thread_is_freed_when_the_recording_has_ended",
        ),
        Fault(
            "a stream once recorded keeps its blocks",
            "self._recorded.discard(stream)",
            "pass",
            MEMORY + "streams_are_freed_on_again_after_a_recording_that_failed",
        ),
        Fault(
            "a stream is destroyed with its work ahead",
            "            self._driver.stream_synchronize(stream)\n            with",
            "            with",
            MEMORY + "what_a_queue_used_is_freed_behind_its_last_work",
        ),
        Fault(
            "blocks stay those of a stream that is gone",
            "drop.stream = self.stream",
            "pass",
            DEVICE + "memory_may_outlive_the_queue_in_whose_order_it_was_taken",
        ),
        Fault(
            "what is freed is not waited for",
            "for stream in self._freed - self._recorded:",
            "for stream in ():",
            RELIEF,
        ),
        Fault(
            "a recorded stream is waited for",
            "for stream in self._freed - self._recorded:",
            "for stream in set(self._freed):",
            MEMORY + "a_stream_that_is_recorded_is_not_waited_for_where_memory_is_given_back",
        ),
        Fault("the pool keeps all", "self._driver.trim(self._device)", "pass", RELIEF),
        Fault(
            "what is freed counts as in use",
            "self.in_use -= drop.nbytes",
            "pass",
            DEVICE + "memory_comes_back_when_its_last_reference_goes",
        ),
        Fault(
            "the limit can't be reached",
            "self.in_use + nbytes > self.limit",
            "self.in_use + nbytes >= self.limit",
            MEMORY + "the_limit_counts_what_is_in_use_and_may_be_reached",
        ),
        Fault(
            "a lost device is an error when all is closed",
            "if not isinstance(raised, errors.DeviceLostError):  # the system",
            "if True:  # the system",
            MEMORY + "closing_after_a_device_was_lost_raises_nothing",
        ),
        Fault(
            "pinned memory that can't be freed is dropped",
            "if not isinstance(raised, errors.DeviceLostError):  # the system",
            "if False:  # the system",
            MEMORY + "another_failure_to_give_pinned_memory_back_is_told",
        ),
        Fault(
            "all pinned memory is kept",
            "keep = self._kept + drop.nbytes <= _KEPT_BYTES",
            "keep = True",
            MEMORY + "pinned_memory_is_handed_out_again_by_size_and_no_more_is_kept_than_so_much",
        ),
        Fault(
            "pinned memory that is kept is nobody's",
            "        self.close()\n        try:",
            "        try:",
            MEMORY + "pinned_memory_that_is_kept_is_given_back_where_there_is_no_other",
        ),
    ],
    "graphdock_cuda.queue": [
        Fault("a queue waits for nobody", "self.driver.stream_wait(self.stream, event.handle)", "pass", OVERLAP),
        Fault("events are not recorded", "self.driver.event_record(event.handle, self.stream)", "pass", OVERLAP),
        Fault(
            "a refused fence is none",
            "self._wait_all_the_same(error)",
            "pass",
            DEVICE + "a_fence_that_is_refused_waits_all_the_same",
        ),
        Fault(
            "recorded graphs are kept",
            "                self.driver.graph_destroy(graph)\n",
            "                pass\n",
            "steps/test_steps.py::test_steps_leave_nothing_behind",
        ),
        Fault(
            "the pool does not know of a recording",
            "            self.device.pool.begin_recording(self.stream)\n            try:\n",
            "            try:\n",
            MEMORY + "what_goes_on_another_thread_is_freed_when_the_recording_has_ended",
        ),
        Fault(
            "the pool does not know who joins",
            "            self.device.pool.begin_recording(self.stream)\n            self.recording = recording",
            "            self.recording = recording",
            MEMORY + "a_queue_that_joins_a_recording_frees_when_that_has_ended",
        ),
        Fault(
            "fences raise no error of kernels",
            "self.device.check_errors(self)",
            "pass",
            DEVICE + "an_error_that_a_kernel_notes_is_raised_once_with_its_node",
        ),
    ],
    "graphdock_executor.stream_slot": [
        Fault(
            "other slots are not waited for",
            "if other is self or self.seen.get(other, 0) >= fence.number or fence.passed():",
            "if True:",
            OVERLAP,
        ),
        Fault("no queue waits for another", "            self._wait(fence)\n", "", OVERLAP),
        Fault(
            "more is done than the host knows",
            "max(stream_slot.done, count)",
            "max(stream_slot.done, count + 1)",
            OVERLAP,
        ),
        Fault(
            "a fence that is not reached has passed",
            "if not self.stream_slot.device.passed(self.event):",
            "if False:",
            OVERLAP,
        ),
    ],
}
ALL = [
    pytest.param(module, fault, id=f"{module.rpartition('.')[2]}: {fault.name}")
    for module, some in FAULTS.items()
    for fault in some
]


@pytest.mark.parametrize(("module", "fault"), ALL)
def test_what_it_replaces_stands_there_once(module: str, fault: Fault) -> None:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    assert Path(spec.origin).read_text(encoding="utf-8").count(fault.right) == 1
    file, _, test = fault.finder.partition("::")
    assert f"def {test}(" in (HERE / file).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.plain
@pytest.mark.sampled(36)
@pytest.mark.skipif(find_compiler() is None, reason="needs g++")
@pytest.mark.parametrize(("module", "fault"), ALL)
def test_a_test_finds_it(module: str, fault: Fault) -> None:
    path = [str(HERE / "planted"), str(ROOT / "tests" / "laws"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PLANTED": json.dumps({"module": module, "right": fault.right, "wrong": fault.wrong}),
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-x"]
    run = subprocess.run(
        [*command, str(HERE / fault.finder)], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 1 and "SystemError" not in run.stdout, run.stdout[-3000:] + run.stderr[-2000:]
