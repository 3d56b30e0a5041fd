"""Products of matrices whose rows lie anywhere: one native function, told by numbers where everything lies.

It computes ``out[row, column] = sum(left[row, k] * right[k, column], k)`` for *problems* of several *copies* each. Rows are counted
by three numbers, each with a step in the left matrix and in the output; the axis that is summed over is made of *segments* of one
length, each with a place on the left and on the right. So a convolution is one, of images with their padding around them, and so
are its gradients, and a batch of products, transposed or not.

Columns of the right matrix are copied into a panel, as in :mod:`graphdock_llvm.panels`: some vectors side by side for each place.
Blocks of rows meet it with all sums in registers. A long axis is done in passes, whose sums are added up in the output. Every
element is one sum in the order of the axis: threads and blocks don't change its bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphdock_llvm.gathered_copies import LONGEST, ROWS, TOGETHER
from graphdock_llvm.gathered_text import EACH, HEAD
from graphdock_llvm.pool import pool_address
from graphdock_llvm.target import width

__all__ = ["Frame", "Problem", "Work", "numbers"]

#: Multiplications of a part, at least; parts per thread, where there is enough to do; multiplications that threads share, at least.
_LEAST, _PARTS, _SHARED = 1 << 18, 4, 1 << 20
#: What it costs a part to copy rows, in panels that meet them, and to pack a panel, in rows that it meets.
_FILL, _PACK = 0.15, 16


@dataclass(frozen=True, slots=True)
class Problem:
    """A product of some rows.

    Attributes:
      counts: of rows, as three numbers, the last one quickest. ``left``: steps of each in the left matrix, and where the first row
        lies; ``out``: likewise in the output. All in elements.
      segments: where each lies, in the left matrix and in the right one. ``length``: of a segment; ``step``: from place to place of
        it on the left.
      right: steps of the right matrix along a segment, and from column to column; one of them is 1.
    """

    counts: tuple[int, int, int]
    left: tuple[int, int, int, int]
    out: tuple[int, int, int, int]
    segments: Sequence[tuple[int, int]]
    length: int
    step: int
    right: tuple[int, int]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.counts[0] * self.counts[1] * self.counts[2]


@dataclass(frozen=True, slots=True)
class Frame:
    """Images that are copied into larger ones with zeros around them.

    Attributes:
      rows: how many all larger images have; ``high``: each of them. ``images``: rows of each as it is; ``top``: of zeros above it.
      before, middle, behind: elements of zeros, of the image, and of zeros in a row.
    """

    rows: int
    high: int
    images: int
    top: int
    before: int
    middle: int
    behind: int

    @property
    def size(self) -> int:
        """Elements of all larger images."""
        return self.rows * (self.before + self.middle + self.behind)


@dataclass(frozen=True, slots=True)
class Work:
    """Work of one call.

    Attributes:
      problems: of the same number of columns. ``copies``: places that are added to those of the left and right matrices and the
        output; each problem is computed at all of them.
      slots: which buffers are the left and right matrices, the output, the bias (-1 for none), and what a frame is put around
        (-1 for none): that goes into the left matrix's buffer first.
      relu: negative numbers become 0. ``onto``: what is in the output is added.
      matrices: how many left matrices and right ones there are, in slots behind each other. Segments of the one problem are as many
        of each.
    """

    problems: Sequence[Problem]
    columns: int
    slots: tuple[int, int, int, int, int]
    copies: Sequence[tuple[int, int, int]] = ((0, 0, 0),)
    frame: Frame | None = None
    relu: bool = False
    onto: bool = False
    matrices: int = 1


def numbers(work: Work, threads: int, lanes: int = 0) -> Any:
    """Arguments of the function for some work, on so many threads, printed for so many lanes or for this CPU's."""
    lanes = lanes or width()
    multiplied = len(work.copies) * work.columns * sum(p.rows * len(p.segments) * p.length for p in work.problems)
    threads = threads if multiplied >= _SHARED else 1
    vectors = _vectors(-(-work.columns // lanes))
    most = max(p.rows for p in work.problems)
    along = max(len(p.segments) * p.length for p in work.problems)
    panels = -(-work.columns // (vectors * lanes))
    others, height = len(work.copies) * len(work.problems), ROWS[lanes][vectors - 1]
    together, chunks = TOGETHER[vectors - 1], 1
    if threads > 1:
        by_work = most * along * vectors * lanes // _LEAST
        chunks = max(1, min(_PARTS * threads, by_work, most // (2 * height)))
        together, chunks = _cut(panels, most, others, threads, (together, chunks))
    panels = -(-panels // together)
    parts = panels * others
    frame = work.frame
    head = [
        threads,
        pool_address() if threads > 1 else 0,
        parts * chunks,
        chunks,
        *work.slots[:4],
        work.relu | work.onto << 1,
    ]
    if frame is None:
        head += [0] * 9
    else:
        rows = frame.rows, frame.high, frame.images, frame.top, frame.before, frame.middle, frame.behind
        head += [min(frame.rows, _PARTS * threads), *rows, work.slots[4]]
    copies = HEAD + EACH * len(work.problems)
    size = copies + 3 * len(work.copies) + sum(2 * len(p.segments) for p in work.problems)
    head += [vectors, len(work.copies), panels, copies, vectors * lanes, together, work.matrices, size]
    tables: list[int] = [place for copy in work.copies for place in copy]
    for p in work.problems:
        passes = max(1, -(-len(p.segments) // (LONGEST // p.length)))
        group = max(1, -(-len(p.segments) // passes))
        its = [*p.counts, *p.left, *p.out, len(p.segments), copies + len(tables), p.length, p.step, *p.right]
        its += [work.columns, group, 0]
        head += its
        tables += [place for segment in p.segments for place in segment]
    return np.array(head + tables, np.int64)


def _cut(panels: int, rows: int, others: int, threads: int, most: tuple[int, int]) -> tuple[int, int]:
    """Panels that a part has, and chunks of the rows, at most so many: with which the threads are done first.

    Of those that differ little it is the most parts, of which a thread takes fewer while its processor is busy with something else.
    """
    found = []
    for together in range(1, most[0] + 1):
        groups = -(-panels // together)
        for chunks in range(1, most[1] + 1):
            one = rows / chunks * (together + _FILL) + _PACK * together
            found.append((-(-groups * chunks * others // threads) * one, -groups * chunks, together, chunks))
    quickest = min(found)[0]
    _, _, together, chunks = min((f for f in found if f[0] <= 1.05 * quickest), key=lambda f: (f[1], f[0]))
    return together, chunks


def _vectors(count: int) -> int:
    """Vectors of a panel, for so many of all columns."""
    if count == 1:
        return 1
    return 3 if count % 2 and count % 3 == 0 else 2
