"""``tf.test.TestCase``: a unittest with a fresh graph, fixed seeds, sessions, and errors that are looked into."""

from __future__ import annotations

import contextlib
import random
import re
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import graphdock as _tf
import numpy as np

from graphdock_tf1.testing.checked_thread import CheckedThread
from graphdock_tf1.testing.comparisons import Comparisons
from graphdock_tf1.testing.running import get_temp_dir, gpu_device_name

#: The seed of each test's graph, of ``random`` and of ``numpy.random``: TensorFlow's.
_SEED = 87654321


class TestCase(Comparisons):
    """A unittest whose every test begins with an empty default graph and the same seeds.

        class SquareTest(tf.test.TestCase):
            def test_square(self):
                with self.session():
                    self.assertAllClose(tf.square([2.0, 3.0]), [4.0, 9.0])

    Threads: a test's own; others come by :meth:`checkedThread`.
    """

    def __init__(self, methodName: str = "runTest") -> None:  # noqa: N803 - unittest's name
        super().__init__(methodName)
        self._threads: list[CheckedThread] = []
        self._folder: str | None = None
        self._cached: tuple[Any, tuple[Any, ...]] | None = None

    def setUp(self) -> None:  # noqa: N802 - unittest's name
        """Reset the default graph and the seeds; a subclass that has its own calls this one."""
        self._close_cached()
        random.seed(_SEED)
        np.random.seed(_SEED)  # noqa: NPY002 - programs draw from it
        _tf.reset_default_graph()
        _tf.set_random_seed(_SEED)

    def tearDown(self) -> None:  # noqa: N802
        """Close the cached session; fails where a checked thread still runs."""
        threads, self._threads = self._threads, []
        try:
            for thread in threads:
                thread.check_termination()
        finally:
            self._close_cached()

    def _close_cached(self) -> None:
        if self._cached is not None:
            self._cached[0].close()
        self._cached = None

    def get_temp_dir(self) -> str:
        """A folder for this test, the same at each call, in the process's own: ``tf.test.get_temp_dir``."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(dir=get_temp_dir())
        return self._folder

    # -- sessions

    @contextlib.contextmanager
    def session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Any]:
        """A new session, the default one inside; closed behind.

        Args:
          graph: default: the default graph. config: of the session; default: as in TensorFlow, what asks for a device that is
            not there runs elsewhere, unless ``force_gpu``.
          use_gpu: False puts what is made inside on the cpu. force_gpu: puts it on the GPU.
        """
        opened = _tf.Session(graph=graph or _tf.get_default_graph(), config=_config(config, force_gpu))
        with opened as made, self._placed(made, use_gpu, force_gpu):
            yield made

    @contextlib.contextmanager
    def cached_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Any]:
        """A session that is kept to the end of the test; arguments as of :meth:`session`.

        Raises:
          ValueError: they are others than at the first call.
        """
        with self._placed(self._kept(graph, config, force_gpu, strict=True), use_gpu, force_gpu) as kept:
            yield kept

    @property
    def test_session(self) -> Callable[..., contextlib.AbstractContextManager[Any]]:
        """:meth:`session` where a graph is given, else :meth:`cached_session` without its check; deprecated in TensorFlow.

        It is no method of the class, so that loaders, which take methods of such names, don't take it for a test.
        """
        return self._session_or_cached

    @contextlib.contextmanager
    def _session_or_cached(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Any]:
        if graph is not None:
            with self.session(graph, config, use_gpu, force_gpu) as made:
                yield made
        else:
            with self._placed(self._kept(graph, config, force_gpu, strict=False), use_gpu, force_gpu) as kept:
                yield kept

    def _kept(self, graph: Any, config: Any, force_gpu: bool, *, strict: bool) -> Any:
        given = (graph, config, force_gpu)
        if self._cached is None:
            self._cached = (
                _tf.Session(graph=graph or _tf.get_default_graph(), config=_config(config, force_gpu)),
                given,
            )
        if strict:
            for name, now, before in zip(("graph", "config", "force_gpu"), given, self._cached[1], strict=True):
                if now is not before:
                    raise ValueError(
                        f"The {name} used to get the cached session is different than the one that was used to create "
                        "the session. Maybe create a new session with self.session()"
                    )
        return self._cached[0]

    @contextlib.contextmanager
    def _placed(self, session: Any, use_gpu: bool, force_gpu: bool) -> Iterator[Any]:
        """The session and its graph as the default ones, on a device."""
        device = (gpu_device_name() or "/device:GPU:0") if force_gpu else None if use_gpu else "/device:CPU:0"
        with session.graph.as_default(), session.as_default(), _tf.device(device):
            yield session

    def evaluate(self, tensors: Any) -> Any:
        """The values of a structure of tensors, in the default session, else in the test's cached one."""
        session = _tf.get_default_session()
        if session is not None:
            return session.run(tensors)
        with self.test_session() as kept:
            return kept.run(tensors)

    # -- threads and errors

    def checkedThread(self, target: Callable[..., Any], args: Any = None, kwargs: Any = None) -> CheckedThread:  # noqa: N802
        """A thread, not begun, whose error fails this test at ``join()`` or at the end; one that still runs then fails it too."""
        made = CheckedThread(self, target, args, kwargs)
        self._threads.append(made)
        return made

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(  # noqa: N802
        self, exception_type: Any, expected_err_re_or_predicate: str | Callable[[Any], Any]
    ) -> Iterator[None]:
        """The block raises an error of a class, which a predicate holds for or a pattern is found in.

        The pattern is looked for in the message and in the names of the operation that failed and of those it was made from.
        Messages are graphdock's: those of TensorFlow have other words.
        """
        expected = expected_err_re_or_predicate
        try:
            yield
        except Exception as error:
            holds = expected(error) if callable(expected) else re.search(expected, _told(error))
            if not isinstance(error, exception_type) or not holds:
                raise AssertionError(f"Exception of type {type(error)}: {error}") from error
            return
        name = getattr(exception_type, "__name__", str(exception_type))
        raise AssertionError(f"{name} not raised")

    def assertRaisesOpError(  # noqa: N802
        self, expected_err_re_or_predicate: str | Callable[[Any], Any]
    ) -> contextlib.AbstractContextManager[None]:
        """:meth:`assertRaisesWithPredicateMatch` with ``tf.errors.OpError``."""
        return self.assertRaisesWithPredicateMatch(_tf.errors.OpError, expected_err_re_or_predicate)


def _told(error: BaseException) -> str:
    """An error's message, with the name of its operation."""
    if not isinstance(error, _tf.errors.OpError):
        return str(error)
    op = error.op_name
    return f"{error}\n{error.message}" + (f"\nCaused by: {op}" if op is not None else "")


def _config(config: Any, force_gpu: bool) -> Any:
    """A test's configuration, or that of a test that has none."""
    return _tf.SessionConfig(fallback="allow") if config is None and not force_gpu else config
