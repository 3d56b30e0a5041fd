"""The plugin as a package: what importing and finding it costs, and what is said where something is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest


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
        "import importlib.util as u, sys; real = u.find_spec;"
        "u.find_spec = lambda name, package=None: None if name == 'triton' else real(name, package);"
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
