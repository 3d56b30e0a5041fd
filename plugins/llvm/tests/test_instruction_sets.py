"""Instruction sets: code for less than the CPU has agrees with NumPy's kernels, and NEON's compiles, which nobody has run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

PROGRAM = """
import json, sys
import numpy as np
import graphdock as tf
from graphdock_llvm import target

random = np.random.default_rng(0)
x = tf.placeholder(tf.float32, [40, 72])
w, b = (tf.Variable(random.normal(size=s).astype("f") / 4) for s in ((72, 96), (96,)))
h = tf.nn.relu(tf.matmul(x, w) + b)
parts = tf.split(tf.tanh(h) * tf.sigmoid(h), 3, 1)
image = tf.nn.conv2d(tf.reshape(x, [5, 8, 72, 1]), tf.reshape(w, [3, 4, 1, 576])[..., :16], 1, "SAME")
loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=parts[0] - parts[1], labels=tf.nn.softmax(parts[2])))
rows = tf.tanh(tf.gather(w, [3, 0, 71])) * 2
halves = tf.cast(h, tf.float16)
rounded = tf.cast(tf.cast(h * 1.5 + 1.0, tf.float16), tf.float32) * 2.0  # a half between alone
fetched = [loss, rows, tf.reduce_sum(tf.exp(h / 9) * tf.erf(h), 0), tf.reduce_max(image, [1, 2]), tf.log1p(h), halves, rounded]
apart = tf.reshape(h, [5, 8, 4, 24])
fetched += [*tf.nn.moments(apart, [0, 2, 3]), tf.reduce_max(apart * apart, [1, 3])]
train = tf.train.AdamOptimizer(0.01).minimize(loss)
feed = {x: random.normal(size=(40, 72)).astype("f")}
"""

RUNS = """
texts, objects, make = [], [], target._object
target._object = lambda text, *more: texts.append(text) or objects.append(make(text, *more)) or objects[-1]
found = []
for backends in (("llvm", "cpu"), ("cpu",)):
    with tf.Session(config=tf.SessionConfig(backends=backends)) as session:
        session.run(tf.global_variables_initializer())
        losses = [float(session.run([loss, train], feed)[0]) for _ in range(5)]
        found.append(losses + [np.asarray(v, "d").ravel().tolist() for v in session.run(fetched, feed)])
wide = ["<16 x float>" in text for text in texts]
called = [name for name in ("fmaf", "fma", "expf", "rintf") if any(f"\\0{name}\\0".encode() in o for o in objects)]
print(json.dumps([target.width(), target.described(), any(wide), len(texts), found, called]))
"""

COMPILES = """
import contextlib
import platform

import llvmlite.binding as llvm
from graphdock_llvm import pool

pool.pool_address()  # this process's own
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
found = llvm.Target.from_triple("aarch64-unknown-linux-gnu")
machine = found.create_target_machine(cpu="neoverse-n1", opt=3)
platform.machine = lambda: "aarch64"
target._features = lambda: {"neon": True}
fused = []


def compile(text, names, kept=True, optimized=False):
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    target._simplify(module)
    assert machine.emit_object(module)[:4] == b"\\x7fELF"
    fused.append("fmla" in machine.emit_assembly(module))
    return (0,) * len(names)


target._compile = compile
with contextlib.suppress(RuntimeError):  # it would call what was compiled
    pool._make()
assert fused
with tf.Session(config=tf.SessionConfig(backends=("llvm", "cpu"))) as session:
    kernels = session.explain([loss, train, *fetched], feed).kernels()
print(json.dumps([target.width(), len(fused), any(fused), sum(n for k, n in kernels.items() if k.startswith("llvm."))]))
"""


def run(code: str, isa: str, cache: Any) -> Any:
    variables = {**os.environ, "LLVM_MAX_CPU_ISA": isa, "GRAPHDOCK_CACHE_DIR": str(cache)}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM + code], env=variables, capture_output=True, text=True, check=False
    )
    assert not found.returncode, found.stderr
    return json.loads(found.stdout.splitlines()[-1])


@pytest.mark.parametrize(("isa", "lanes"), [("avx512", 16), ("avx2", 8), ("baseline", 4)])
def test_code_for_less_than_the_cpu_has_agrees_with_numpys_kernels(isa, lanes, tmp_path):
    width, said, wide, count, (got, want), called = run(RUNS, isa, tmp_path)
    assert not called, "scalar functions of a library"
    assert said.startswith("LLVM ") and said.endswith(f"{width} float32 a vector")
    assert width <= lanes and wide == (width == 16) and count > 3
    for a, b in zip(got, want, strict=True):
        assert a == pytest.approx(b, rel=2e-3, abs=1e-4)


def test_neon_compiles(tmp_path):
    width, count, multiplies, taken = run(COMPILES, "avx512", tmp_path)
    assert width == 4 and count > 3 and multiplies and taken > 3


def test_another_name_is_refused_with_those_that_are_there(tmp_path):
    with pytest.raises(
        AssertionError, match=r"LLVM_MAX_CPU_ISA names no instruction set\n +expected one of avx512, avx2, baseline"
    ):
        run(RUNS, "avx3", tmp_path)
