"""Service: what comes to an address of this process, by ZeroMQ's connections and by ways, is done and answered."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import zmq
from graphdock.contracts import errors, failure_of, pack, unpack
from graphdock.contracts.interrupts import Interrupts

from graphdock_ray.listener import Listener
from graphdock_ray.peer import CALL, FAILED, HELLO, POST, RESULT, returned, split
from graphdock_ray.way import Way

if TYPE_CHECKING:
    from graphdock_ray.zeromq import _Loop

__all__ = ["Service"]

_log = logging.getLogger("graphdock")


class Service:
    """An address that is served. Any thread may answer; all else is done in turns of the transport's loop.

    Args:
      loop: which tells of what has come to the sockets of ``listener``.
    """

    def __init__(self, loop: _Loop, listener: Listener) -> None:
        self._loop, self.listener = loop, listener

    def begin(self) -> None:
        """Take what comes from now on."""
        listener, loop = self.listener, self._loop
        loop.watch(listener.socket.FD, self._take)
        loop.watch(listener.monitor.FD, lambda: listener.look(self._lose))
        if listener.door is not None:
            loop.watch(listener.door.fd, self._admit)

    def close(self) -> None:
        """Take nothing any more."""
        listener, loop = self.listener, self._loop
        loop.unwatch(listener.socket.FD, listener.monitor.FD)
        if listener.door is not None:
            loop.unwatch(listener.door.fd)
            for way in listener.door.close():
                self._end(way)
        listener.close()

    def post(self, method: str, arguments: Mapping[str, Any]) -> None:
        """Call a method of the task for which nobody waits."""
        try:
            self.listener.answer(method, arguments)
        except Exception as error:  # noqa: BLE001 - a stranger's message ends nothing but itself
            _log.warning("what another task posted was refused: %s", errors.format_error(error))

    def _take(self) -> None:
        """Answer what has come by ZeroMQ."""
        listener = self.listener
        while not listener.socket.closed and (came := listener.receive()) is not None:
            sender, first, *more = came
            if bytes(first.buffer[:1]) == HELLO:
                self._greet(sender.bytes, first)
            else:
                self._serve(sender.bytes, first.get(zmq.SRCFD), first.buffer, more)

    def _greet(self, sender: bytes, first: Any) -> None:
        try:
            _, frames = split(first.buffer)
        except errors.DataLossError as error:
            _log.warning("the first message of a connection was refused: %s", errors.format_error(error))
            return
        if self.listener.greet(first, sender, frames):
            self._loop.give(lambda loop: self._take())

    def _admit(self) -> None:
        """Let in who has come to the door."""
        while self.listener.door is not None and (way := self.listener.door.admit()) is not None:
            self._loop.watch(way.fd, functools.partial(self._take_on_way, way))

    def _take_on_way(self, way: Way) -> None:
        """Answer what has come by a way."""
        buffer, door = self._loop.buffer, self.listener.door
        text = memoryview(buffer).toreadonly()
        assert door is not None
        while not way.closed and (size := way.receive(buffer)) is not None:
            if size and way.sender:
                self._serve(way.sender, way.connection, text[:size])
            elif not (size and door.knows(way, bytes(text[:size]))):
                door.forget(way)
                self._end(way)

    def _lose(self, reader: bytes) -> None:
        """Give up a connection of a process of this machine that has ended."""
        self._loop.forget_reader(reader)
        if self.listener.door is not None and (way := self.listener.door.lose(reader)) is not None:
            self._end(way)

    def _end(self, way: Way) -> None:
        self._loop.unwatch(way.fd)
        way.close()

    def _serve(self, sender: bytes, connection: int, text: memoryview, more: Sequence[Any] = ()) -> None:
        """Do what one message asks for."""
        head = b""
        try:
            head, frames = returned(*split(text, more))
            method, arguments = unpack(frames)
            if len(head) != 9 or not isinstance(arguments, dict) or not isinstance(method, str):
                raise errors.DataLossError("a message is damaged: it calls no method")
        except (ValueError, TypeError, IndexError, errors.GraphdockError) as error:
            self._answer(sender, head, FAILED, failure_of(error))
            return
        self.listener.note(connection, method, arguments)
        if head[:1] == POST:
            self.post(method, arguments)
        else:
            self._call(sender, head, method, arguments)

    def _call(self, sender: bytes, head: bytes, method: str, arguments: Mapping[str, Any]) -> None:
        def answered(made: Future[Any]) -> None:
            try:
                frames = pack(made.result())
            except BaseException as error:  # noqa: BLE001 - it is the caller's
                self._answer(sender, head, FAILED, failure_of(error))
            else:
                self._reply(sender, RESULT + head[1:], frames)

        try:
            result = self.listener.answer(method, arguments)
        except Exception as error:  # noqa: BLE001 - it is the caller's
            self._answer(sender, head, FAILED, failure_of(error))
        else:
            if not isinstance(result, Future):
                made, result = result, Future[Any]()
                result.set_result(made)
            result.add_done_callback(answered)

    def _answer(self, sender: bytes, head: bytes, kind: bytes, value: Any) -> None:
        if head[:1] == CALL and len(head) == 9:
            self._reply(sender, kind + head[1:], pack(value))

    def _reply(self, sender: bytes, head: bytes, frames: list[Any]) -> None:
        if sender in self.listener.near:
            kind, frames = self._loop.lend(head[:1], frames, sender)
            head = kind + head[1:]
        with Interrupts():  # it may be of several frames
            more = self.listener.reply(sender, head, frames)
        if more:
            self._loop.give(lambda loop: self._take())
