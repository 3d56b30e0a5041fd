"""HTML for notebooks: tables that a click on a head sorts, and pictures of graphs. All text is escaped; nothing is loaded.

A picture has a lane for each scope, in which nodes stand below what they read; their colour is their device. Of a large graph it
shows scopes in place of their nodes, deeper ones first.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Box", "label_of", "picture", "section", "table"]

#: Most boxes of a picture, and most rows of a table.
_BOXES, _ROWS = 48, 500
#: Characters of a cell that are shown whole.
_LONG = 80
#: Fills for devices, in the order in which these appear; black text can be read on all of them.
_FILLS = ("#cfe3f7", "#fbd9b5", "#cdebc8", "#f6c9cf", "#dcd3ef", "#eadfa8", "#c9e9e9", "#e3e3e3")
_WIDE, _HIGH, _GAP = 128, 24, 18
#: Ends of arrows.
_TIP = (
    '<marker id="gd-tip" markerWidth="7" markerHeight="7" refX="6" refY="3" orient="auto">'
    '<path d="M0 0 L6 3 L0 6z" fill="#888"/></marker>'
)
_SORT = (
    "var t=this.closest('table'),i=this.cellIndex,d=this.dataset.up!=='1';this.dataset.up=d?'1':'0';"
    "var k=function(r){var c=r.cells[i],v=c.dataset.n;return v===undefined?c.textContent:+v};"
    "Array.from(t.tBodies[0].rows).sort(function(a,b){var x=k(a),y=k(b);return (x>y?1:x<y?-1:0)*(d?1:-1)})"
    ".forEach(function(r){t.tBodies[0].appendChild(r)})"
)


@dataclass(frozen=True, slots=True)
class Box:
    """A node of a picture.

    Attributes:
      name: with its scopes, ``layer/add``. ``label``: what stands in the box. ``device``: empty for none.
      reads: names of the boxes that it reads. ``tip``: what a pointer over it shows.
    """

    name: str
    label: str
    device: str = ""
    reads: tuple[str, ...] = ()
    tip: str = ""


def label_of(name: str, op: str) -> str:
    """Return what stands in the box of an operation: the end of its name, and its type where that does not say it."""
    last = name.rpartition("/")[2]
    return last if last.startswith(op) else f"{last}: {op}"


def section(title: str, *parts: str) -> str:
    """A heading, and what stands below it."""
    return f'<div class="graphdock"><b>{html.escape(title)}</b>{"".join(parts)}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table whose columns a click on their heads sorts, numbers by value. A cell ``(number, text)`` is sorted by the number."""
    rows = list(rows)
    top = "".join(
        f'<th style="cursor:pointer;text-align:left;white-space:nowrap" onclick="{html.escape(_SORT)}">{html.escape(h)}</th>'
        for h in head
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:_ROWS])
    more = f"<p>and {len(rows) - _ROWS} more rows</p>" if len(rows) > _ROWS else ""
    shown = f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div style="overflow-x:auto">{shown}</div>{more}'


def _cell(value: object) -> str:
    shown, key = value, value
    if isinstance(value, tuple):
        key, shown = value
    number = f' data-n="{float(key)!r}"' if isinstance(key, int | float) else ""
    text = html.escape("" if shown is None else str(shown))
    style = "text-align:left;white-space:nowrap"
    if len(text) > _LONG:  # cut, and whole under the pointer
        style += ";max-width:40em;overflow:hidden;text-overflow:ellipsis"
        number += f' title="{text}"'
    return f'<td style="{style}"{number}>{text}</td>'


