"""What a fake driver was asked."""

from __future__ import annotations

from graphdock_cuda.testing.log import Log


def test_sums():
    log = Log()
    for name in ("launch", "launch", "copy", "graph_launch", "malloc", "host_alloc", "stream_synchronize"):
        log.add(name, "")
    log.work("kernel", "add")
    log.work("copy", "h2d", 64)
    log.work("kernel", "add", replayed=True)
    log.work("copy", "d2h", 8, replayed=True)
    log.work("fill", "", 8)
    assert log.table() == {
        "calls": 7,
        "launches": 2,
        "graph launches": 1,
        "kernels": 2,
        "copies": 2,
        "bytes": 72,
        "fills": 1,
        "nodes": 2,
        "waits": 1,
        "allocations": 2,
    }
    assert log.kernels == {"add": 2}
    assert log.copies == {"h2d": 1, "d2h": 1}
    log.reset()
    assert not log.calls
    assert set(log.table().values()) == {0}


def test_a_step_and_its_replays(rig):
    d = rig.driver
    function = rig.kernel("GD_KERNEL(twice)(float* x) { x[threadIdx.x] *= 2; }", "twice")
    host, _ = rig.pinned(32, "f4")
    x = d.malloc(128, rig.s)
    d.log.reset()
    d.capture_begin(rig.s)
    d.fill(x, 0, 128, rig.s)
    rig.launch(function, x)
    d.copy(host, x, 128, rig.s)
    executable = d.instantiate(d.capture_end(rig.s), rig.s)
    assert d.log.table()["kernels"] == 0
    assert [str(call) for call in d.log.calls] == [
        "capture_begin",
        "fill 128 bytes",
        "launch twice grid=1 block=32",
        "copy d2h 128 bytes",
        "capture_end",
        "instantiate 3 nodes",
        "upload",
    ]
    for _ in range(2):
        d.graph_launch(executable, rig.s)
    table = d.log.table()
    assert (table["kernels"], table["nodes"], table["fills"], table["bytes"]) == (2, 6, 2, 256)
    assert d.graph(executable).lines == (
        ("cuda:0/stream:0", "fill of 128 bytes"),
        ("cuda:0/stream:0", "twice"),
        ("cuda:0/stream:0", "copy d2h of 128 bytes"),
    )
