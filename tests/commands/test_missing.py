"""What a backend lacks, with the reasons that its manifest states."""

from __future__ import annotations

import json
from pathlib import Path

import graphdock as tf
import pytest
from click.testing import CliRunner
from graphdock.plugin.host import Host
from graphdock.plugin.manifest import loads
from graphdock_commands.kernels import command
from graphdock_commands.missing import IN_REGIONS, UNSTATED, missing

UPPER = """schema = 1
[plugin]
name = "chip"
summary = "A chip"
api = ">=0.3,<0.4"
[[unsupported]]
reason = "the chip has no strings"
ops = ["StringJoin", "StringLength"]
"""


def test_a_manifest_says_what_is_lacking_and_why() -> None:
    (row,) = loads(UPPER, Path("chip/graphdock-plugin.toml")).unsupported
    assert (row.reason, row.ops) == ("the chip has no strings", ("StringJoin", "StringLength"))


def test_the_old_name_of_the_table_is_an_error_that_says_the_new_one() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="unknown key 'lacks'") as caught:
        loads(UPPER.replace("[[unsupported]]", "[[lacks]]"), Path("chip/graphdock-plugin.toml"))
    assert caught.value.hint == "it is called 'unsupported' since contracts 0.3"


def test_ops_that_are_unsupported_without_a_reason_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="reason"):
        loads(UPPER.replace('reason = "the chip has no strings"', ""), Path("chip/graphdock-plugin.toml"))


def test_what_cpu_lacks_is_nothing() -> None:
    found = missing(Host(), "cpu")
    assert found["missing"] == [] and found["kernels"] == found["ops"] > 300


def test_what_a_gpu_lacks_is_listed_with_what_runs_instead() -> None:
    found = json.loads(CliRunner().invoke(command, ["--missing", "cuda", "--json"]).stdout)
    rows = {row["op"]: row for row in found["missing"]}
    assert found["ops"] == found["kernels"] + len(rows)
    assert "Add" not in rows
    assert rows["StringJoin"]["instead"].startswith("a fallback")


def test_what_fuses_says_what_it_takes_in_regions_and_whose_kernels_stand_beside_it() -> None:
    found = missing(Host(), "triton")
    rows = {row["op"]: row for row in found["missing"]}
    assert (rows["Tanh"]["reason"], rows["Tanh"]["instead"]) == (IN_REGIONS, "the kernel of cuda")
    assert (rows["Cholesky"]["reason"], rows["Cholesky"]["instead"]) == (UNSTATED, "the kernel of cuda")
    assert rows["ResourceApplyAdam"]["reason"].startswith("the cuda plugin joins updates")
    assert rows["StringJoin"]["instead"] == "a fallback, by the session's policy"


def test_an_op_and_a_backend_are_one_too_many() -> None:
    result = CliRunner().invoke(command, ["Add", "--missing", "cpu"])
    assert result.exit_code == 2 and "--missing" in result.output


def test_a_backend_that_is_not_there_is_named() -> None:
    with pytest.raises(tf.errors.UnknownBackendError, match="cudda"):
        missing(Host(), "cudda")
