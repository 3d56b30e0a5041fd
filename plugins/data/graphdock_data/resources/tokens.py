"""Tokens: elements of a queue that say which step is next, to each replica that has not taken that step yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from graphdock.contracts import errors

from graphdock_data.resources.exchange import Attempt, Exchange

__all__ = ["TokenExchange"]


class TokenExchange(Exchange):
    """Base of a queue that replicas take tokens from: each the number of a step.

    Once a :meth:`reset` has said so, the last token stays, and each replica takes it once: one of a later step than its own. A
    replica that ended while it waited, or that lost its token on the way, has so taken nobody's, and left none.

    Attributes:
      kind: its class, for messages. closed: whether no more come.
      generation: how often it was begun anew.
    """

    kind: str
    closed: bool
    _store: Any

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.generation = 0
        self._stays = False

    def dequeue_since(self, generation: Any, after: Any) -> Any:
        """Take a token, for one who began in a generation of the queue; the token itself, or the Future of it.

        Args:
          after: the taker's step. Where tokens stay, it waits for one of a later step.

        Raises:
          OutOfRangeError: it is closed, and there is none. AbortedError: the queue was begun anew since, or is while this waits.
        """
        since = int(generation)
        if since != self.generation:
            raise self._begun_anew()
        attempt = Attempt(deque(), 1, lambda found: found[0][0] if len(found[0]) == 1 else tuple(found[0]))
        attempt.after = int(after)
        taken = self._line_up(self._takes, attempt)
        if since != self.generation and isinstance(taken, Future) and not taken.done():
            self._end_takes()  # it was begun anew between the two
        return taken

    def reset(self, begins: Any = True, stays: bool = True) -> None:
        """Begin anew, empty, open, and of the next generation. Who waits to take gets an AbortedError.

        Args:
          begins: whether to. stays: tokens stay from now on.
        """
        with self._lock:
            self._stays = self._stays or stays
            if begins:
                self.generation += 1
                self._store.clear()
                self.closed = False
            ended = self._go_on()
        for attempt in ended:
            attempt.deliver()
        if begins:
            self._end_takes()

    def _has_token(self, attempt: Attempt) -> bool:
        """Return whether the last token is one for a taker."""
        return bool(self._store) and int(self._store[-1][0]) > (attempt.after or 0)

    def _keep(self, token: Any) -> None:
        """Let a token take the place of those before it, unless it is of an earlier step."""
        if not self._store or int(self._store[-1][0]) < int(token[0]):
            self._store.clear()
            self._store.append(token)

    def _next_ended(self, line: deque[Attempt], advance: Callable[[Attempt], bool]) -> Attempt | None:
        if not self._stays or line is self._puts:
            return super()._next_ended(line, advance)
        found = next((attempt for attempt in line if advance(attempt)), None)
        if found is not None:
            line.remove(found)
        return found

    def _end_takes(self) -> None:
        with self._lock:
            ended = self._end_all((self._takes,), self._begun_anew)
        for attempt in ended:
            attempt.deliver()

    def _begun_anew(self) -> errors.AbortedError:
        return errors.AbortedError(f"{self.kind} {self.name!r} was begun anew")
