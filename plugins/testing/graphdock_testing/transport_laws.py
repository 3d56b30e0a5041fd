"""Laws of transports: what one carries, what becomes of errors and of lost processes, and steps over two of its tasks.

    for law in TRANSPORT_LAWS:
        check_transport("mine", law)      # raises Untested, or ConformanceError with what is wrong

Tasks are served at addresses that the transport gives, ``Transport.sample_address()``. Each end is that of a host of its own, as if
in another process; two laws start one.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock.contracts import errors
from graphdock.plugin.host import Host

from graphdock_testing.case import ConformanceError, Untested
from graphdock_testing.numeric import same_bits

__all__ = ["TRANSPORT_LAWS", "check_transport"]

#: Seconds that anything may take, and within which the end of a process must be noticed.
LIMIT, NOTICED = 60.0, 5.0
_Answer = Callable[[str, Mapping[str, Any]], Any]
_CHILD = """
import sys, time
from concurrent.futures import Future
from graphdock.plugin.host import Host
scheme, part, address = sys.argv[1:]
transport = Host().transport(scheme)
if part == "serve":
    address = transport.serve(address, lambda method, arguments: Future(), print)
else:
    transport.call(address, "open", {"session": "of a child"}).result(60)
print("at", address, flush=True)
time.sleep(600)
"""


class _Ends:
    """Two ends of a transport: one serves, the other calls."""

    def __init__(self, scheme: str, make: Callable[[], Host]) -> None:
        self.scheme, self.make = scheme, make
        self._hosts = [make(), make()]
        self.here, self.there = (host.transport(scheme) for host in self._hosts)
        self.is_installed = make is Host

    def address(self) -> str:
        """A free address. Raises Untested: the transport gives none."""
        found = self.there.sample_address()
        if found is None:
            raise Untested(f"the transport {self.scheme} gives no sample_address(): nothing was called")
        return found

    @contextmanager
    def served(self, answer: _Answer, gone: Callable[[str], None] = lambda session: None) -> Iterator[str]:
        """Address at which ``answer`` is served meanwhile."""
        address = self.there.serve(self.address(), answer, gone)
        try:
            yield address
        finally:
            self.there.forget(address)

    def ask(self, address: str, method: str, **arguments: Any) -> Any:
        """Answer of a call."""
        return _result(self.here.call(address, method, arguments), f"a call of {method!r}")

    def close(self) -> None:
        for transport in (self.here, self.there):
            transport.close()
        for host in self._hosts:
            host.close()


def _result(future: Future[Any], what: str) -> Any:
    try:
        return future.result(LIMIT)
    except TimeoutError:
        raise ConformanceError(f"{what} had no answer within {LIMIT:g} s") from None


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise ConformanceError(what)


def _echo(method: str, arguments: Mapping[str, Any]) -> Any:
    return dict(arguments)


def _lost(future: Future[Any], what: str, limit: float = NOTICED) -> None:
    try:
        future.result(limit)
    except errors.UnavailableError:
        return
    except TimeoutError:
        raise ConformanceError(f"{what}: nothing was said within {limit:g} s") from None
    except Exception as error:
        raise ConformanceError(f"{what}: {type(error).__name__}, not UnavailableError: {error}") from error
    raise ConformanceError(f"{what}: it was answered")


def _values(ends: _Ends) -> None:
    rng = np.random.default_rng(0)
    sent = {
        "plain": [1, -(2**62), 2.5, "ü\n", True, None, {}, []],
        "arrays": [
            rng.normal(size=s).astype(d) for s in [(), (0,), (3, 2), (2, 0, 4)] for d in ("f4", "i8", "c8", "?")
        ],
        "large": rng.integers(0, 255, 3 << 20, np.uint8).reshape(3, -1),
        "strided": np.arange(24.0).reshape(4, 6)[::2, ::-3],
        "strings": np.array([[b"", b"\xff\x00"], [b"abc", b"x" * 1000]], object),
    }
    with ends.served(_echo) as address:
        got = ends.ask(address, "echo", **sent)
    _check(got["plain"] == sent["plain"], f"plain data came back as {got['plain']!r}")
    wanted = [*sent["arrays"], sent["large"], sent["strided"], sent["strings"]]  # type: ignore[misc]
    for w, g in zip(wanted, [*got["arrays"], got["large"], got["strided"], got["strings"]], strict=True):
        _check(isinstance(g, np.ndarray) and (g.dtype, g.shape) == (w.dtype, w.shape), f"{w!r} came back as {g!r}")
        _check(same_bits(g, w), f"the values of {w!r} came back as {g!r}")
        _check(g.flags.writeable, "an array that came can't be written")


def _read_before(ends: _Ends) -> None:
    go = threading.Event()

    def answer(method: str, arguments: Mapping[str, Any]) -> Any:
        made: Future[Any] = Future()

        def later() -> None:
            go.wait(LIMIT)
            made.set_result(arguments["x"])

        threading.Thread(target=later, daemon=True).start()
        return made

    with ends.served(answer) as address:
        for size in (3, 3 << 20):
            x = np.zeros(size)
            call = ends.here.call(address, "keep", {"x": x})
            x += 1
            go.set()
            _check(not _result(call, "a call").any(), "what a caller changes after a call has travelled with it")


def _errors(ends: _Ends) -> None:
    def answer(method: str, arguments: Mapping[str, Any]) -> Any:
        if method == "at once":
            raise errors.ShapeError("no such shape", op="x")
        made: Future[Any] = Future()
        made.set_exception(errors.OutOfRangeError("the end"))
        return made

    with ends.served(answer) as address:
        for method, kind in (("at once", errors.ShapeError), ("later", errors.OutOfRangeError)):
            try:
                ends.ask(address, method)
            except kind as error:
                _check(method == "later" or error.op == "x", "an error came without its op")
            except errors.GraphdockError as error:
                raise ConformanceError(f"a {kind.__name__} came as {type(error).__name__}: {error}") from error
            else:
                raise ConformanceError(f"a {kind.__name__} was no error of the call")


def _futures(ends: _Ends) -> None:
    waiting: Future[Any] = Future()
    with ends.served(lambda method, arguments: waiting if method == "wait" else _echo(method, arguments)) as address:
        first = ends.here.call(address, "wait", {})
        _check(ends.ask(address, "echo", n=3) == {"n": 3}, "a call was answered with another's answer")
        _check(not first.done(), "a call ended before it was answered")
        waiting.set_result("now")
        _check(_result(first, "a call that waited") == "now", "a call that waited was answered with another's answer")


def _threads(ends: _Ends) -> None:
    wrong: list[Any] = []

    def work(who: int) -> None:
        for n in range(50):
            size = 1 << (n % 18)
            try:
                got = ends.ask(address, "echo", n=[who, n], x=np.full(size, who, np.uint8))
            except Exception as error:  # noqa: BLE001 - it is told below
                wrong.append(error)
                return
            if got["n"] != [who, n] or got["x"].size != size or (got["x"] != who).any():
                wrong.append(got["n"])

    with ends.served(_echo) as address:
        workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    _check(not wrong, f"of calls from 8 threads, some were answered wrongly: {wrong[:3]!r}")


def _posts(ends: _Ends) -> None:
    found, all_there = [], threading.Event()

    def answer(method: str, arguments: Mapping[str, Any]) -> Any:
        found.append(int(arguments["n"]))
        if len(found) == 100:
            all_there.set()
        if arguments["n"] % 7 == 0:
            raise errors.InvalidArgumentError("a post that is refused")
        return None

    with ends.served(answer) as address:
        for n in range(100):
            ends.here.post(address, "note", {"n": n, "x": np.zeros(n * 1000)})
        all_there.wait(LIMIT)
    _check(sorted(found) == list(range(100)), f"of 100 posts these came: {sorted(found)}")


def _taken(ends: _Ends) -> None:
    with ends.served(_echo) as address:
        try:
            ends.there.serve(address, _echo, lambda session: None)
        except (errors.UnavailableError, errors.AlreadyExistsError):
            pass
        else:
            raise ConformanceError(f"{address} was served twice")
        _check(ends.ask(address, "echo", n=1) == {"n": 1}, "the first one is served no more")


def _forgotten(ends: _Ends) -> None:
    with ends.served(_echo) as address:
        ends.ask(address, "echo")
    _lost(ends.here.call(address, "echo", {}), "a call of a task that is served no more")
    ends.here.post(address, "echo", {})
    with ends.served(_echo) as address:
        _check(ends.ask(address, "echo", n=1) == {"n": 1}, "another task is not reached after that")


def _nobody(ends: _Ends) -> None:
    address = ends.address()
    _lost(ends.here.call(address, "echo", {}), "a call of a task that is not there")
    ends.here.post(address, "echo", {})


def _steps(ends: _Ends) -> None:
    hosts = [ends.make(), ends.make()]
    losses = [_trained(hosts[1], None)]
    cluster = {"ps": [ends.address()], "worker": [ends.address()]}
    servers = [_tf.train.Server(cluster, job, 0, ends.scheme, host=h) for job, h in zip(cluster, hosts, strict=True)]
    try:
        losses.append(_trained(hosts[1], servers[1].target))
    finally:
        for server in servers:
            server.stop()
        for host in hosts:
            host.close()
    _check(losses[0] == losses[1], f"losses of a training: {losses[1]}, of one process: {losses[0]}")


def _trained(host: Host, target: str | None) -> list[float]:
    rows = np.random.default_rng(0).normal(size=(5, 4, 3)).astype(np.float32)
    with _tf.Graph(host).as_default():
        with _tf.device(target and "/job:ps/task:0"):
            w = _tf.Variable(np.ones((3, 2), np.float32), name="w")
        x = _tf.placeholder(_tf.float32, [None, 3])
        loss = _tf.reduce_sum(_tf.tanh(_tf.matmul(x, w)) ** 2)
        train = w.assign_sub(0.1 * _tf.gradients(loss, [w])[0])
        config = _tf.SessionConfig(operation_timeout=LIMIT)
        with _tf.Session(target or "", config=config, host=host) as session:
            session.run(w.initializer)
            return [float(session.run([loss, train], {x: row})[0]) for row in rows]


@contextmanager
def _child(ends: _Ends, part: str, address: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that serves at an address, or opens a session there, and the address."""
    if not ends.is_installed:
        raise Untested(f"the transport {ends.scheme} is of no installed plugin, so that no other process has it")
    command = [sys.executable, "-c", _CHILD, ends.scheme, part, address]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        word, _, said = child.stdout.readline().strip().partition(" ")
        _check(word == "at", f"a process that was to {part} ended")
        yield child, said
    finally:
        child.kill()
        child.wait()


