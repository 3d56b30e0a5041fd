"""The writer loses nothing: at the end of a program, at an exception, under threads, and where writing fails for a while."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import textwrap
import threading

import pytest
from graphdock.errors import NotFoundError, ResourceExhaustedError
from graphdock.messages import Event
from graphdock_storage.events import file as file_module
from graphdock_storage.events import writer as module
from graphdock_storage.events.writer import EventWriter
from graphdock_storage.records import read_records

#: Of graph_def, whose bytes may be any.
KEY = b"\x22"
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def steps(folder):
    """The steps in all event files of a folder."""
    found = []
    for path in sorted(folder.iterdir()):
        found += [Event.FromString(data) for data in read_records(str(path))]
    return [event.step for event in found if event.WhichOneof("what") != "file_version"]


@pytest.fixture
def disk(monkeypatch):
    """A disk that is full while ``disk.full`` is set."""

    class Disk:
        full = False
        refused = threading.Event()

    write = os.write

    def maybe(fd, data):
        if Disk.full:
            Disk.refused.set()
            raise FULL
        return write(fd, data)

    monkeypatch.setattr(file_module.os, "write", maybe)
    return Disk


def test_the_thread_writes_without_being_asked(tmp_path):
    """After ``max_queue`` events, and after ``flush_secs`` seconds."""
    for queue, seconds in ((3, 1e9), (1000, 0.01)):
        folder = tmp_path / str(queue)
        writer = EventWriter(str(folder), queue, seconds)
        written = threading.Event()
        append = writer._file.append
        writer._file.append = lambda records, a=append, w=written: (a(records), w.set())
        for step in range(1, 4):
            writer.add(1.0, step, KEY, b"")
        assert written.wait(30)
        assert steps(folder)[:1] == [1]
        writer.close()
        assert steps(folder) == [1, 2, 3]


def test_a_closed_writer_may_be_opened_again(tmp_path):
    writer = EventWriter(str(tmp_path), 10, 120)
    writer.add(1.0, 1, KEY, b"")
    writer.close()
    writer.close()
    assert writer.closed and steps(tmp_path) == [1]
    writer.reopen()
    writer.reopen()
    writer.add(1.0, 2, KEY, b"")
    writer.close()
    assert sorted(steps(tmp_path)) == [1, 2] and len(list(tmp_path.iterdir())) == 2


def test_a_full_disk_is_told_by_the_next_call_and_nothing_is_lost(tmp_path, disk):
    writer = EventWriter(str(tmp_path), 2, 1e9)
    disk.full = True
    writer.add(1.0, 1, KEY, b"")
    writer.add(1.0, 2, KEY, b"")
    assert disk.refused.wait(30)
    with writer._file_lock:
        pass
    with pytest.raises(ResourceExhaustedError, match="No space left"):
        for _ in range(1000):
            writer.add(1.0, 99, KEY, b"")
            threading.Event().wait(0.01)
    with pytest.raises(ResourceExhaustedError):
        writer.flush()
    with pytest.raises(ResourceExhaustedError):
        writer.close()
    assert not writer.closed and steps(tmp_path) == []
    disk.full = False
    writer.add(1.0, 3, KEY, b"")
    writer.flush()
    writer.add(1.0, 4, KEY, b"")
    writer.close()
    found = steps(tmp_path)
    assert [s for s in found if s != 99] == [1, 2, 3, 4], "each once, in order"


def test_an_interrupt_within_a_flush_loses_nothing(tmp_path, monkeypatch):
    writer = EventWriter(str(tmp_path), 100, 1e9)
    writer.add(1.0, 1, KEY, b"")

    def interrupt(*args):
        raise KeyboardInterrupt

    for owner, name in ((module, "event_bytes"), (file_module.os, "write")):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(owner, name, interrupt)
            writer.flush()
    writer.add(1.0, 2, KEY, b"")
    writer.close()
    assert steps(tmp_path) == [1, 2]


def test_a_removed_file_is_told_and_a_new_one_begun(tmp_path):
    writer = EventWriter(str(tmp_path), 100, 1e9)
    for path in tmp_path.iterdir():
        path.unlink()
    writer.add(1.0, 1, KEY, b"")
    with pytest.raises(NotFoundError, match="disappeared"):
        writer.flush()
    writer.add(1.0, 2, KEY, b"")
    writer.close()
    assert steps(tmp_path) == [1, 2]


def test_threads_lose_nothing(tmp_path):
    writer = EventWriter(str(tmp_path), 7, 0.001)

    def work(first):
        for step in range(first, first + 200):
            writer.add(1.0, step, KEY, b"x" * (step % 50))
            if step % 67 == 0:
                writer.flush()

    threads = [threading.Thread(target=work, args=(1 + 200 * n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    found = steps(tmp_path)
    assert sorted(found) == list(range(1, 1001))
    for n in range(5):
        mine = [s for s in found if (s - 1) // 200 == n]
        assert mine == sorted(mine), "the order of each thread"


def test_much_that_waits_is_written_by_who_adds_it(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST", 1000)
    writer = EventWriter(str(tmp_path), 10**6, 1e9)
    for step in range(1, 30):
        writer.add(1.0, step, KEY, bytes(100))
        assert writer._bytes <= 1000
    assert len(steps(tmp_path)) > 10
    writer.close()


def test_the_thread_ends_with_its_writer(tmp_path):
    writer = EventWriter(str(tmp_path), 1, 120)
    writer.add(1.0, 1, KEY, b"")
    thread = writer._thread
    writer.close()
    assert not thread.is_alive()


PROGRAM = """
import os, sys
import graphdock as tf
writer = tf.summary.FileWriter(sys.argv[1], max_queue=10**6, flush_secs=1e6)
for step in range(1, 101):
    writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="a", simple_value=step)]), step)
