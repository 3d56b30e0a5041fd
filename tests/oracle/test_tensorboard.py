"""TensorBoard itself shows what ``graphdock demo`` wrote: a headless browser opens its pages and reads what they draw.

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
import pytest
from graphdock.messages import GraphDef

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

PYTHON = os.environ.get("TENSORFLOW_PYTHON", sys.executable)
RUNS = ("two-layers", "softmax-regression")

#: All elements of a page, those in shadow roots included.
ALL = (
    "(() => { const all = []; const go = n => { if (n.nodeType === 1) all.push(n); if (n.shadowRoot) go(n.shadowRoot); "
    "n.childNodes.forEach(go) }; go(document.body); return all })()"
)


def every(selector, script):
    """The text of an expression: what a function gives for each element of the page that matches."""
    return f"{ALL}.filter(n => n.matches('{selector}')).map({script})"


class Written:
    """What a run's event file holds.

    Attributes:
      scalars: tag -> value of each step. ``operations``: name -> op type. ``traced``: the tags of traced steps.
    """

    def __init__(self, folder: Path) -> None:
        (path,) = folder.glob("events.out.tfevents.*")
        self.scalars: dict[str, dict[int, float]] = {}
        self.operations: dict[str, str] = {}
        self.traced: list[str] = []
        for event in tf.train.summary_iterator(str(path)):
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    self.scalars.setdefault(value.tag, {})[event.step] = value.simple_value
            if event.HasField("graph_def"):
                self.operations = {n.name: n.op for n in GraphDef.FromString(event.graph_def).node}
            if event.HasField("tagged_run_metadata"):
                self.traced.append(event.tagged_run_metadata.tag)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def written(run):
    """Run -> what the demo wrote of it. After so few steps a network may be below the demo's bar, which is exit status 1."""
    pytest.importorskip("sklearn")
    command = [sys.executable, "-m", "graphdock", "demo", "--steps", "500", "--logdir", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1) and "tensorboard --logdir" in done.stdout, done.stderr
    return {name: Written(run / name) for name in RUNS}


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
        "[JSON.parse(name)[1], d.data().map(p => p.step), d.data().at(-1).scalar])]"
    )
    complete = "all.length === 2 && all.every(([tag, ...lines]) => lines.length === 2 && lines.every(l => l[1].length))"
    found = {
        tag: lines
        for tag, *lines in page("scalars").wait(f"(all => {complete} && all)({every('tf-scalar-card', chart)})")
    }
    assert found.keys() == {"loss", "accuracy"}
    for tag, lines in found.items():
        assert sorted(name for name, _, _ in lines) == sorted(RUNS)
        for name, steps, last in lines:
            values = written[name].scalars[tag]
            assert steps == list(values) == [100, 200, 300, 400, 500] and last == values[500]


def test_histograms_have_their_steps(page, written):
    browser = page("histograms")
    one = "n => [n._data.map(d => d.step), n.shadowRoot.querySelectorAll('.histogram').length]"
    script = f"(all => all.length === 2 && all.every(h => h[1]) && all)({every('vz-histogram-timeseries', one)})"
    assert browser.wait(script) == [[[100, 200, 300, 400, 500], 5]] * 2
    assert sorted(browser.value(every("tf-histogram-loader", "n => [n.run, n.tag]"))) == [
        [run, "weights"] for run in sorted(RUNS)
    ]


def test_pictures_have_their_size(page, written):
    one = "n => [n.tag, ...[...n.shadowRoot.querySelectorAll('img')].map(i => [i.naturalWidth, i.naturalHeight])]"
    script = (
        f"(all => all.length > 3 && all.every(p => p.length > 1 && p[1][0]) && all)({every('tf-image-loader', one)})"
    )
    for tag, size in page("images").wait(script):
        assert re.fullmatch(r"weights_as_pictures/image/\d", tag) and size == [8, 8]


def test_the_graph_has_its_nodes_and_times(page, written):
    """TensorBoard draws constants and summaries as ornaments of the nodes that they belong to."""
    names = "n => { const all = new Set(); Object.values(n._graph.nodes).forEach(o => { all.add(o.name); "
    names += "[...o.inEmbeddings, ...o.outEmbeddings].forEach(e => all.add(e.name)) }); "
    names += "return [Object.keys(n._graph.nodes).length, [...all]] }"
    browser = page("graphs")
    script = f"(all => all.length && all[0] && all)({every('tf-graph-dashboard', names)})"
    (count, drawn), *_ = browser.wait(script)
    (sets,) = browser.wait(
        f"(all => all.length && all[0].length === 2 && all)({every('tf-graph-controls', 'n => n.datasets')})"
    )
    assert [s["name"] for s in sets] == sorted(RUNS)
    operations = written[sets[0]["name"]].operations
    ornaments = {n for n, op in operations.items() if op == "Const" or re.fullmatch("[a-zA-Z]+Summary", op)}
    assert count == len(operations) - len(ornaments)
    # a name that is a scope too has its last part twice
    assert {re.sub(r"/?\(([^/()]+)\)$", "", n) for n in drawn} >= operations.keys() - ornaments
    shown = browser.wait(f"(all => all.length > 5 && all)({every('g.node', 'n => n.getAttribute(`data-name`)')})")
    assert {"MatMul", "W", "gradients"} <= set(shown)
    for each in sets:
        assert [tag["tag"] for tag in each["tags"] if tag["profile"]] == written[each["name"]].traced == ["step 500"]
