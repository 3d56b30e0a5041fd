"""Faults at random in synchronous training: tasks killed and started anew, connections cut; it goes on as if nothing had been.

Each task is a thread with a host of its own, over a seeded network. After all faults every checkpoint, and the losses of the chief,
are bitwise those of an undisturbed run of one process: what was lost is computed again from the last save, and no gradient counts
twice.
"""

from __future__ import annotations

import functools
import glob
import random
import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock_testing.thread_cluster import ThreadCluster

STEPS, SAVED = 8, 2
DATA = np.random.default_rng(0).normal(size=(2, STEPS + 2, 5, 3)).astype(np.float32)
FAULTS = [(what, task) for what in ("kill", "cut") for task in ("ps0", "ps1", "worker0", "worker1")]


def model(replica, step):
    """The loss of a replica's rows of a step, the variables, and the optimizer."""
    w = tf.get_variable("w", initializer=np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2))
    b = tf.get_variable("b", initializer=np.zeros(2, np.float32))
    rows = tf.gather(tf.constant(DATA[replica]), step)
    return tf.reduce_mean((tf.matmul(rows, w) + b) ** 2), [w, b], tf.train.MomentumOptimizer(0.1, 0.9)


@functools.cache
def undisturbed():
    """Losses of the first replica, and what a checkpoint of each step holds, in one process."""
    with tf.Graph().as_default():
        step = tf.placeholder(tf.int64, [])
        loss, variables, optimizer = model(0, step)
        with tf.variable_scope("", reuse=True):
            both = [optimizer.compute_gradients(each, variables) for each in (loss, model(1, step)[0])]
        mean = [((a + b) / 2.0, v) for (a, v), (b, _) in zip(*both, strict=True)]
        train = optimizer.apply_gradients(mean)
        every = tf.global_variables()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            losses, states = [], [session.run(every)]
            for number in range(STEPS + 2):
                losses.append(session.run([loss, train], {step: number})[0])
                states.append(session.run(every))
    return losses, [{v.op.name: value for v, value in zip(every, state, strict=True)} for state in states]


class Notes(tf.train.SessionRunHook):
    """Notes the loss of each step, and counts the steps that begin."""

    def __init__(self, step, loss, losses, began):
        self.fetches, self.losses, self.began = [step, loss], losses, began

    def before_run(self, context):
        self.began()
        return tf.train.SessionRunArgs(self.fetches)

    def after_run(self, context, values):
        step, loss = values.results
        self.losses[int(step)] = loss


class Run:
    """One training with its faults.

    Args:
      seed: of the network and the faults. folder: of the checkpoints. count: how many faults.
    """

    def __init__(self, seed, folder, count):
        self.random, self.folder = random.Random(seed), str(folder)
        self.losses = {}
        self.lock = threading.Condition()
        self.begun = 0
        self.errors = []
        with ThreadCluster({"ps": 2, "worker": 2}, seed) as self.cluster:
            self.threads = {number: self.process(number) for number in (0, 1)}
            self.told = []
            for at in sorted(self.random.randrange(1, 3 * STEPS) for _ in range(count)):
                with self.lock:
                    self.lock.wait_for(lambda at=at: self.begun >= at or not self.threads[0].is_alive(), 60)
                if self.threads[0].is_alive():
                    self.fault(*self.random.choice(FAULTS))
            self.threads[0].join(40)
            ended = not self.threads[0].is_alive()
            self.cluster.kill("worker1")
            self.threads[1].join(60)
            assert ended and not self.threads[1].is_alive(), f"it hangs after {self.told}"

    def fault(self, what, task):
        self.told.append((self.begun, what, task))
        if what == "cut":
            self.cluster.cut_off(task)
            self.cluster.heal(task)
            return
        self.cluster.kill(task)
        if task.startswith("worker"):
            thread = self.threads[int(task[-1])]
            thread.join(60)
            assert not thread.is_alive(), f"{task} was killed and goes on"
        self.cluster.start(task)
        if task.startswith("worker"):
            self.threads[int(task[-1])] = self.process(int(task[-1]))

    def process(self, number):
        thread = threading.Thread(target=self.train, args=(number,), name=f"worker{number}", daemon=True)
        thread.start()
        return thread

    def began(self):
        with self.lock:
            self.begun += 1
            self.lock.notify_all()

    def train(self, number):
        try:
            self._train(number, self.cluster.server(f"worker{number}"))
        except tf.errors.CancelledError as error:
            if "was killed" not in str(error):
                self.errors.append(error)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.errors.append(error)
        finally:
            with self.lock:
                self.lock.notify_all()

    def _train(self, number, server):
        own = f"/job:worker/task:{number}"
        with tf.Graph(server.host).as_default():
            with tf.device(tf.train.replica_device_setter(cluster=self.cluster.spec, worker_device=own)):
                step = tf.train.get_or_create_global_step()
                at = tf.identity(step)
                loss, variables, optimizer = model(number, at)
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, 2)
                train = optimizer.minimize(loss, step, variables)
            hooks = [
                optimizer.make_session_run_hook(not number, num_tokens=0),
                Notes(at, loss, {} if number else self.losses, self.began),
                tf.train.StopAtStepHook(last_step=STEPS),
            ]
            with tf.train.MonitoredTrainingSession(
                server.target,
                not number,
                None if number else self.folder,
                hooks=hooks,
                save_checkpoint_steps=SAVED,
                save_summaries_steps=None,
                config=tf.SessionConfig(device_filters=["/job:ps", own]),
                stop_grace_period_secs=20,
            ) as session:
                while not session.should_stop():
                    session.run(train)


def check(run):
    """Hold what a run has left to an undisturbed one."""
    losses, states = undisturbed()
    assert not run.errors, (run.told, run.errors)
    assert [run.losses[i] for i in range(STEPS)] == losses[:STEPS], run.told
    found = glob.glob(f"{run.folder}/model.ckpt-*.index")
    assert found
    for path in found:
        saved = tf.train.load_checkpoint(path.removesuffix(".index"))
        state = states[int(saved.get_tensor("global_step"))]
        for name, value in state.items():
            np.testing.assert_array_equal(saved.get_tensor(name), value, err_msg=f"{path}, {name}, {run.told}")


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(1, 300))])
def test_training_goes_on_from_the_last_save(seed, tmp_path):
    check(Run(seed, tmp_path, 1 + seed % 4))
