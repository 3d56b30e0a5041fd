"""Random checkpoints that lie inside valid checksums: they are refused clearly, or what they say is read; nothing else ever is."""

from __future__ import annotations

import functools
import random
from types import SimpleNamespace

import lies
import lying_checkpoints as lying
import pytest
from graphdock_storage.checkpoint import open_checkpoint
from graphdock_storage.checkpoint.crc32c import crc32c
from graphdock_tensorflow.plugin import register_checkpoint_formats

open_checkpoint = functools.partial(open_checkpoint, others=register_checkpoint_formats)

pytest.importorskip("google.protobuf")
CASES = [pytest.param(range(150), id="sample"), pytest.param(range(150, 4000), id="rest", marks=pytest.mark.exhaustive)]
FORMS = ("own", "v1", "v2")


@pytest.fixture
def files(tensorflow_files, monkeypatch):
    monkeypatch.setattr(tensorflow_files, "crc32c", crc32c)  # which is fast; the writer's own sums bit by bit
    return tensorflow_files


def written(folder, files, form, seed):
    """A case, and the name of what was written of it."""
    rng, crc = random.Random(f"{form} {seed}"), lying.sum_of(form)
    case = lying.honest(rng, crc)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        lying.lie(rng, case, crc)
    prefix, table = str(folder / "m"), form != "own" and rng.random() < 0.25
    if table:
        case.told.append("table")
    if form == "own":
        lying.write_own(prefix, case, files)
    else:
        {"v1": lying.write_v1, "v2": lying.write_v2}[form](prefix, case, files, rng, table)
    return case, prefix


def read(prefix):
    """Name -> values of the tensors that are read; and how often something was refused."""
    found, refused = {}, []

    def each():
        with open_checkpoint(prefix) as checkpoint:
            for name in checkpoint.tensors:
                refused.append(lies.refused(lambda: found.update({name: checkpoint.read(name)})))  # noqa: B023

    refused.append(lies.refused(each))
    return found, sum(e is not None for e in refused)


def differs(folder, files, monkeypatch, form, seed):
    """What is wrong with how a case is read, and how often something of it was refused."""
    case, prefix = written(folder, files, form, seed)
    with lies.canaries(monkeypatch):
        found, refused = read(prefix)
    names = [r.name for r in case.records]
    for record in case.records:
        values = found.pop(record.name, None)
        if names.count(record.name) > 1:
            continue  # the last one is meant, or none
        if values is None and not case.told:
            return f"{record} was refused", refused
        if values is None or (form == "v1" and "table" in case.told):
            continue  # a table of format V1 has the values too, which its lies change
        expected = lying.held(case, record, None if form == "v1" else lying.sum_of(form))
        if expected is None or values.shape != expected.shape or values.tobytes() != expected.tobytes():
            return f"{record} is {values}, not {expected}; told: {case.told}", refused
    return (f"{list(found)} are in no record" if found and "table" not in case.told else ""), refused


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seeds", CASES)
def test_what_is_read_is_what_is_said(tmp_path, files, monkeypatch, form, seeds):
    lied = 0
    for seed in seeds:
        wrong, refused = differs(tmp_path, files, monkeypatch, form, seed)
        assert not wrong, f"{form}, seed {seed}: {wrong}"
        lied += refused > 0
    assert len(seeds) / 4 < lied < len(seeds)


PLANTED = {
    "parts may overlap": {"graphdock_storage.checkpoint.reading.tile": lambda parts, whole: True},
    "a bool is any byte": dict.fromkeys(
        [
            "graphdock_storage.checkpoint.reading.checked",
            *(f"graphdock_tensorflow.checkpoints.{m}.checked" for m in ("bundle", "old_tensorflow")),
        ],
        lambda c, n, array: array,
    ),
    "checksums fit": {
        "graphdock_storage.checkpoint.reading.zlib": SimpleNamespace(crc32=lambda data, start=0: Any()),
        "graphdock_tensorflow.checkpoints.bundle.masked": lambda checksum: Any(),
    },
    "parts are in the tensor": {
        "graphdock_storage.checkpoint.slices._no_slice": lambda text, shape: ZeroDivisionError(text)
    },
}


class Any(int):
    """A number that equals every other."""

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False

    __hash__ = int.__hash__


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.sampled(8)
@pytest.mark.slow
def test_planted_faults_are_found(tmp_path, files, monkeypatch, form, planted):
    if (form, planted) == ("v1", "checksums fit"):
        return  # its values have none but those of their blocks
    for name, fault in PLANTED[planted].items():
        monkeypatch.setattr(name, fault)
    for seed in range(4000):
        try:
            if differs(tmp_path, files, monkeypatch, form, seed)[0]:
                return
        except ZeroDivisionError:
            return
    raise AssertionError("nothing was found")
