"""A KeyboardInterrupt between any two bytecodes, where code has to stand it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import CodeType, ModuleType


class Interrupter:
    """Raises KeyboardInterrupt at the n-th bytecode of the modules that it watches, once. A test runs in its own thread with it.

    Attributes:
      raised: whether there were as many bytecodes.
    """

    def __init__(
        self, at: int, modules: Iterable[ModuleType], watches: Callable[[CodeType], bool] = lambda code: False
    ) -> None:
        """``watches`` names more code than the modules'."""
        self.at, self.seen, self.raised = at, 0, False
        self._files = frozenset(module.__file__ for module in modules)
        self._watches = watches

    def __enter__(self):
        sys.settrace(self._call)

    def __exit__(self, *args):
        sys.settrace(None)

    def _call(self, frame, event, arg):
        code = frame.f_code
        if code.co_filename not in self._files and not self._watches(code):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._opcode

    def _opcode(self, frame, event, arg):
        if event == "opcode" and not self.raised:
            self.seen += 1
            if self.seen > self.at:
                self.raised = True
                raise KeyboardInterrupt
        return self._opcode
