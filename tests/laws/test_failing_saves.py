"""A save whose file system refuses, at whichever call, leaves the last complete checkpoint, and may be tried again.

A program saves after each step. In one save a call that changes files fails: alone, with all that come after it, or, if it writes,
after a part of its bytes. Every call is failed once in each of these ways. Then what is there is restored in a new session, where
the losses go on bit for bit, and the first session saves again.
"""

from __future__ import annotations

import errno
import itertools
import os
import struct

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import GraphdockError
from graphdock_storage.checkpoint import files, writing
from graphdock_tf1.train import checkpoint_files

#: What changes files. ``close`` may report what an earlier write could not bring to a disk that is far away.
CALLS = ("open", "pwrite", "fsync", "replace", "unlink", "mkdir", "rmdir", "close")
KINDS = ("numbered", "same name", "sharded", "only the last")
WAYS = ("once", "from then on", "after a part")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EACCES)
STEPS = 4


class Failing:
    """The module os, of which the call of a number fails."""

    def __init__(self, number=-1, way="once", code=errno.ENOSPC):
        self.number, self.way, self.code = number, way, code
        self.calls = 0

    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in CALLS:
            return real
        if name == "fsync":
            real = _no_wait

        def call(*args, **kwargs):
            self.calls += 1
            if self.calls == self.number or (self.way == "from then on" and self.calls > self.number > 0):
                if name == "pwrite" and self.way == "after a part" and len(args[1]) > 1:
                    return real(args[0], memoryview(args[1])[: len(args[1]) // 2], args[2])
                if name == "close":
                    real(*args, **kwargs)
                raise OSError(self.code, os.strerror(self.code))
            if self.calls == self.number + 1 and name == "pwrite" and self.way == "after a part":
                raise OSError(self.code, os.strerror(self.code))
            return real(*args, **kwargs)

        return call


def _no_wait(fd):
    """What waits for the disk; here nobody cuts the power."""


class Program:
    """Training with a Saver of a kind, and what it gives when nothing fails."""

    def __init__(self, kind, folder):
        self.kind = kind
        with tf.Graph().as_default() as self.graph:
            tf.set_random_seed(5)
            self.data = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
            self.x = tf.placeholder(tf.float32, [None, 4])
            w = tf.get_variable("w", [4, 8], partitioner=tf.fixed_size_partitioner(2))
            v = tf.get_variable("v", [8, 1])
            self.loss = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(self.x, w)), v) - self.x[:, :1]))
            self.step = tf.train.get_or_create_global_step()
            self.train = tf.train.AdamOptimizer(0.05).minimize(self.loss, global_step=self.step)
            self.init = tf.global_variables_initializer()
            keep = {"only the last": 1}.get(kind, 3)
            self.saver = tf.train.Saver(max_to_keep=keep, sharded=kind == "sharded")
        with tf.Session(graph=self.graph) as sess:
            sess.run(self.init)
            self.initial = {v: sess.run(v) for v in self.graph.get_collection("variables")}
            self.losses = [self.steps(sess) for _ in range(STEPS)]
            with injected(Failing()):
                self.save(sess, folder)
            faults = Failing()
            with injected(faults):
                self.save(sess, folder)
            self.calls = faults.calls

    def steps(self, sess):
        return sess.run([self.loss, self.train], {self.x: np.roll(self.data, int(sess.run(self.step)), 0)})[0]

    def save(self, sess, folder):
        self.saver.save(sess, folder + "/m", **({} if self.kind == "same name" else {"global_step": self.step}))


class injected:  # noqa: N801 - a block
    """A block in which the package's files are written through another module os."""

    def __init__(self, module):
        self.module = module

    def __enter__(self):
        for user in (files, writing, checkpoint_files):
            user.os = self.module

    def __exit__(self, *_):
        for user in (files, writing, checkpoint_files):
            user.os = os


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return {kind: Program(kind, str(tmp_path_factory.mktemp("whole"))) for kind in KINDS}


def bits(losses):
    return [struct.pack("f", loss) for loss in losses]


def check(program, folder, faults):
    program.saver.set_last_checkpoints([])
    with tf.Session(graph=program.graph) as sess:
        for variable, value in program.initial.items():
            variable.load(value, sess)
        losses = [program.steps(sess)]
        with injected(Failing()):
            program.save(sess, folder)
        losses.append(program.steps(sess))
        before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        failed = False
        with injected(faults):
            try:
                program.save(sess, folder)
            except GraphdockError:
                failed = True
        if before:
            assert len(os.listdir("/proc/self/fd")) == before, "a file stays open"
        with tf.Session(graph=program.graph) as resumed:
            last = tf.train.latest_checkpoint(folder)
            program.saver.restore(resumed, last)
            done = int(resumed.run(program.step))
            assert done in ((1, 2) if failed else (2,))
            assert bits([*losses[:done], *(program.steps(resumed) for _ in range(STEPS - done))]) == bits(
                program.losses
            )
        with injected(Failing()):
            program.save(sess, folder)
    with tf.Session(graph=program.graph) as resumed:
        program.saver.restore(resumed, tf.train.latest_checkpoint(folder))
        assert resumed.run(program.step) == 2
    left = os.listdir(folder)
    assert program.kind != "same name" or not [n for n in left if n.startswith("m") and n.endswith(".tmp")], left
    assert not [name for name in left if name.endswith(".lock")], left
    return failed


PARTS = [pytest.param(11, id="sample"), pytest.param(1, id="all", marks=pytest.mark.exhaustive)]


@pytest.mark.parametrize("every", PARTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
@pytest.mark.sampled(6)
def test_a_call_that_fails_loses_nothing(tmp_path, programs, kind, every):
    program = programs[kind]
    cases = list(itertools.product(range(1, program.calls + 1), WAYS))[::every]
    failed = 0
    for i, (number, way) in enumerate(cases):
        folder = tmp_path / str(i)
        folder.mkdir()
        failed += check(program, str(folder), Failing(number, way, ERRORS[i % len(ERRORS)]))
    assert failed >= len(cases) // 4
