"""HTML of notebooks: well formed, escaped, bounded."""

from __future__ import annotations

import re
import shutil
import subprocess
from xml.etree import ElementTree

import pytest
from graphdock_profiler.html import Box, picture, section, table

HOSTILE = "</svg><script>alert('1')</script>\"&<b>"


def parsed(text):
    return ElementTree.fromstring(f"<page>{text}</page>")


def test_text_is_escaped_wherever_it_stands():
    page = parsed(
        section(
            HOSTILE,
            table((HOSTILE,), [(HOSTILE,), ((1.0, HOSTILE),)]),
            picture([Box(f"{HOSTILE}/a", HOSTILE, HOSTILE, (), HOSTILE)]),
        )
    )
    assert page.find(".//script") is None and page.findall(".//b") == [page.find("./div/b")]
    assert page.find("./div/b").text == HOSTILE and page.find(".//td").text == HOSTILE
    assert page.find(".//{*}title").text == HOSTILE


def test_a_table_is_sorted_by_numbers_where_it_has_them():
    page = parsed(table(("name", "time"), [("b", (2.0, "2 s")), ("a", (10.0, "10 s")), ("c", None)]))
    assert [cell.get("data-n") for cell in page.findall(".//td")] == [None, "2.0", None, "10.0", None, None]
    assert all("cellIndex" in head.get("onclick") for head in page.findall(".//th"))
    assert "and 100 more rows" in table(("n",), [(i,) for i in range(600)])


def test_a_long_cell_is_one_line_and_whole_under_the_pointer():
    long = 'a reason that is longer than others & has "quotes" ' * 3
    short, cut = parsed(table(("why",), [("short",), (long,)])).findall(".//td")
    assert "nowrap" in short.get("style") and short.get("title") is None
    assert "ellipsis" in cut.get("style") and cut.get("title") == long == cut.text


def test_nodes_stand_below_what_they_read_in_the_lane_of_their_scope():
    page = parsed(picture([Box("a/x", "x"), Box("a/y", "y", reads=("a/x",)), Box("b/z", "z", reads=("a/y", "gone"))]))
    boxes = {g.find("{*}title").text: g.find("{*}rect") for g in page.iter("{http://www.w3.org/2000/svg}g")}
    tops = [int(boxes[name].get("y")) for name in ("a/x", "a/y", "b/z")]
    assert tops == sorted(set(tops))
    assert boxes["a/x"].get("x") == boxes["a/y"].get("x") != boxes["b/z"].get("x")
    assert len(page.findall(".//{*}path[@stroke]")) == 2, "an arrow per read that is there"


def test_colours_are_devices():
    page = picture([Box("a", "a", "cpu:0"), Box("b", "b", "cuda:0"), Box("c", "c", "cpu:0")])
    fills = re.findall(r'rx="4" fill="(#\w+)"', page)
    assert fills[0] == fills[2] != fills[1] and ">cuda:0</span>" in page


@pytest.mark.parametrize("count", [0, 1, 48, 49, 5000])
def test_a_large_graph_is_folded_into_its_scopes(count):
    boxes = [
        Box(f"s{i % 7}/t{i % 21}/n{i}", f"n{i}", reads=(f"s{(i - 1) % 7}/t{(i - 1) % 21}/n{i - 1}",))
        for i in range(count)
    ]
    page = picture(boxes)
    shown = len(re.findall("<g>", page))
    assert shown == count if count <= 48 else shown == 21
    assert len(page) < 60_000
    flat = picture([Box(f"n{i}", f"n{i}") for i in range(count)])
    assert len(re.findall("<g>", flat)) == min(count, 49)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_click_on_a_head_sorts_in_a_browser(tmp_path):
    rows = [("b", (2.0, "2 s")), ("a", (10.0, "10 s")), ("c", (1.0, "1 s"))]
    click = "<script>document.querySelectorAll('th')[{}].click()</script>"
    order = []
    for head in (0, 1):
        page = tmp_path / f"{head}.html"
        page.write_text(picture([Box("s/n", "n", "cpu:0")]) + table(("name", "time"), rows) + click.format(head))
        browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
        done = subprocess.run([*browser, "--dump-dom", page.as_uri()], capture_output=True, text=True, check=True)
        order.append(re.findall(r"<tr><td[^>]*>(\w)</td>", done.stdout))
        assert "<svg" in done.stdout
    assert order == [["a", "b", "c"], ["c", "b", "a"]]
