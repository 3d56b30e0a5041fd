"""The page of a plan (``explain --html``) in a headless Chromium: seconds to draw it, its memory, and what each action takes.

    python -m benchmarks.plan_page [--nodes 10000] [--keep FOLDER]

Two pages: a transformer's training step, measured by one traced step, and a graph of so many nodes over two cpus. Each row of a
page's table is read from the browser and compared with ``explain``: device, kernel and seconds of every node. Seconds of an
action are those until what it changed has been drawn, two frames of 1/60 s included. ``--keep`` leaves pages and pictures.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.browser import Page, browser, opened
from benchmarks.frameworks import graphdock
from benchmarks.networks import OPTIMIZERS, PROGRAMS

__all__ = ["main", "wrong_rows"]

#: What a reader does -> the statement that does it.
_ACTIONS = {
    "choose a node": "choose(N.length>>1,true)",
    "search": "$('find').value='matmul';search()",
    "sort by seconds": "$('head').children[1].click()",
    "scroll the table": "$('nodes').scrollTop=$('nodes').scrollHeight/2",
    "whole graph": "whole()",
    "zoom": "zoom(1.5,300,200);paint()",
    "move": "V.x+=120;paint()",
    "colour by seconds": "$('by').value='seconds';$('by').onchange()",
}
#: Rows of the table as a reader sees them, all of them scrolled past.
_ROWS = """(async()=>{
const box=$('nodes'),found={};$('find').value='';sorted=[null,1];search();
for(let y=0;;y+=box.clientHeight/2){box.scrollTop=y;fill();
  const first=Math.max(0,Math.floor(box.scrollTop/ROW)-8);
  [...$('rows').querySelectorAll('tr')].filter(r=>r.cells.length>1).forEach((r,k)=>found[first+k]=[...r.cells].map(c=>c.textContent));
  if(y>order.length*ROW)break}
return N.map((n,i)=>found[i]??null)})()"""


def wrong_rows(page: Page, explanation: Any) -> list[str]:
    """Nodes whose device, kernel or seconds the page's table has otherwise than ``explain``."""
    shown = page.evaluate(_ROWS)
    want = [(r.node, _seconds(r.seconds), r.op, r.device, r.kernel) for r in explanation.rows]
    lost = abs(len(shown) - len(want))
    return ["?"] * lost + [w[0] for s, w in zip(shown, want, strict=False) if s is None or tuple(s[:5]) != w]


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    for least, unit, digits in ((1.0, "s", 2), (1e-3, "ms", 2), (0.0, "us", 1)):
        if seconds >= least:
            return f"{seconds / {'s': 1.0, 'ms': 1e-3, 'us': 1e-6}[unit]:.{digits}f} {unit}"
    raise ValueError(seconds)


def _transformer(tf: Any) -> Any:
    from benchmarks.network_sessions import build

    shape: Any = next(p for p in PROGRAMS if p.name == "transformer").builders["jax"]
    with tf.Graph().as_default():
        graph = build(tf, shape.keywords["network"], shape.keywords["sizes"])
        optimizer = shape.keywords["optimizer"]
        train = getattr(tf.train, f"{optimizer}Optimizer")(**OPTIMIZERS[optimizer]).minimize(graph.losses[0])
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run([train, *graph.losses], graph.feed)
            traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            session.run([train, *graph.losses], graph.feed, options=traced, run_metadata=tf.RunMetadata())
            return session.explain([train, *graph.losses], graph.feed)


def _large(tf: Any, nodes: int) -> Any:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [64, 64], name="x")
        rows = [x + float(k) for k in range(10)]
        for number in range(nodes // 10):
            with tf.variable_scope(f"layer{number}"), tf.device(f"/cpu:{number % 2}"):
                rows = [
                    tf.tanh(rows[k]) if (number + k) % 3 else tf.matmul(rows[k], rows[(k + 1) % 10]) for k in range(10)
                ]
        config = tf.SessionConfig(fusion=False, device_count={"cpu": 2})
        with tf.Session(config=config) as session:
            return session.explain(tf.add_n(rows), {x: np.zeros((64, 64))})


def _pages(tf: Any, nodes: int) -> Iterator[tuple[str, Any]]:
    yield "transformer", _transformer(tf)
    yield "large", _large(tf, nodes)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan_page", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--nodes", type=int, default=10_000, help="nodes of the second page's graph")
    parser.add_argument("--keep", type=Path, help="a folder for the pages and pictures of them")
    given = parser.parse_args(arguments)
    chromium = browser()
    if chromium is None:
        parser.exit(1, "there is no Chromium here\n")
    tf = graphdock()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name, explanation in _pages(tf, given.nodes):
            path = folder / f"{name}.html"
            path.write_text(tf.profiler.plan_page(explanation), "utf-8")
            with opened(chromium) as page:
                page.size(1400, 900)
                drawn = page.open(path)
                _tell(page, name, path, explanation, drawn)
                page.screenshot(folder / f"{name}.png")


def _tell(page: Page, name: str, path: Path, explanation: Any, drawn: float) -> None:
    heap = page.heap()
    x, y = page.evaluate(
        "(()=>{const b=$('graph').getBoundingClientRect();return[b.x+(X[0]+W/2)*V.z-V.x,b.y+(Y[0]+H/2)*V.z-V.y]})()"
    )
    clicked = page.click(x, y)
    assert page.evaluate("chosen") == 0
    wrong = wrong_rows(page, explanation)
    print(
        f"{name}: {len(explanation.rows)} nodes, {path.stat().st_size / 1e6:.2f} MB, drawn in {drawn:.2f} s, "
        f"{heap / 1e6:.1f} MB of objects, {len(wrong)} rows unlike explain, {len(page.errors)} errors"
    )
    print(f"  {'click on a node':20} {clicked * 1e3:6.0f} ms")
    for what, action in _ACTIONS.items():
        print(f"  {what:20} {page.seconds(action) * 1e3:6.0f} ms")
    for line in [*wrong[:5], *page.errors[:5]]:
        print(f"  ! {line}")
    page.evaluate("$('find').value='';search();home();choose(N.length>>1,true)")


if __name__ == "__main__":
    main()
