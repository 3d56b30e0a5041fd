"""The library: found late, said what is wrong with it, and shown."""

from __future__ import annotations

import os
import subprocess
import sys

import graphdock as tf
import numpy as np
import pytest
from graphdock_onednn import library as module


def program(sess_options="", before=""):
    return f"""
import sys
{before}
import graphdock as tf
import numpy as np
x = tf.placeholder(tf.float32, [20, 20])
y = tf.matmul(x, x)
with tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"){sess_options})) as sess:
    try:
        sess.run(y, {{x: np.ones((20, 20))}})
    except tf.errors.FailedPreconditionError as error:
        print(error)
"""


def output(text, **environment):
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_file_is_named_from_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "libdnnl.so").write_bytes(b"no library at all")
    monkeypatch.chdir(tmp_path)
    told = output(program(', options={"onednn": {"library": "libdnnl.so"}}'))
    assert f"{tmp_path}/libdnnl.so can't be opened" in told and "file too short" in told


@pytest.mark.parametrize("share", [0.1, 0.7, 0.999])
def test_a_file_that_is_cut_short_is_refused(tmp_path, share):
    try:
        whole = module.find()
    except tf.errors.FailedPreconditionError as error:
        pytest.skip(str(error))
    cut = tmp_path / "libdnnl.so"
    with open(whole, "rb") as file:
        cut.write_bytes(file.read(int(os.path.getsize(whole) * share)))
    told = output(program(f', options={{"onednn": {{"library": {str(cut)!r}}}}}'))
    assert f"{cut} is cut short" in told


def test_nothing_is_opened_before_a_plan_chooses_a_kernel():
    text = """
import sys
import graphdock as tf
import numpy as np
x = tf.placeholder(tf.float32, [2, 2])
with tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"))) as sess:
    sess.run(x + 1.0, {x: np.ones((2, 2))})
    assert "cffi" not in sys.modules
    assert "libdnnl" not in open("/proc/self/maps").read() if sys.platform.startswith("linux") else True
with tf.Session() as sess:
    sess.run(tf.matmul(x, x), {x: np.ones((2, 2))})
assert not any(name.startswith("graphdock_onednn.") for name in sys.modules if name != "graphdock_onednn.plugin")
"""
    output(text)


def test_a_file_that_is_not_there_is_said():
    told = output(program(', options={"onednn": {"library": "/nowhere/libdnnl.so"}}'))
    assert "options.onednn.library names no file" in told and "/nowhere/libdnnl.so" in told and "pip install" in told


def test_a_file_that_is_no_library_is_said(tmp_path):
    file = tmp_path / "libdnnl.so"
    file.write_text("no library")
    told = output(program(f', options={{"onednn": {{"library": {str(file)!r}}}}}'))
    assert "can't be opened as a library of oneDNN" in told and "libgomp" in told


def test_another_library_is_no_onednn():
    import math

    if not getattr(math, "__file__", ""):
        pytest.skip("this Python has no library of its own beside it")
    told = output(program(f', options={{"onednn": {{"library": {math.__file__!r}}}}}'))
    assert "can't be opened as a library of oneDNN" in told


def test_without_the_wheel_the_line_of_installation_is_said(monkeypatch):
    found = {"onednn": None}

    def version(name):
        if found.get(name) is None:
            raise module.metadata.PackageNotFoundError(name)
        return found[name]

    def files(name):
        raise module.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(module.metadata, "version", version)
    monkeypatch.setattr(module.metadata, "files", files)
    with pytest.raises(tf.errors.FailedPreconditionError, match="finds no library of oneDNN") as raised:
        module.find()
    assert "pip install graphdock-onednn onednn-cpu-gomp" in str(raised.value) and "SYCL" not in str(raised.value)
    found["onednn"] = "2025.0"
    with pytest.raises(tf.errors.FailedPreconditionError, match="SYCL"):
        module.find()


def test_without_cffi_the_plugin_says_what_to_install():
    text = """
import sys
sys.modules["cffi"] = None
import graphdock as tf
try:
    tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu")))
except tf.errors.GraphdockError as error:
    print(error)
"""
    told = output(text)
    assert "cffi" in told and "pip install graphdock-onednn" in told


def test_the_doctor_says_which_library_and_instruction_set():
    pytest.importorskip("cffi")
    try:
        found = module.library()
    except tf.errors.FailedPreconditionError as error:
        pytest.skip(str(error))
    told = subprocess.run(
        [sys.executable, "-m", "graphdock", "doctor", "onednn"], capture_output=True, text=True, timeout=120
    ).stdout
    assert f"oneDNN {found.version} on {found.isa}: {found.path}" in told


def test_a_session_with_a_file_of_its_own_uses_it():
    try:
        path = module.find()
    except tf.errors.FailedPreconditionError as error:
        pytest.skip(str(error))
    x = tf.placeholder(tf.float32, [20, 20])
    options = {"onednn": {"library": path}}
    with tf.Session(config=tf.SessionConfig(backends=("onednn", "cpu"), options=options)) as sess:
        np.testing.assert_allclose(sess.run(tf.matmul(x, x), {x: np.ones((20, 20))}), 20.0)
