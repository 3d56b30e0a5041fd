"""``graphdock cluster run --on ray`` over two raylets: the script of all tasks, its state, failures, Ctrl-C; nothing is left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = """
import json, os
import tensorflow as tf
tf.app.flags.DEFINE_string("job_name", "", "")
tf.app.flags.DEFINE_integer("task_index", 0, "")
tf.app.flags.DEFINE_integer("steps", 3, "")
FLAGS = tf.app.flags.FLAGS
cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
server = tf.train.Server(cluster, FLAGS.job_name, FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=cluster)):
    more = tf.assign_add(tf.Variable(0, name=f"count{FLAGS.task_index}"), 1)
with tf.Session(server.target) as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(FLAGS.steps):
        total = sess.run(more)
print("counted", total)
"""
FOREVER = """
import json, os
import tensorflow as tf
cluster = json.loads(os.environ["TF_CONFIG"])
server = tf.train.Server(cluster["cluster"], cluster["task"]["type"], cluster["task"]["index"])
print("serves", os.getpid(), flush=True)
server.join()
"""


def command(*arguments):
    return [sys.executable, "-m", "graphdock", "cluster", *map(str, arguments)]


def graphdock(*arguments, folder):
    return subprocess.run(command(*arguments), cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def left(cluster, ray):
    return [a for a in ray.util.list_named_actors(all_namespaces=True) if a["namespace"] == f"graphdock:{cluster}"]


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def segments():
    return {p.name for p in Path("/dev/shm").glob("graphdock-*")}


@pytest.mark.slow
def test_a_script_runs_over_both_raylets(raylets, cluster, tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    done = graphdock(
        "run", "--on", "ray", "--cluster", cluster, "--ps", 1, "--workers", 2, "train.py", "--steps=4", folder=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert {f"[/job:worker/task:{n}] counted 4" in done.stdout for n in range(2)} == {True}
    assert not left(cluster, raylets)


@pytest.mark.slow
def test_a_task_that_fails_is_begun_anew_as_often_as_is_said(raylets, cluster, tmp_path):
    (tmp_path / "once.py").write_text(
        "import os, sys\nprint('began', flush=True)\n"
        "if not os.path.exists('seen'):\n    open('seen', 'w').close()\n    sys.exit(3)\n"
    )
    arguments = ("run", "--on", "ray", "--cluster", cluster, "--ps", 0, "--restarts")
    done = graphdock(*arguments, 1, "once.py", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("began") == 2 and "ended with status 3, and is started anew" in done.stdout
    os.remove(tmp_path / "seen")
    assert graphdock(*arguments, 0, "once.py", folder=tmp_path).returncode == 3


@pytest.mark.slow
def test_status_and_targets_reach_it_and_ctrl_c_leaves_nothing(raylets, cluster, tmp_path):
    (tmp_path / "serve.py").write_text(FOREVER)
    before = segments()
    running = subprocess.Popen(
        command("run", "--on", "ray", "--cluster", cluster, "--workers", 2, "serve.py"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = []
    while sum("serves" in line for line in lines) < 3:
        lines.append(running.stdout.readline())
        assert lines[-1], lines
    pids = [int(m[1]) for line in lines if (m := re.search(r"serves (\d+)", line))]
    actors = [raylets.get_actor(a["name"], namespace=a["namespace"]) for a in left(cluster, raylets)]
    nodes = {
        raylets.get(a.__ray_call__.remote(lambda self: __import__("ray").get_runtime_context().get_node_id()))
        for a in actors
    }
    assert len(nodes) == 2, "both raylets"
    said = graphdock("status", f"ray://{cluster}", folder=tmp_path)
    assert said.returncode == 0 and len(re.findall(r"^/job:\w+/task:\d .*cpu:0", said.stdout, re.M)) == 3, said
    taken = graphdock("run", "--on", "ray", "--cluster", cluster, "serve.py", folder=tmp_path)
    assert taken.returncode and "on Ray already" in taken.stderr
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    for _ in range(500):
        if not any(Path(f"/proc/{pid}").exists() for pid in pids) and not left(cluster, raylets):
            break
        time.sleep(0.01)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()] and not left(cluster, raylets)
    assert segments() <= before


@pytest.mark.slow
def test_the_script_of_a_killed_actor_dies_with_it_and_ends_the_run(raylets, cluster, tmp_path):
    (tmp_path / "serve.py").write_text(FOREVER)
    running = subprocess.Popen(
        command("run", "--on", "ray", "--cluster", cluster, "--workers", 1, "serve.py"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = []
    while sum("serves" in line for line in lines) < 2:
        lines.append(running.stdout.readline())
        assert lines[-1], lines
    pids = [int(m[1]) for line in lines if (m := re.search(r"serves (\d+)", line))]
    raylets.kill(raylets.get_actor("/job:ps/task:0", namespace=f"graphdock:{cluster}"))
    rest = running.stdout.read()
    assert running.wait(60) == 70 and "the actor that ran /job:ps/task:0 is lost" in rest
    for _ in range(500):  # the kernel kills it, and somebody has to take note
        if not any(_runs(pid) for pid in pids):
            break
        time.sleep(0.01)
    assert not [pid for pid in pids if _runs(pid)]
