"""Readers as resources: reads that wait for a name, and what becomes of it when they are cancelled."""

from __future__ import annotations

import threading
import zlib
from concurrent.futures import Future

import numpy as np
import pytest
from graphdock.contracts import ResourceRequest, dtypes, errors
from graphdock_data.resources.queue import Queue
from graphdock_data.resources.reader import READER
from graphdock_storage.records import FRAME, RecordWriter


def make(kind, **attrs):
    return READER.create(ResourceRequest("data.Reader", "r", "", {"kind": kind, **attrs}, None))


def names(*paths, closed=True):
    queue = Queue("names", "FIFOQueue", 1000, [dtypes.string], [()])
    for path in paths:
        queue.enqueue(np.array(str(path).encode(), object))
    if closed:
        queue.close(False)
    return queue


def all_of(reader, queue):
    found = []
    while True:
        try:
            key, value = reader.read(queue)
        except errors.OutOfRangeError:
            return found
        found.append((key.item().rpartition(b"/")[2], value.item()))


def waits(result):
    return isinstance(result, Future) and not result.done()


def test_lines(tmp_path):
    (tmp_path / "a").write_bytes(b"x\none\r\ntwo")
    (tmp_path / "b").write_bytes(b"x\n")
    (tmp_path / "c").write_bytes(b"x\nlast\n\n")
    reader = make("lines", skip_header_lines=1)
    expected = [(b"a:2", b"one"), (b"a:3", b"two"), (b"c:2", b"last"), (b"c:3", b"")]
    assert all_of(reader, names(*map(tmp_path.joinpath, "abc"))) == expected
    assert (reader.records_produced, reader.work_completed) == (4, 3)


def test_records_and_whole_files(tmp_path):
    for name, kind in (("a", ""), ("z", "ZLIB")):
        with RecordWriter(str(tmp_path / name), kind) as writer:
            for record in (b"one", b"three"):
                writer.write(record)
        expected = [(f"{name}:0".encode(), b"one"), (f"{name}:{3 + FRAME}".encode(), b"three")]
        assert all_of(make("records", compression_type=kind), names(tmp_path / name)) == expected
    (tmp_path / "w").write_bytes(b"\0all")
    whole, queue = make("whole"), names(tmp_path / "w")
    assert whole.read(queue)[1].item() == b"\0all" and whole.work_completed == 1
    assert all_of(whole, queue) == []


@pytest.mark.parametrize("hop", [0, 2, 7])
@pytest.mark.parametrize("encoding", ["", "ZLIB"])
@pytest.mark.sampled(3)
def test_records_of_one_length(tmp_path, hop, encoding):
    body = bytes(range(100)) * 3000
    data = b"head" + body + b"foot!"
    (tmp_path / "f").write_bytes(zlib.compress(data) if encoding else data)
    attrs = {"record_bytes": 5, "header_bytes": 4, "footer_bytes": 5, "hop_bytes": hop, "encoding": encoding}
    found = all_of(make("fixed", **attrs), names(tmp_path / "f"))
    step = hop or 5
    assert [v for _, v in found] == [body[at : at + 5] for at in range(0, len(body) - 4, step)]
    assert [k for k, _ in found[:2]] == [b"f:0", b"f:1"]
    with pytest.raises(errors.InvalidArgumentError, match="record_bytes"):
        make("fixed", **{**attrs, "record_bytes": 0})


def test_what_is_wrong_with_a_file_is_the_reads_and_the_next_goes_on(tmp_path):
    (tmp_path / "bad").write_bytes(b"\1" * 40)
    (tmp_path / "b").write_bytes(b"x\n")
    queue = names(tmp_path / "bad", tmp_path / "none")
    reader = make("records", compression_type="")
    with pytest.raises(errors.DataLossError, match="byte 0 of .*bad"):
        reader.read(queue)
    with pytest.raises(errors.NotFoundError, match="none"):
        reader.read(queue)
    with pytest.raises(errors.OutOfRangeError):
        reader.read(queue)


def test_reads_up_to_a_number_are_of_one_file(tmp_path):
    (tmp_path / "a").write_bytes(b"1\n2\n3\n")
    (tmp_path / "b").write_bytes(b"4\n")
    queue, reader = names(tmp_path / "a", tmp_path / "b"), make("lines", skip_header_lines=0)
    found = [reader.read_up_to(queue, 2)[1].tolist() for _ in range(3)]
    assert found == [[b"1", b"2"], [b"3"], [b"4"]]
    with pytest.raises(errors.InvalidArgumentError, match="num_records"):
        reader.read_up_to(queue, 0)


def test_reads_wait_for_names_and_a_cancelled_one_takes_nothing():
    queue, reader = names(closed=False), make("identity")
    first, second, third = (reader.read(queue) for _ in range(3))
    assert waits(first) and waits(third)
    first.cancel()
    for name in (b"a", b"b"):
        queue.enqueue(np.array(name, object))
    assert [second.result(0)[1].item(), third.result(0)[1].item()] == [b"a", b"b"]
    alone = reader.read(queue)
    alone.cancel()
    queue.enqueue(np.array(b"c", object))
    assert queue.size() == 1  # nobody asks for it
    assert reader.read(queue)[0].item() == b"c"
    late = reader.read(queue)
    queue.close(False)
    with pytest.raises(errors.OutOfRangeError):
        late.result(0)


def test_a_container_that_is_reset_wakes_all():
    queue, reader = names(closed=False), make("identity")
    late = reader.read(queue)
    READER.close(reader, None)
    with pytest.raises(errors.CancelledError, match="reader 'r' was closed"):
        late.result(0)
    assert not queue._takes


def test_its_state():
    queue, reader = names("a", "b", "c"), make("identity")
    reader.read(queue)
    state = reader.state()
    other = make("identity")
    other.restore(state)
    assert other.records_produced == 1 and other.work_started == 1
    for bad in (b"", b"[1]", b"[0, 5, 0, []]"):
        with pytest.raises(errors.InvalidArgumentError):
            other.restore(bad)
    other.reset()
    assert other.records_produced == 0
    with pytest.raises(errors.UnimplementedError):
        make("whole").state()


def test_threads_read_each_record_once(tmp_path):
    for i in range(20):
        (tmp_path / str(i)).write_text("".join(f"{i}:{j}\n" for j in range(50)))
    queue, reader = names(*[tmp_path / str(i) for i in range(20)], closed=False), make("lines", skip_header_lines=0)
    found, lock = [], threading.Lock()

    def work():
        while True:
            try:
                result = reader.read(queue)
                result = result.result(60) if isinstance(result, Future) else result
            except errors.OutOfRangeError:
                return
            with lock:
                found.append(result[1].item())

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    queue.close(False)
    for thread in threads:
        thread.join(60)
    assert sorted(found) == sorted(f"{i}:{j}".encode() for i in range(20) for j in range(50))
