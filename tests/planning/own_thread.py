"""A test in a thread of its own, for tests that raise between two bytecodes.

What a trace function raises there may leave a handled exception on the thread's stack that nobody takes off again (CPython 3.11):
``sys.exc_info()`` names it ever after, and it is the context of all that the thread raises later. So such a thread ends.
"""

from __future__ import annotations

import functools
import threading


def in_its_own_thread(test):
    @functools.wraps(test)
    def run(*args, **kwargs):
        raised = []

        def body():
            try:
                test(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - raised by the thread that waits
                raised.append(error)

        thread = threading.Thread(target=body, name=test.__name__)
        thread.start()
        thread.join()
        if raised:
            raise raised[0]

    return run
