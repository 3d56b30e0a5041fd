"""A page of a plan in a headless Chromium, where there is one: every row as ``explain`` has it, and what is clicked is told."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

from benchmarks.browser import browser, opened
from benchmarks.plan_page import wrong_rows

pytestmark = pytest.mark.skipif(browser() is None, reason="there is no Chromium here")


@pytest.fixture(scope="module")
def explained():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [8, 16], name="x")
        h = tf.layers.dense(x, 4, activation=tf.nn.relu)
        rows = tf.cond(tf.reduce_sum(h) > 0, lambda: tf.exp(h), lambda: h)
        for number in range(60):
            rows = tf.matmul(rows, tf.ones([4, 4]), name=f"layer{number}/product")
        loss = tf.reduce_mean(tf.check_numerics(rows, "<script>alert(1)</script>"))
        fetches = [loss, tf.train.AdamOptimizer().minimize(loss)]
        with tf.Session() as session:
            return session.explain(fetches, {x: np.zeros((8, 16))})


@pytest.fixture(scope="module")
def page(explained, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "plan.html"
    path.write_text(tf.profiler.plan_page(explained), "utf-8")
    with opened(browser()) as page:
        page.path = path
        page.size(1300, 800)
        page.open(path)
        yield page


def test_each_nodes_device_kernel_and_seconds_are_shown(page, explained):
    assert wrong_rows(page, explained) == [] and len(explained.rows) > 70
    levels = page.evaluate("frames.map(f=>f[0])")
    assert len(levels) == 3, "the plan's own and both branches"


def test_what_is_clicked_is_told_and_is_in_the_address(page, explained):
    page.evaluate("home();choose(-1)")
    i = next(i for i, row in enumerate(explained.rows) if row.node == "layer2/product")
    page.evaluate(f"centre({i})")
    page.evaluate("new Promise(r=>requestAnimationFrame(()=>requestAnimationFrame(r)))")
    box = "$('graph').getBoundingClientRect()"
    page.click(*page.evaluate(f"[{box}.x+{box}.width/2,{box}.y+{box}.height/2]"))
    told, row = page.evaluate("$('node').innerText"), explained.rows[i]
    assert all(part in told for part in (row.node, row.op, row.device, row.kernel, row.why, row.site))
    assert page.evaluate("location.hash") == "#layer2%2Fproduct"
    page.evaluate("choose(N[chosen][READS].at(-1),true)")
    assert "layer1/product" in page.evaluate("$('node').innerText")


def test_a_node_is_found_by_search_and_by_address(page):
    page.evaluate("$('find').value='layer17/';search()")
    assert page.evaluate("order.map(i=>N[i][0]).every(n=>n.includes('layer17/'))")
    page.open(page.path, "#layer31%2Fproduct")
    assert page.evaluate("N[chosen][0]") == "layer31/product"
    for strange in ("#%", "#%E0%A4%A", "#__proto__"):
        page.evaluate(f"location.hash={strange!r};home();choose(-1)")
        page.open(page.path, strange)
        assert page.evaluate("chosen") in (None, -1)


def test_no_script_fails_and_no_name_is_markup(page):
    page.evaluate("for(const k of['plugin','seconds','device']){$('by').value=k;$('by').onchange()}whole()")
    page.evaluate("$('memory').onpointermove({offsetX:300,offsetY:20,clientX:1,clientY:1})")
    page.size(700, 500, dark=True)
    page.evaluate("new Promise(r=>requestAnimationFrame(()=>requestAnimationFrame(r)))")
    assert page.errors == [] and page.evaluate("document.scripts.length") == 2