def picture(boxes: Sequence[Box]) -> str:
    """An SVG of a graph."""
    boxes = _folded(boxes)
    if not boxes:
        return "<p>no operations</p>"
    rows = _rows(boxes)
    lanes: dict[str, dict[int, list[Box]]] = {}
    for box in boxes:
        scope = box.name.rpartition("/")[0].partition("/")[0]
        lanes.setdefault(scope, {}).setdefault(rows[box.name], []).append(box)
    places: dict[str, tuple[int, int]] = {}
    parts, left, height = [], _GAP, (max(rows.values()) + 1) * (_HIGH + _GAP) + 2 * _GAP + 14
    for scope, lane in lanes.items():
        width = max(map(len, lane.values())) * (_WIDE + _GAP) + _GAP
        if scope:
            parts.append(
                f'<rect x="{left}" y="4" width="{width}" height="{height - 8}" rx="6" fill="#f4f4f4" stroke="#bbb"/>'
            )
            parts.append(f'<text x="{left + 8}" y="18" font-weight="bold">{html.escape(_short(scope, width))}</text>')
        for row, here in lane.items():
            for at, box in enumerate(here):
                places[box.name] = left + _GAP + at * (_WIDE + _GAP), 14 + _GAP + row * (_HIGH + _GAP)
        left += width + _GAP
    fills: dict[str, str] = {}
    lines, rectangles = [], []
    for box in boxes:
        x, y = places[box.name]
        for read in box.reads:
            if read in places and read != box.name:
                a, b = places[read]
                lines.append(
                    f'<path d="M{a + _WIDE // 2} {b + _HIGH} L{x + _WIDE // 2} {y}" stroke="#888" marker-end="url(#gd-tip)"/>'
                )
        fill = fills.setdefault(box.device, _FILLS[len(fills) % len(_FILLS)])
        rectangles.append(
            f'<g><title>{html.escape(box.tip or box.name)}</title><rect x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="4"'
            f' fill="{fill}" stroke="#555"/><text x="{x + _WIDE // 2}" y="{y + 16}" text-anchor="middle">'
            f"{html.escape(_short(box.label, _WIDE))}</text></g>"
        )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left}" height="{height}" font-family="sans-serif" font-size="11">'
        f"<defs>{_TIP}</defs>{''.join(parts)}{''.join(lines)}{''.join(rectangles)}</svg>"
    )
    return f'{_legend(fills)}<div style="overflow:auto;max-height:520px;background:white;color:black">{svg}</div>'


def _legend(fills: Mapping[str, str]) -> str:
    marks = [
        f'<span style="background:{fill};color:black;padding:1px 6px;margin-right:6px">{html.escape(device)}</span>'
        for device, fill in fills.items()
        if device
    ]
    return f"<p>{''.join(marks)}</p>" if marks else ""


def _short(text: str, width: int) -> str:
    most = max(3, width // 6 - 2)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _rows(boxes: Sequence[Box]) -> dict[str, int]:
    """Box -> the row below all that it reads. Boxes stand after what they read, but for loops of folded scopes."""
    rows: dict[str, int] = {}
    for box in boxes:
        rows[box.name] = max([rows[read] + 1 for read in box.reads if read in rows], default=0)
    return rows


def _folded(boxes: Sequence[Box]) -> list[Box]:
    """The boxes, or where they are too many, scopes in their place: as deep ones as there is room for."""
    depth = max([box.name.count("/") for box in boxes], default=0)
    while len(boxes) > _BOXES and depth > 0:
        boxes = _fold(boxes, depth)
        depth -= 1
    if len(boxes) > _BOXES:
        rest = len(boxes) - _BOXES
        return [*boxes[:_BOXES], Box("...", f"and {rest} more", tip=f"{rest} more")]
    return list(boxes)


def _fold(boxes: Sequence[Box], depth: int) -> list[Box]:
    names = {
        box.name: "/".join(box.name.split("/")[:depth]) + ("/" if box.name.count("/") >= depth else "") for box in boxes
    }
    found: dict[str, list[Box]] = {}
    for box in boxes:
        found.setdefault(names[box.name], []).append(box)
    out = []
    for name, group in found.items():
        if not name.endswith("/"):
            out.append(
                Box(name, group[0].label, group[0].device, tuple(names.get(r, r) for r in group[0].reads), group[0].tip)
            )
            continue
        devices = sorted({box.device for box in group})
        reads = dict.fromkeys(names.get(r, r) for box in group for r in box.reads)
        scope = name.rstrip("/")
        label = f"{scope.rpartition('/')[2]} ({len(group)})"
        out.append(
            Box(
                name,
                label,
                " + ".join(filter(None, devices)),
                tuple(r for r in reads if r != name),
                f"{scope}: {len(group)}",
            )
        )
    return out