"""


@pytest.mark.parametrize(
    "end", ["", "raise KeyError('end')", "sys.exit(3)", "del writer; import gc; gc.collect(); os._exit(0)"]
)
@pytest.mark.sampled(2)
def test_the_end_of_a_program_loses_nothing(tmp_path, end):
    folder = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + end, str(folder)], capture_output=True, text=True, check=False
    )
    assert steps(folder) == list(range(1, 101)), done.stderr


def test_what_is_lost_at_the_end_is_told(tmp_path):
    end = """
    def full(fd, data): raise OSError(28, "No space left on device")
    os.write = full
    """
    text = PROGRAM + textwrap.dedent(end)
    done = subprocess.run([sys.executable, "-c", text, str(tmp_path)], capture_output=True, text=True, check=False)
    assert "100 events are lost" in done.stderr and "No space left" in done.stderr


def test_a_forked_child_writes_none_of_its_parents_events(tmp_path):
    writer = EventWriter(str(tmp_path), 100, 1e9)
    writer.add(1.0, 1, KEY, b"")
    pid = os.fork()
    if not pid:
        code = 1
        try:
            assert writer.closed
            writer.reopen()
            writer.add(1.0, 2, KEY, b"")
            writer.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    writer.close()
    assert sorted(steps(tmp_path)) == [1, 2] and len(list(tmp_path.iterdir())) == 2


def test_a_writer_that_nobody_holds_is_closed(tmp_path):
    import graphdock as tf

    writer = tf.summary.FileWriter(str(tmp_path))
    writer.add_summary(tf.Summary(), 4)
    events = writer._events
    del writer
    gc.collect()
    assert events.closed and steps(tmp_path) == [4]


def test_a_writer_may_be_forgotten_on_its_own_thread(tmp_path):
    """A collection may run anywhere, also while the thread writes: it closes the file when it is done."""
    writer = EventWriter(str(tmp_path), 1, 1e9)
    append = writer._file.append
    closed = threading.Event()

    def forgets(records):
        writer.close_at_last()
        append(records)

    writer._file.append = forgets
    close = writer.close
    writer.close = lambda: (close(), closed.set())
    writer.add(1.0, 1, KEY, b"")
    assert closed.wait(30) and writer.closed and steps(tmp_path) == [1]
