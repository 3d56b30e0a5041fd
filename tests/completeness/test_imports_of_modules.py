"""``from graphdock import MODULE`` asks the façade first: no import of ours makes it look for a name in vain."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """\
import importlib
import pkgutil

import graphdock

missing = graphdock._missing
graphdock._missing = lambda prefix, name: print("missing:", prefix + name) or missing(prefix, name)
count = 0
for room in ("", "_cpu", "_customop", "_executor", "_fusion", "_planner", "_profiler", "_std", "_storage", "_tensorflow", "_tf1"):
    package = importlib.import_module("graphdock" + room)
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
            count += 1
print(count)
"""


FIRST_RESULT = """\
import sys

import graphdock as tf

x = tf.placeholder(tf.float32, [])
with tf.Session() as session:
    session.run(-x + 1.0, {x: 1.0})
print(*(name for name in sys.modules if name.startswith("graphdock_")))
"""


def test_a_first_result_of_operators_imports_no_plugin_that_it_does_not_use():
    done = subprocess.run([sys.executable, "-c", FIRST_RESULT], capture_output=True, text=True, check=True)
    packages = {name.partition(".")[0] for name in done.stdout.split()}
    unused = {f"graphdock_{room}" for room in ("cluster", "dataflow", "storage", "tensorflow", "tf1")}
    assert {"graphdock_cpu", "graphdock_executor", "graphdock_std"} <= packages and not packages & unused


def test_no_import_of_ours_looks_for_a_name_in_vain():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    *missing, count = done.stdout.splitlines()
    assert missing == [] and int(count) > 400
