"""What the package promises as a whole: a kernel or a reason for every op, and no kernel twice."""

from __future__ import annotations

from collections import Counter

from graphdock.plugin.host import Host
from graphdock_commands.missing import UNSTATED, missing
from graphdock_cuda.plugin import FAMILIES
from graphdock_cuda.testing import kernels


def test_every_op_has_a_kernel_or_a_stated_reason() -> None:
    found = missing(Host(), "cuda")
    assert [row["op"] for row in found["missing"] if row["reason"] == UNSTATED] == []
    impossible = [row for row in found["missing"] if "strings" in row["reason"] or "files" in row["reason"]]
    assert found["kernels"] >= 0.95 * (found["ops"] - len(impossible))


def test_what_is_said_to_be_lacking_is_lacking() -> None:
    host = Host()
    host.backend("cuda")
    state = next(s for s in host.plugins() if s.name == "cuda")
    assert state.manifest is not None
    stated = {op for row in state.manifest.unsupported for op in row.ops}
    assert stated <= set(host.ops.names()) and stated.isdisjoint(k.op for k in kernels())


def test_no_two_kernels_tie() -> None:
    counts = Counter((k.op, k.priority) for k in kernels() if not k.label and not k.types and not k.attrs)
    assert [key for key, count in counts.items() if count > 1] == []


def test_families_stand_in_order() -> None:
    assert list(FAMILIES) == sorted(set(FAMILIES))


def test_no_kernel_takes_strings() -> None:
    ops = Host().ops
    strings = [
        (k.op, t.name)
        for k in kernels()
        for t in ops.get(k.op).types
        if "string" in (t.allow or ["string"]) and "string" in k.types.get(t.name, ["string"])
    ]
    assert strings == []
