"""Random programs over one ``tf.gfile.GFile``: a mode, what the file holds, calls; and what each call answers, as text.

A program writes before it reads, and closes the file before it writes again: TensorFlow's reader keeps the end that it saw.
This module imports nothing of graphdock's: the peer runs it too.
"""

from __future__ import annotations

import os
import random
import tempfile

MODES = ("r", "w", "a", "r+", "w+", "a+", "rb", "wb", "ab", "rb+", "wb+", "ab+", "r+b")
HELD = (None, "", "ab\ncd\n\nef", "héllo\r\nx\r")
WRITES = ("write xy\n", "write z", "write é")
READS = ("read", "read 1", "read 3", "readline", "readlines", "list", "next", "seek 0", "seek 2", "seek 1 1")
READS += ("seek -1 2", "seek -1", "seek 0 3", "seek 50", "tell", "size", "flush", "close")


def program(seed: int) -> tuple[str, str | None, list[str]]:
    drawn = random.Random(seed)
    calls: list[str] = []
    wrote = True
    for _ in range(drawn.randint(1, 6)):
        if drawn.random() < 0.35:
            calls += ([] if wrote else ["close"]) + [drawn.choice(WRITES), "flush"]
            wrote = True
        else:
            calls.append(drawn.choice(READS))
            wrote = False
    return drawn.choice(MODES), drawn.choice(HELD), calls


def answers(file_of, mode, held, calls) -> list[str]:
    """What each call gave, or its error's class, and what the file holds in the end."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        if held is not None:
            with open(path, "wb") as plain:
                plain.write(held.encode())
        file = file_of(path, mode)
        given = [repr(_answer(file, call)) for call in calls]
        file.close()
        left = None
        if os.path.exists(path):
            with open(path, "rb") as plain:
                left = plain.read()
        return [*given, repr(left)]


def _answer(file, call):
    name, *rest = call.split(" ")
    args = rest if name == "write" else [int(word) for word in rest]
    try:
        if name in ("list", "next"):
            return {"list": list, "next": next}[name](file)
        return getattr(file, name)(*args)
    except Exception as error:  # noqa: BLE001 - it is the answer
        return type(error).__name__