def _killed(ends: _Ends) -> None:
    with _child(ends, "serve", ends.address()) as (child, address):
        waiting = ends.here.call(address, "wait", {})
        late = ends.here.call(address, "wait", {})
        child.kill()
        _lost(waiting, "a call whose task was killed")
        _lost(late, "another call whose task was killed")


def _gone(ends: _Ends) -> None:
    ended = threading.Event()
    told: list[str] = []

    def gone(session: str) -> None:
        told.append(session)
        ended.set()

    with (
        ends.served(_echo, gone) as address,
        _child(ends, "call", address) as (child, _),
    ):
        ends.ask(address, "open", session="mine")
        child.kill()
        ended.wait(NOTICED)
        _check(told == ["of a child"], f"a process that had opened a session was killed; gone() was told of {told}")


#: Law -> what holds two ends of a transport to it.
TRANSPORT_LAWS: dict[str, Callable[[_Ends], None]] = {
    "plain data and arrays come back as they were": _values,
    "what a call takes along is read before it returns": _read_before,
    "errors come back as their class": _errors,
    "a call that waits keeps no other from its answer": _futures,
    "threads get their own answers": _threads,
    "each post arrives once": _posts,
    "an address is served once": _taken,
    "who is served no more is not reached": _forgotten,
    "who is not there is unavailable": _nobody,
    "a training over two tasks is that of one process": _steps,
    "calls of a killed process end": _killed,
    "sessions of a killed process are told of": _gone,
}


def check_transport(name: str, law: str, host: Host | None = None, make: Callable[[], Host] | None = None) -> None:
    """Hold a transport to a law.

    Args:
      name: its scheme. host: not used: each end has a host of its own. make: of these; default: hosts of the installed plugins.

    Raises:
      Untested: it gives no sample addresses. ConformanceError: what is wrong. NotFoundError: no plugin brings such a transport.
    """
    ends = _Ends(name, make or Host)
    try:
        TRANSPORT_LAWS[law](ends)
    except (ConformanceError, Untested):
        raise
    except Exception as error:
        raise ConformanceError(f"{name}: {type(error).__name__}: {error}") from error
    finally:
        ends.close()
