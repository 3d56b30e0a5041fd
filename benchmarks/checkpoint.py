"""C9: saving and restoring 1 GiB in 200 variables, beside TensorFlow's Saver, torch.save and safetensors.

What a save promises differs: graphdock's is on the disk when it returns, and a power cut leaves the checkpoint before; its peers
leave both to the system. So there are two programs of each kind. On the disk every peer's call goes on until its files are there
too (``fsync`` of each, and of the folder). In memory (``/dev/shm``) nobody waits for a disk, and only the work is compared: copies,
checksums (TensorFlow and graphdock sum all bytes, the other two none) and files. Each save replaces the one before, under its name.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

from benchmarks.cli import benchmark_main
from benchmarks.frameworks import session_builders
from benchmarks.program import Bar, Case, Program, Unavailable

VARIABLES, SHAPE = 200, (1024, 1310)  # 5.1 MiB each
MEMORY = "/dev/shm"
#: Variables whose values are compared.
SHOWN = (0, 77, 199)


def _folder(memory: bool) -> str:
    """A folder of this process's own, removed at its end. TMPDIR says on which disk."""
    if memory and not os.path.isdir(MEMORY):
        raise Unavailable(f"there is no {MEMORY}")
    made = tempfile.mkdtemp(prefix="graphdock-benchmark-", dir=MEMORY if memory else None)
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def _arrays() -> Iterator[tuple[str, Any]]:
    import numpy as np

    first = np.random.RandomState(9).normal(size=SHAPE).astype("float32")
    for i in range(VARIABLES):
        yield f"v{i}", first + np.float32(i)


def _shown(values: dict[str, Any]) -> list[Any]:
    return [values[f"v{i}"] for i in SHOWN]


def sync(folder: str) -> None:
    """Wait until the files of a folder, and their names, are on the disk."""
    for path in [*(entry.path for entry in os.scandir(folder)), folder]:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def session(tf: ModuleType, open_session: Callable[[], Any], memory: bool, restores: bool) -> Case:
    """A Saver of all variables."""
    folder = _folder(memory)
    variables = [tf.get_variable(f"v{i}", SHAPE, initializer=tf.zeros_initializer()) for i in range(VARIABLES)]
    saver, sess = tf.train.Saver(), open_session()
    for variable, (_, value) in zip(variables, _arrays(), strict=True):
        variable.load(value, sess)
    path = os.path.join(folder, "model")
    syncs = not memory and tf.__name__ != "graphdock"  # a save of graphdock's is on the disk already

    def save() -> None:
        saver.save(sess, path, write_meta_graph=False)
        if syncs:
            sync(folder)

    def restored() -> list[Any]:
        saver.restore(sess, path)
        return list(sess.run([variables[i] for i in SHOWN]))

    if not restores:
        return Case(save, restored)
    save()
    return Case(lambda: saver.restore(sess, path), restored)


def torch_files(memory: bool, restores: bool) -> Case:
    """torch.save and torch.load of a state dict, which is copied into tensors that are there."""
    import torch

    path = os.path.join(_folder(memory), "model.pt")
    state = {name: torch.from_numpy(value) for name, value in _arrays()}

    def save() -> None:
        torch.save(state, path)
        if not memory:
            sync(os.path.dirname(path))

    def restore() -> None:
        for name, value in torch.load(path).items():
            state[name].copy_(value)

    def restored() -> list[Any]:
        restore()
        return _shown({name: value.numpy() for name, value in state.items()})

    if not restores:
        return Case(save, restored)
    save()
    return Case(restore, restored)


def safetensors_files(memory: bool, restores: bool) -> Case:
    """save_file and load_file of NumPy arrays, which are copied into arrays that are there."""
    try:
        from safetensors.numpy import load_file, save_file
    except ModuleNotFoundError as error:
        raise Unavailable("pip install safetensors") from error
    import numpy as np

    path = os.path.join(_folder(memory), "model.safetensors")
    state = dict(_arrays())

    def save() -> None:
        save_file(state, path)
        if not memory:
            sync(os.path.dirname(path))

    def restore() -> None:
        for name, value in load_file(path).items():
            np.copyto(state[name], value)

    def restored() -> list[Any]:
        restore()
        return _shown(state)

    if not restores:
        return Case(save, restored)
    save()
    return Case(restore, restored)


def _program(name: str, summary: str, memory: bool, restores: bool) -> Program:
    return Program(
        name,
        summary,
        {
            **session_builders(partial(session, memory=memory, restores=restores)),
            "torch": partial(torch_files, memory, restores),
            "numpy/safetensors": partial(safetensors_files, memory, restores),
        },
        (Bar("C9", ("tensorflow",), 1.0),),
        reference="graphdock",
        rtol=0.0,
        atol=0.0,
        once=True,
    )


PROGRAMS = (
    _program("save", "1 GiB in 200 variables, on the disk when the call returns", False, False),
    _program("save_memory", "the same to files in memory", True, False),
    _program("restore", "1 GiB in 200 variables, of files that the system has in memory", False, True),
    _program("restore_memory", "the same of files in memory", True, True),
)

if __name__ == "__main__":
    sys.exit(benchmark_main("checkpoint", PROGRAMS, rounds=5))
