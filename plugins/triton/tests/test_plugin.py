"""The plugin as a package: what importing and finding it costs, and what is said where something is missing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from graphdock.plugin.host import Host
from graphdock_triton.operations import calls
from graphdock_triton.operations.table import OPERATIONS


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_finding_and_loading_the_plugin_imports_neither_triton_nor_cupy():
    out = python(
        "import sys, graphdock as tf; b = tf.default_host().backend('triton');"
        "print([m for m in ('triton', 'cupy', 'torch', 'jinja2') if m in sys.modules])"
    )
    assert out.strip() == "[]"


def test_it_owns_no_device_and_brings_a_region_compiler():
    out = python(
        "import graphdock as tf; h = tf.default_host(); b = h.backend('triton');"
        "print(b.device_types, [c.full_name for c in h.region_compilers.of_plugin('triton')])"
    )
    assert out.split() == ["()", "['triton.region']"]


def test_without_triton_the_plugin_says_what_to_install():
    code = (
        "import sys; sys.modules['triton'] = None;"
        "import graphdock as tf;"
        "state = next(p for p in tf.default_host().plugins() if p.name == 'triton'); print(state.stage, state.error, state.hint)"
    )
    out = python(code)
    assert "missing module" in out and "triton" in out


@pytest.mark.parametrize("missing", ["cuda"])
def test_without_the_cuda_backend_nothing_is_claimed(missing):
    out = python(
        "import graphdock as tf; x = tf.placeholder(tf.float32, [4]);"
        "s = tf.Session(config=tf.SessionConfig(backends=['triton', 'cpu']));"
        "print(s.explain(tf.tanh(x) * 2.0, {x: [1., 2., 3., 4.]}).kernels())"
    )
    assert "triton" not in out and "cpu.tanh" in out


def test_what_is_said_to_be_lacking_is_lacking_and_the_page_names_the_ops_that_need_no_pattern():
    host = Host()
    host.backend("triton")
    state = next(s for s in host.plugins() if s.name == "triton")
    stated = {op for row in state.manifest.unsupported for op in row.ops}
    assert stated <= set(host.ops.names()) and stated.isdisjoint(o.op for o in OPERATIONS)
    mine = {(o.op, o.name or o.kernel) for o in OPERATIONS if o not in calls.CALLS and o.op != "FusedConv2D"}
    page = (Path(__file__).parents[3] / "docs" / "use-a-gpu.md").read_text()
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `") and "`triton." in line]
    named = [re.findall(r"`(?:triton\.)?(\w+)`", cell) for row in rows for cell in row]
    assert {
        pair for ops, kernels in zip(named[::2], named[1::2], strict=True) for pair in zip(ops, kernels, strict=True)
    } == mine
