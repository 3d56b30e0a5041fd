"""Random closes, resets, deadlines and Ctrl-C of steps that wait: ``python scripts/soak.py --minutes 10``.

Episodes of queues, of pipelines of queue runners and of datasets are stopped at a random moment; a child process gets SIGINT while
it waits. What must hold: no thread is left, no element is lost or comes twice, and whoever waits is woken within 0.1 s. A busy
machine wakes nobody in time, so that a plain thread waits for the same moment, and what is judged is how much later the others end.

Exit status 1: something did not hold; it prints what, and the seed of the episode.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import gc
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import graphdock as tf
import numpy as np

#: Seconds within which whoever waits is woken.
SOON = 0.1


@dataclasses.dataclass
class Tally:
    """Counts of what was seen.

    Attributes:
      counts: episodes and steps, by kind. late: seconds by which waits ended after what stopped them, by kind.
      taken: elements that a step took which was then stopped. faults: what did not hold.
    """

    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    late: dict[str, list[float]] = dataclasses.field(default_factory=lambda: collections.defaultdict(list))
    taken: int = 0
    faults: list[str] = dataclasses.field(default_factory=list)

    def check(self, holds: bool, words: str) -> None:
        if not holds:
            self.faults.append(words)

    def told(self) -> str:
        lines = [", ".join(f"{count:,} {kind}" for kind, count in sorted(self.counts.items()))]
        for kind, found in sorted(self.late.items()):
            found.sort()
            middle, most = (found[int(len(found) * share)] * 1e3 for share in (0.5, 0.999))
            lines.append(
                f"woken by {kind}: {len(found):,} waits, {middle:.2f} ms late in the median, {most:.2f} ms in 99.9 %, "
                f"{found[-1] * 1e3:.2f} ms at most"
            )
        lines.append(f"elements that steps took which were then stopped: {self.taken}")
        return "\n".join([*lines, *(f"FAULT {fault}" for fault in self.faults)])


class Watch:
    """A moment for which a plain thread waits beside those that are judged."""

    def __init__(self) -> None:
        self._event, self._at = threading.Event(), 0.0
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()

    def _wait(self) -> None:
        self._event.wait()
        self._at = time.monotonic()

    def stop(self, what: Callable[[], object]) -> float:
        """Do what stops the others; when that was done and the plain thread was awake."""
        what()
        done = time.monotonic()
        self._event.set()
        self._thread.join()
        return max(self._at, done)


#: Threads of before a soak, which it does not wait for: a pool of compilers, say, that lives as long as the process.
_others: set[threading.Thread] = set()


def finished(threads: list[threading.Thread], tally: Tally, words: str) -> None:
    """Join threads, which were told to end, and look for others that are left."""
    until = time.monotonic() + 20
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
        tally.check(not thread.is_alive(), f"{words}: the thread {thread.name} does not end")
    while left := [t.name for t in set(threading.enumerate()) - _others if t.name.startswith("graphdock-")]:
        gc.collect()
        if time.monotonic() > until:
            tally.check(False, f"{words}: threads are left: {left}")
            return
        time.sleep(0.001)


class Steps:
    """Steps of one session, some with a deadline."""

    def __init__(self, session: Any, tally: Tally) -> None:
        self._session, self._tally = session, tally

    def run(self, draw: random.Random, fetch: Any, feeds: Any = None) -> tuple[bool, Any]:
        """True and the result of a step that ended well. Raises whatever stops it but its deadline."""
        timeout = draw.choice((0, 0, 1, 5, 20))
        self._tally.counts["steps"] += 1
        watch, began = time.monotonic, time.monotonic()
        try:
            return True, self._session.run(fetch, feeds, tf.RunOptions(timeout_in_ms=timeout) if timeout else None)
        except tf.errors.DeadlineExceededError:
            self._tally.late["a deadline"].append(watch() - began - timeout / 1e3)
            return False, None


def queues(rng: random.Random, tally: Tally, words: str) -> None:
    """Threads that put numbers into a queue and take them, until it is closed, or its session, or its container reset."""
    count, end = rng.randint(1, 4), rng.choice(("a close", "a cancelling close", "a closed session", "a reset"))
    capacity, name = rng.randint(2, 8), f"soak{rng.getrandbits(40)}"
    with tf.Graph().as_default(), tf.container(name):
        if rng.random() < 0.5:
            queue = tf.FIFOQueue(capacity, tf.int64, [[]], shared_name="q")
        else:
            queue = tf.RandomShuffleQueue(capacity, 0, tf.int64, [[]], shared_name="q")
        some = tf.placeholder(tf.int64, [None])
        put, takes = queue.enqueue_many(some), (queue.dequeue(), queue.dequeue_many(2))
        close, size = queue.close(cancel_pending_enqueues=end == "a cancelling close"), queue.size()
        left = tf.placeholder(tf.int32, [])
        rest = queue.dequeue_many(left)
        session, other = tf.Session(), tf.Session()
        other.run(size)
    steps = Steps(session, tally)
    sure, unsure, got, ends = set[int](), set[int](), list[int](), list[float]()
    failed = [0]

    def putting(base: int, draw: random.Random) -> None:
        number = base
        while True:
            numbers = list(range(number, number + draw.choice((1, 1, 2, 5))))
            number += len(numbers)
            unsure.update(numbers)
            try:
                done, _ = steps.run(draw, put, {some: numbers})
            except (tf.errors.GraphdockError, RuntimeError):
                ends.append(time.monotonic())
                return
            if done:
                sure.update(numbers)

    def taking(draw: random.Random) -> None:
        while True:
            try:
                done, found = steps.run(draw, draw.choice(takes))
            except (tf.errors.GraphdockError, RuntimeError):
                ends.append(time.monotonic())
                failed[0] += 2
                return
            if done:
                got.extend(np.ravel(found).tolist())
            else:
                failed[0] += 2

    draws = [random.Random(rng.getrandbits(64)) for _ in range(2 * count)]
    threads = [threading.Thread(target=putting, args=(i << 40, draws[i])) for i in range(count)]
    threads += [threading.Thread(target=taking, args=(draws[count + i],)) for i in range(count)]
    watch = Watch()
    for thread in threads:
        thread.start()
    time.sleep(rng.random() * 0.05)
    stops = {"a closed session": session.close, "a reset": lambda: tf.Session.reset("", [name])}
    at = watch.stop(stops.get(end, lambda: other.run(close)))
    if end == "a reset":  # a step that began behind it waits in a new queue
        session.close()
    finished(threads, tally, words)
    tally.late[end] += [max(0.0, moment - at) for moment in ends]
    if end != "a reset":
        got += other.run(rest, {left: other.run(size)}).tolist()
    session.close()
    other.close()
    tf.Session.reset("", [name])
    tally.check(len(got) == len(set(got)), f"{words}: an element came twice")
    tally.check(set(got) <= unsure, f"{words}: an element came that nobody put")
    if end != "a reset":
        lost = len(sure - set(got))
        tally.taken += lost
        tally.check(lost <= failed[0], f"{words}: {lost} elements are lost, and {failed[0]} may have been taken")


def pipelines(rng: random.Random, tally: Tally, words: str) -> None:
    """Queue runners that fill batches, which are stopped by their Coordinator, or whose session is closed."""
    threads_of, size, end = rng.randint(1, 3), rng.randint(1, 4), rng.choice(("a coordinator", "a closed session"))
    with tf.Graph().as_default():
        number = tf.train.range_input_producer(50, num_epochs=rng.choice((None, 2)), shuffle=False).dequeue()
        batch = tf.train.batch([number, tf.square(number)], size, num_threads=threads_of, capacity=2 * size)
        session = tf.Session()
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        seen = collections.Counter[int]()
        for _ in range(rng.randint(0, 40)):
            try:
                numbers, squares = session.run(batch)
            except tf.errors.OutOfRangeError:
                break
            tally.counts["steps"] += 1
            tally.check((numbers**2 == squares).all(), f"{words}: components of several elements came together")
            seen.update(numbers.tolist())
        watch, ends = Watch(), list[float]()

        def joined(thread: threading.Thread) -> None:
            thread.join(20)
            ends.append(time.monotonic())

        joins = [threading.Thread(target=joined, args=(thread,)) for thread in threads]
        for join in joins:
            join.start()

        def stop() -> None:
            if end == "a closed session":
                session.close()
            coord.request_stop()

        at = watch.stop(stop)
        finished([*threads, *joins], tally, words)
        if end == "a coordinator":
            coord.join(threads)
        session.close()
        tally.late[end] += [max(0.0, moment - at) for moment in ends]
        tally.check(max(seen.values(), default=0) - min(seen.values(), default=0) <= 2 + threads_of, f"{words}: {seen}")


def datasets(rng: random.Random, tally: Tally, words: str) -> None:
    """Threads that take elements of a pipeline with threads of its own, which begins anew, and whose session is closed."""
    gate, made = threading.Event(), list[int]()
    held = rng.randint(5, 60)

    def numbers() -> Iterator[int]:
        for i in range(10**9):
            if i == held:
                gate.wait(20)
            made.append(i)
            yield i

    with tf.Graph().as_default():
        dataset = tf.data.Dataset.from_generator(numbers, tf.int64, [])
        if rng.random() < 0.5:
            dataset = dataset.map(lambda x: x + 0, num_parallel_calls=rng.randint(1, 3))
        dataset = dataset.prefetch(rng.randint(1, 4))
        iterator = dataset.make_initializable_iterator()
        element, session = iterator.get_next(), tf.Session()
        steps = Steps(session, tally)
        session.run(iterator.initializer)
        got, ends, failed, anew = list[int](), list[float](), [0], rng.random() < 0.5

        def taking(draw: random.Random) -> None:
            while True:
                try:
                    done, found = steps.run(draw, element)
                except (tf.errors.GraphdockError, RuntimeError):
                    ends.append(time.monotonic())
                    return
                if done:
                    got.append(int(found))
                else:
                    failed[0] += 1

        draws = [random.Random(rng.getrandbits(64)) for _ in range(rng.randint(1, 3))]
        threads = [threading.Thread(target=taking, args=(draw,)) for draw in draws]
        watch = Watch()
        for thread in threads:
            thread.start()
        time.sleep(rng.random() * 0.03)
        end = "a new beginning" if anew else "a closed session"
        at = watch.stop(lambda: session.run(iterator.initializer) if anew else session.close())
        if anew:  # who waited was woken; who came later reads the new elements, and waits there
            gate.set()
            session.close()
        gate.set()
        finished(threads, tally, words)
        if not anew:
            tally.late[end] += [max(0.0, moment - at) for moment in ends]
            tally.check(len(got) == len(set(got)), f"{words}: an element came twice")
            lost = len(set(range(max(got, default=-1) + 1)) - set(got))
            tally.taken += lost
            tally.check(lost <= failed[0] + len(threads), f"{words}: {lost} elements are lost")


EPISODES = (queues, pipelines, datasets)


def child() -> None:
    """Wait in a step again and again, say when, and when the KeyboardInterrupt came; check that nothing was taken."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    queue = tf.FIFOQueue(4, tf.int64, [[]])
    some = tf.placeholder(tf.int64, [None])
    put, size, left = queue.enqueue_many(some), queue.size(), tf.placeholder(tf.int32, [])
    rest = queue.dequeue_many(left)
    stuck = tf.data.Dataset.from_generator(lambda: iter(threading.Event().wait, None), tf.bool, []).prefetch(1)
    waits = [queue.dequeue(), queue.dequeue_many(3), put, stuck.make_one_shot_iterator().get_next()]
    rng, turn = random.Random(7), 0
    with tf.Session() as session:
        while True:
            which = rng.randrange(len(waits))
            before = {0: [], 1: [1, 2], 2: [3, 4, 5, 6], 3: [7]}[which]
            if before:
                session.run(put, {some: before})
            print("waits", flush=True)
            try:
                session.run(waits[which], {some: [8, 9]} if which == 2 else None)
                after = -1.0
            except KeyboardInterrupt:
                after = time.monotonic()
            found = session.run(rest, {left: session.run(size)}).tolist()
            print(after, found == before, which, flush=True)
            turn += 1
            if not sys.stdin.readline():
                return


