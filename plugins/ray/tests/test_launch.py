"""``graphdock cluster``: a script as several tasks, by flags and by TF_CONFIG; failures, and the state of a cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from graphdock.contracts import TaskName
from graphdock_cluster.launch import addresses_of, flags_of, local_places, tasks_of

SCRIPT = """
import json, os
import tensorflow as tf

tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
tf.app.flags.DEFINE_string("ps_hosts", "", "")
tf.app.flags.DEFINE_string("worker_hosts", "", "")
tf.app.flags.DEFINE_integer("steps", 3, "")
FLAGS = tf.app.flags.FLAGS


def main(_):
    assert json.loads(os.environ["TF_CONFIG"])["task"] == {"type": FLAGS.job_name, "index": FLAGS.task_index}
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        count = tf.Variable(0, name="count")
        more = tf.assign_add(count, 1)
    with tf.Session(server.target) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(FLAGS.steps):
            total = sess.run(more)
    print("counted", total)
    if FLAGS.steps > 5:
        raise SystemExit(7)


tf.app.run()
"""


def graphdock(*arguments, folder):
    command = [sys.executable, "-m", "graphdock", "cluster", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.exhaustive
def test_a_script_of_flags_runs_as_a_server_and_a_worker(script, tmp_path):
    done = graphdock("run", "--on", "processes", "--ps", 1, "--workers", 1, script, "--steps=4", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[/job:worker/task:0] counted 4" in done.stdout


@pytest.mark.exhaustive
def test_a_task_that_fails_ends_the_others_and_gives_its_status(script, tmp_path):
    done = graphdock("run", "--on", "processes", script, "--steps=6", folder=tmp_path)
    assert done.returncode == 7, done.stdout + done.stderr
    assert "[/job:worker/task:0] ended with status 7" in done.stdout


@pytest.mark.slow
def test_status_tells_which_tasks_answer(tmp_path):
    import graphdock as tf

    cluster = addresses_of(local_places(tasks_of(1, 1)))
    server = tf.train.Server(cluster, "worker", 0)
    done = graphdock("status", server.target, folder=tmp_path)
    server.stop()
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert any(line.startswith("/job:ps/task:0") and "does not answer" in line for line in lines)
    assert any(line.startswith("/job:worker/task:0") and "cpu:0" in line for line in lines)


def test_a_script_gets_the_flags_that_it_names(tmp_path):
    path = Path(tmp_path / "s.py")
    path.write_text(
        "flags.DEFINE_string('ps_hosts', '', '')\nflags.DEFINE_integer(\"task_index\", 0, '')\n# job_name\n"
    )
    cluster = {"ps": ["a:1", "b:2"], "worker": ["c:3"]}
    assert flags_of(path, cluster, TaskName("ps", 1)) == ["--task_index=1", "--ps_hosts=a:1,b:2"]
