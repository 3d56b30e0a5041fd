"""A process that is killed while it saves leaves the last complete checkpoint, and training goes on from it as if nothing had been.

A child trains, and saves after every step, now under a new name, now under one that is there. It is killed at a moment that a file
operation of its save marks, or at a random time between two. What it leaves is restored in a new process's place, and the losses
from there on are those of a run that nobody killed, bit for bit.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = '''
import json, os, random, signal, struct, sys
import graphdock as tf
import numpy as np
from graphdock_storage.checkpoint import files, writing

with tf.Graph().as_default(), tf.Session() as sess:
    sess.run(tf.constant(1.0) + 1.0)  # importing is dear, and done once: each request is answered by a fork
sys.stdout.write("ready\\n")
sys.stdout.flush()
for line in sys.stdin:
    folder, until, kill_at, seed, kind, log = json.loads(line)
    child = os.fork()
    if not child:
        break
    _, status = os.waitpid(child, 0)
    sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\\n")
    sys.stdout.flush()
else:
    sys.exit()
sys.stdout = open(log, "w")
rng = random.Random(seed)

class Marked:
    """The module os; at the given number of calls that change files, the process is killed before or after it."""
    calls = 0
    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in ("open", "pwrite", "fsync", "replace", "unlink", "mkdir", "rmdir"):
            return real
        def call(*args, **kwargs):
            Marked.calls += 1
            if Marked.calls == kill_at and rng.random() < 0.5:
                os.kill(os.getpid(), signal.SIGKILL)
            if Marked.calls == kill_at and name == "pwrite":
                args = (args[0], memoryview(args[1])[: rng.randrange(len(args[1]) + 1)], args[2])
            try:
                return real(*args, **kwargs)
            finally:
                if Marked.calls == kill_at:
                    os.kill(os.getpid(), signal.SIGKILL)
        return call

files.os = writing.os = Marked()
tf.set_random_seed(5)
data = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
x = tf.placeholder(tf.float32, [None, 4])
w = tf.get_variable("w", [4, 64], partitioner=tf.fixed_size_partitioner(2))
v = tf.get_variable("v", [64, 1])
loss = tf.reduce_mean(tf.square(tf.matmul(tf.tanh(tf.matmul(x, w)), v) - x[:, :1]))
step = tf.train.get_or_create_global_step()
train = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=step)
saver = tf.train.Saver(max_to_keep=2, sharded=kind == "sharded")
with tf.Session() as sess:
    last = tf.train.latest_checkpoint(folder)
    if last is None:
        sess.run(tf.global_variables_initializer())
    else:
        saver.restore(sess, last)
        saver.recover_last_checkpoints(tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths)
    for i in range(int(sess.run(step)), until):
        value, _ = sess.run([loss, train], {x: np.roll(data, i, 0)})
        print(i, struct.pack("f", value).hex(), flush=True)
        saver.save(sess, folder + "/m", **({} if kind == "same name" else {"global_step": step}))
print("calls", Marked.calls, flush=True)
'''

STEPS = 4


@pytest.fixture(scope="module")
def trained():
    """Trains in a process of its own: ``trained(folder, until, ...)`` gives its exit status, and the lines it printed."""
    environment = {k: v for k, v in os.environ.items() if k != "GRAPHDOCK_DEBUG"}
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        assert server.stdout.readline() == "ready\n"

        def run(folder: Path, until: int, kill_at: int = -1, seed: int = 0, kind: str = "numbered"):
            folder.mkdir(exist_ok=True)
            log = folder.with_suffix(".log")
            server.stdin.write(json.dumps([str(folder), until, kill_at, seed, kind, str(log)]) + "\n")
            server.stdin.flush()
            status = int(server.stdout.readline())
            assert status in (0, -signal.SIGKILL)
            return status, [line.split() for line in log.read_text().splitlines()]

        yield run
        server.stdin.close()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, trained):
    """Kind of saving -> step -> its loss, and how many file operations there are."""
    found = {}
    for kind in ("numbered", "same name", "sharded"):
        _, lines = trained(tmp_path_factory.mktemp("whole") / "run", STEPS, kind=kind)
        found[kind] = (dict(lines[:-1]), int(lines[-1][1]))
    return found


SEEDS = [pytest.param(range(6), id="sample"), pytest.param(range(6, 200), id="rest", marks=pytest.mark.exhaustive)]


@pytest.mark.slow
@pytest.mark.parametrize("seeds", SEEDS)
def test_the_last_complete_checkpoint_is_restored(tmp_path, trained, undisturbed, seeds):
    killed = 0
    for seed in seeds:
        kind = ("numbered", "same name", "sharded")[seed % 3]
        losses, calls = undisturbed[kind]
        folder = tmp_path / str(seed)
        status, before = trained(folder, STEPS, random.Random(seed).randrange(1, calls + 1), seed, kind)
        assert status == -signal.SIGKILL, seed
        killed += 1
        done = len(before)  # steps, of which the last one's save was cut off, or was complete
        status, after = trained(folder, STEPS, kind=kind)
        assert status == 0, seed
        resumed = dict(after[:-1])
        first = min(map(int, resumed), default=STEPS)
        assert done - 1 <= first <= done, (seed, "one save is lost at most")
        assert dict(before) | resumed == losses and resumed.items() <= losses.items(), (seed, "bitwise")
        rest = [p.name for p in folder.iterdir() if p.name.startswith("m") and p.suffix == ".index"]
        assert 1 <= len(rest) <= 3, (seed, rest)
    assert killed == len(seeds)