class Interrupts:
    """A child process that waits, and gets SIGINT."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, __file__, "--child"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def turn(self, rng: random.Random, tally: Tally, words: str) -> None:
        out, into = self._child.stdout, self._child.stdin
        assert out is not None and into is not None
        tally.check(out.readline() == "waits\n", f"{words}: the child does not wait")
        time.sleep(0.002 + rng.random() * 0.01)
        watch = Watch()
        at = watch.stop(lambda: self._child.send_signal(signal.SIGINT))
        told = out.readline().split()
        tally.check(bool(told) and told[1] == "True", f"{words}: the child said {told}")
        if told:
            tally.late["Ctrl-C"].append(max(0.0, float(told[0]) - at))
        into.write("\n")
        into.flush()

    def close(self, tally: Tally) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        time.sleep(0.2)
        self._child.send_signal(signal.SIGINT)  # it may wait already
        try:
            self._child.wait(20)
        except subprocess.TimeoutExpired:
            tally.check(False, "the child does not end")
            self._child.kill()


def soak(seconds: float, seed: int = 0) -> Tally:
    """Run episodes for so long, one after another."""
    _others.update(threading.enumerate())
    tally, until = Tally(), time.monotonic() + seconds
    interrupts = Interrupts()
    try:
        _episodes(tally, interrupts, until, seed)
    finally:
        interrupts.close(tally)
    for kind, found in tally.late.items():
        late = [each for each in found if each > SOON]
        tally.check(not late, f"woken by {kind}: {len(late)} of {len(found)} waits ended later than {SOON} s")
    return tally


def _episodes(tally: Tally, interrupts: Interrupts, until: float, seed: int) -> None:
    number = 0
    while time.monotonic() < until or number < len(EPISODES):
        episode = EPISODES[number % len(EPISODES)]
        words = f"episode {number} of seed {seed} ({episode.__name__})"
        rng = random.Random(f"{seed},{number}")
        episode(rng, tally, words)
        interrupts.turn(rng, tally, words)
        tally.counts[f"episodes of {episode.__name__}"] += 1
        number += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", action="store_true", help="what the script runs beside itself")
    options = parser.parse_args()
    if options.child:
        child()
        return 0
    tally = soak(options.minutes * 60, options.seed)
    print(tally.told())
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
