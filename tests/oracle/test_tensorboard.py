"""TensorBoard itself shows a run of the demo's network: a headless browser opens its pages and reads what they draw.

It needs a Chromium and TensorBoard, which is the one of this interpreter, or of the interpreter that ``TENSORFLOW_PYTHON`` names.
Everything stays on this machine.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock.cli.demo import two_layers

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

PYTHON = os.environ.get("TENSORFLOW_PYTHON", sys.executable)
STEPS = 12

#: All elements of a page, those in shadow roots included.
ALL = (
    "(() => { const all = []; const go = n => { if (n.nodeType === 1) all.push(n); if (n.shadowRoot) go(n.shadowRoot); "
    "n.childNodes.forEach(go) }; go(document.body); return all })()"
)


def every(selector, script):
    """The text of an expression: what a function gives for each element of the page that matches."""
    return f"{ALL}.filter(n => n.matches('{selector}')).map({script})"


class Run:
    """What was written.

    Attributes:
      last: tag -> value of the last step. ``operations``: name -> op type.
    """

    def __init__(self, folder: Path) -> None:
        with tf.Graph().as_default() as graph:
            net = two_layers(tf)
            tf.summary.scalar("loss", net.loss)
            tf.summary.scalar("accuracy", net.accuracy)
            tf.summary.histogram("hidden/weights", tf.trainable_variables()[0])
            tf.summary.image("digits", tf.reshape(net.x, [-1, 8, 8, 1]), max_outputs=1)
            every_summary = tf.summary.merge_all()
            init = tf.global_variables_initializer()
            rng = np.random.default_rng(0)
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            with tf.Session() as sess, tf.summary.FileWriter(str(folder), graph) as writer:
                sess.run(init)
                for step in range(STEPS):
                    feed = {net.x: rng.random((32, 64)), net.y: np.eye(10)[rng.integers(0, 10, 32)]}
                    metadata = tf.RunMetadata()
                    summary, _ = sess.run([every_summary, net.train_op], feed, options, metadata)
                    writer.add_summary(summary, step)
                    if step == 3:
                        writer.add_run_metadata(metadata, "step 3", step)
        values = tf.Summary.FromString(summary).value
        self.last = {v.tag: v.simple_value for v in values if v.HasField("simple_value")}
        self.operations = {op.name: op.type for op in graph.get_operations()}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def written(run):
    return Run(run / "train")


@pytest.fixture(scope="module")
def url(run, written):
    """Where TensorBoard shows the run."""
    if subprocess.run([PYTHON, "-c", "import tensorboard"], capture_output=True, check=False).returncode:
        pytest.skip("TensorBoard is not installed")
    command = [PYTHON, "-m", "tensorboard.main", "--logdir", str(run), "--host", "127.0.0.1", "--port", "0"]
    with subprocess.Popen(
        [*command, "--load_fast=false"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            lines = []
            for line in server.stderr:
                lines.append(line)
                if found := re.search(r"http://127\.0\.0\.1:\d+/", line):
                    yield found[0]
                    break
            else:
                pytest.fail("TensorBoard did not start: " + "".join(lines))
        finally:
            server.kill()


@pytest.fixture(scope="module")
def page(url, tmp_path_factory):
    """A function that opens a page of TensorBoard."""
    spec = importlib.util.spec_from_file_location("browser", Path(__file__).with_name("browser.py"))
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    if client.chromium() is None:
        pytest.skip("there is no Chromium on this machine")
    with client.browser(tmp_path_factory.mktemp("profile")) as browser:

        def go(tab):
            browser.open(f"{url}#{tab}")
            return browser

        yield go


def test_curves_have_their_names_and_last_values(page, written):
    chart = (
        "n => [n.tag, ...Object.entries(n.shadowRoot.querySelector('tf-line-chart-data-loader').shadowRoot"
        ".querySelector('vz-line-chart2')._chart.name2datasets).map(([name, d]) => "
        "[name, d.data().length, d.data().at(-1).step, d.data().at(-1).scalar])]"
    )
    script = (
        f"(all => all.length === 2 && all.every(c => c.length > 1 && c[1][1]) && all)({every('tf-scalar-card', chart)})"
    )
    found = {tag: series for tag, *series in page("scalars").wait(script)}
    assert found.keys() == {"loss", "accuracy"} == written.last.keys()
    for tag, ((name, count, step, value),) in found.items():
        assert "train" in name and (count, step) == (STEPS, STEPS - 1) and value == written.last[tag]


def test_histograms_have_their_steps(page, written):
    one = "n => [n._name, n._data.map(d => d.step), n.shadowRoot.querySelectorAll('.histogram').length]"
    script = f"(all => all.length === 1 && all[0][2] && all)({every('vz-histogram-timeseries', one)})"
    ((_, steps, drawn),) = page("histograms").wait(script)
    assert steps == list(range(STEPS)) and drawn == STEPS
    (tags,) = page("histograms").wait(f"(all => all.length && [all])({every('tf-histogram-loader', 'n => n.tag')})")
    assert tags == ["hidden/weights"]


def test_pictures_have_their_size(page, written):
    one = "n => [n.tag, ...[...n.shadowRoot.querySelectorAll('img')].map(i => [i.naturalWidth, i.naturalHeight])]"
    script = f"(all => all.length && all[0].length > 1 && all[0][1][0] && all)({every('tf-image-loader', one)})"
    assert page("images").wait(script) == [["digits/image", [8, 8]]]


def test_the_graph_has_its_nodes_devices_and_times(page, written):
    """TensorBoard draws constants and summaries as ornaments of the nodes that they belong to."""
    names = "n => { const all = new Set(); Object.values(n._graph.nodes).forEach(o => { all.add(o.name); "
    names += "[...o.inEmbeddings, ...o.outEmbeddings].forEach(e => all.add(e.name)) }); "
    names += "return [Object.keys(n._graph.nodes).length, [...all]] }"
    browser = page("graphs")
    (count, drawn), *_ = browser.wait(f"(all => all.length && all[0] && all)({every('tf-graph-dashboard', names)})")
    ornaments = [n for n, op in written.operations.items() if op == "Const" or re.fullmatch("[a-zA-Z]+Summary", op)]
    assert count == len(written.operations) - len(ornaments)
    # a name that is a scope too has its last part twice
    expected = {n for n in written.operations if n not in ornaments}
    assert {re.sub(r"/?\(([^/()]+)\)$", "", n) for n in drawn} >= expected
    shown = browser.wait(f"(all => all.length > 5 && all)({every('g.node', 'n => n.getAttribute(`data-name`)')})")
    assert {"MatMul", "Relu", "W1", "gradients", "Adam"} <= set(shown)
    tags = browser.wait(f"(all => all.length && all)({every('tf-graph-controls', 'n => n.datasets')})")
    assert "step 3" in [tag["tag"] for tag in tags[0][0]["tags"]]
