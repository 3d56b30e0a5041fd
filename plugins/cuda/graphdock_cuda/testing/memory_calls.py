"""The fake driver's calls about memory."""

from __future__ import annotations

import ctypes

from graphdock_testing.driver.scheduler import Work

from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing.memory import Block
from graphdock_cuda.testing.state import State, Use, bytes_of

__all__ = ["MemoryCalls"]


class MemoryCalls(State):
    """See Driver. Memory that a stream freed is that stream's next at once, while work may still use it."""

    def memory_info(self, device: int) -> tuple[int, int]:
        with self.call("memory_info", device=self.devices[device]):
            arena = self.devices[device].memory
            return arena.limit - arena.in_use, arena.limit

    def trim(self, device: int) -> None:
        with self.call("trim", str(device), device=self.devices[device]):
            pass

    def malloc(self, nbytes: int, stream: int) -> int:
        with self.call("malloc", f"{nbytes} bytes"):
            owner = self.stream_of(stream, "malloc")
            if owner.device is not self.device:
                raise self.misuse("malloc", 400, f"{owner.name} is not of {self.device.name}, which is current")
            if owner.capture is not None:
                raise self.break_capture(owner.capture, CudaError("malloc", 900))
            if nbytes <= 0:
                raise self.misuse("malloc", 1, f"{nbytes} bytes")
            block = owner.device.memory.take(nbytes, owner)
            if block is None:
                raise CudaError("malloc", 2)
            # memory whose last work is done goes to any stream, in an order that only the driver knows; the block's life is watched
            self.detector.forget((bytes_of(block, block.address, block.nbytes),))
            self.lifetime(owner, "malloc", block)
            return block.address

    def free(self, address: int, stream: int) -> None:
        with self.call("free", releases=True):
            owner = self.stream_of(stream, "free")
            if owner.capture is not None:
                raise self.break_capture(owner.capture, CudaError("free", 900))
            block = self._block_to_free(address, "free")
            device = self.device_of(block)
            if device is None:
                raise self.misuse("free", 1, f"{block} is of host_alloc")
            self.lifetime(owner, "free", block)
            arena = device.memory
            self.scheduler.add(owner.line, Work(f"free of {block}", lambda: self._clear(block)))
            point = owner.line.point()
            arena.give(block, owner, lambda: point.reached)

    def _clear(self, block: Block) -> None:
        device = self.device_of(block)
        assert device is not None
        if block.region.block is block and not block.intact():
            self.misuse("free", 700, f"something wrote beyond {block}")
        device.memory.clear(block)

    def _block_to_free(self, address: int, call: str) -> Block:
        block = self.block_at(address, call)
        if block is None or block.address != address:
            raise self.misuse(call, 1, f"{address:#x} is the begin of no block")
        return block

    def host_alloc(self, nbytes: int) -> int:
        with self.call("host_alloc", f"{nbytes} bytes", unsafe=True):
            if nbytes <= 0:
                raise self.misuse("host_alloc", 1, f"{nbytes} bytes")
            block = self.host.take(nbytes, None)
            if block is None:
                raise CudaError("host_alloc", 2)
            block.poison()
            self.lifetime_on_host("host_alloc", block)
            return block.address

    def host_free(self, address: int) -> None:
        with self.call("host_free", unsafe=True, releases=True):
            block = self._block_to_free(address, "host_free")
            if self.device_of(block) is not None:
                raise self.misuse("host_free", 1, f"{block} is of malloc")
            self.lifetime_on_host("host_free", block)
            if not block.intact():
                self.misuse("host_free", 700, f"something wrote beyond {block}")
            block.poison()
            self.host.give(block, None, lambda: True)

    def copy(self, dst: int, src: int, nbytes: int, stream: int) -> None:
        self._copy("copy", dst, src, nbytes, stream)

    def copy_peer(self, dst: int, dst_device: int, src: int, src_device: int, nbytes: int, stream: int) -> None:
        self._copy("copy_peer", dst, src, nbytes, stream, (dst_device, src_device))

    def _copy(
        self, call: str, dst: int, src: int, nbytes: int, stream: int, devices: tuple[int, int] | None = None
    ) -> None:
        with self.lock:
            line = self.stream_of(stream, call)
            target, source = (self._block_of_copy(address, nbytes, call) for address in (dst, src))
            to, of = self.device_of(target), self.device_of(source)
            if devices is not None and (to, of) != tuple(self.devices[index] for index in devices):
                raise self.misuse(call, 1, f"not from device {devices[1]} to device {devices[0]}: {source} to {target}")
            way = "p2p" if to and of and to is not of else ("d" if of else "h") + "2" + ("d" if to else "h")
            with self.call(call, f"{way} {nbytes} bytes", device=line.device) as late:
                if nbytes == 0:
                    return
                self.queue(
                    line,
                    f"copy {way} of {nbytes} bytes",
                    lambda: _move(dst, src, nbytes),
                    uses=(Use(target), Use(source)),
                    reads=(bytes_of(source, src, nbytes),),
                    writes=(bytes_of(target, dst, nbytes),),
                    counted=("copy", way, nbytes),
                    late=late,
                )

    def _block_of_copy(self, address: int, nbytes: int, call: str) -> Block:
        block = self.block_at(address, call, nbytes)
        if block is None:
            raise self.misuse(call, 1, f"{address:#x} is neither of a device nor pinned")
        return block

    def can_access_peer(self, device: int, peer: int) -> bool:
        with self.call("can_access_peer", f"{device} {peer}"):
            return self.peers and device != peer and {device, peer} <= set(range(len(self.devices)))

    def enable_peer(self, peer: int) -> None:
        with self.call("enable_peer", str(peer)):
            if not self.peers or not 0 <= peer < len(self.devices) or peer == self.device.index:
                raise CudaError("enable_peer", 101)
            self.device.peers.add(peer)

    def fill(self, address: int, byte: int, nbytes: int, stream: int) -> None:
        with self.lock:
            line = self.stream_of(stream, "fill")
            block = self._block_of_copy(address, nbytes, "fill")
            with self.call("fill", f"{nbytes} bytes", device=line.device) as late:
                if nbytes == 0:
                    return
                self.queue(
                    line,
                    f"fill of {nbytes} bytes",
                    lambda: _set(address, byte & 0xFF, nbytes),
                    uses=(Use(block),),
                    writes=(bytes_of(block, address, nbytes),),
                    counted=("fill", "", nbytes),
                    late=late,
                )


def _move(dst: int, src: int, nbytes: int) -> None:
    ctypes.memmove(dst, src, nbytes)


def _set(address: int, byte: int, nbytes: int) -> None:
    ctypes.memset(address, byte, nbytes)
