"""RayPlace: an actor of Ray that runs a script as one task of a cluster."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdock.contracts import errors
from graphdock.contracts.cluster import Place, TaskName
from graphdock.locks import new_lock

from graphdock_ray.actors import GRACE
from graphdock_ray.directory import START, Directory
from graphdock_ray.keys import VARIABLE

__all__ = ["RayPlace", "places"]


def places(directory: Directory, cluster: str, tasks: Sequence[TaskName]) -> dict[TaskName, Place]:
    """A place per task, all with one secret, which Ray hands to them. See ``Transport.places``."""
    secret = os.environ.get(VARIABLE) or secrets.token_urlsafe(24)
    made: dict[TaskName, Place] = {}
    try:
        for task in tasks:
            made[task] = RayPlace(directory.ray, task, directory.script(cluster, task, secret))
        for place in made.values():
            assert isinstance(place, RayPlace)
            place.wait()
    except BaseException:
        for place in made.values():
            place.stop()
        raise
    return made


class RayPlace(Place):
    """An actor that runs a script."""

    def __init__(self, ray: Any, task: TaskName, actor: Any) -> None:
        self._ray, self._task, self._actor = ray, task, actor
        self._lock = new_lock()
        self._stopped = False

    def wait(self) -> None:
        """Wait until the actor is there, and take its address. Raises UnavailableError."""
        try:
            self.address = self._ray.get(self._actor.where.remote(), timeout=START)[0]
        except self._ray.exceptions.RayError as error:
            raise errors.UnavailableError(f"Ray has no place for {self._task}: {error}") from None

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], say: Callable[[str], None]) -> int:
        try:
            own = {k: v for k, v in os.environ.items() if k.startswith("GRAPHDOCK_") or k == "PYTHONPATH"}
            self._ray.get(self._actor.run.remote(list(arguments), {**own, **environment}, os.getcwd()))
            while True:
                lines, status = self._ray.get(self._actor.lines.remote())
                for line in lines:
                    say(line)
                if status is not None and not lines:
                    return int(status)
        except self._ray.exceptions.RayActorError:
            raise errors.UnavailableError(f"the actor that ran {self._task} is lost") from None

    def stop(self) -> None:
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
        try:
            self._ray.get(self._actor.stop.remote(), timeout=2 * GRACE)
        except self._ray.exceptions.RayError:
            pass  # it is lost, or hangs: it is killed below
        self._ray.kill(self._actor)
