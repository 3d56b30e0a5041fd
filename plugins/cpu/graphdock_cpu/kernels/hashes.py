"""Kernels of ops that put strings into buckets: three 64-bit hashes, each modulo the number of buckets.

Values are TensorFlow's. Integers of Python are masked to 64 bits where a sum or product may be longer.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from graphdock.contracts import BuildContext, KernelDef

from graphdock_cpu.kernels.text import elementwise

__all__ = ["KERNELS", "farm_hash", "murmur_hash", "sip_hash"]

_MASK = (1 << 64) - 1


def _rotated(v: int, right: int) -> int:
    return (v >> right | v << (64 - right)) & _MASK


def murmur_hash(text: bytes, seed: int = 0xDECAFCAFFE) -> int:
    """MurmurHash64A (Appleby, 2008)."""
    m, size = 0xC6A4A7935BD1E995, len(text)
    h = (seed ^ size * m) & _MASK
    whole = size // 8 * 8
    for (k,) in struct.iter_unpack("<Q", text[:whole]):
        k = k * m & _MASK
        h = (h ^ ((k ^ k >> 47) * m & _MASK)) * m & _MASK
    if size > whole:
        h = (h ^ int.from_bytes(text[whole:], "little")) * m & _MASK
    h = (h ^ h >> 47) * m & _MASK
    return h ^ h >> 47


# FarmHash Fingerprint64 (Pike and Alakuijala, 2014).
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _mixed(v: int) -> int:
    return v ^ v >> 47


def _of_two(u: int, v: int, factor: int) -> int:
    a = _mixed((u ^ v) * factor & _MASK)
    b = _mixed((v ^ a) * factor & _MASK)
    return b * factor & _MASK


def _of_32(w: int, x: int, y: int, z: int, a: int, b: int) -> tuple[int, int]:
    """Two words of four and two."""
    a = a + w & _MASK
    b = _rotated(b + a + z & _MASK, 21)
    c = a
    a = a + x + y & _MASK
    return a + z & _MASK, b + _rotated(a, 44) + c & _MASK


def farm_hash(text: bytes) -> int:
    """Fingerprint64 of FarmHash."""
    size = len(text)
    if size <= 16:
        return _farm_16(text, size)
    if size <= 32:
        return _farm_32(text, size)
    return _farm_64(text, size) if size <= 64 else _farm_long(text, size)


def _word(text: bytes, at: int) -> int:
    return int.from_bytes(text[at : at + 8], "little")


def _farm_16(text: bytes, size: int) -> int:
    factor = _K2 + size * 2
    if size >= 8:
        a, b = _word(text, 0) + _K2 & _MASK, _word(text, size - 8)
        c = _rotated(b, 37) * factor + a & _MASK
        return _of_two(c, (_rotated(a, 25) + b) * factor & _MASK, factor)
    if size >= 4:
        first, last = (int.from_bytes(text[at : at + 4], "little") for at in (0, size - 4))
        return _of_two(size + (first << 3) & _MASK, last, factor)
    if size:
        y, z = text[0] + (text[size >> 1] << 8), size + (text[-1] << 2)
        return _mixed((y * _K2 ^ z * _K0) & _MASK) * _K2 & _MASK
    return _K2


def _farm_32(text: bytes, size: int) -> int:
    factor = _K2 + size * 2
    a, b = _word(text, 0) * _K1 & _MASK, _word(text, 8)
    c, d = _word(text, size - 8) * factor & _MASK, _word(text, size - 16) * _K2
    u = _rotated(a + b & _MASK, 43) + _rotated(c, 30) + d & _MASK
    return _of_two(u, a + _rotated(b + _K2 & _MASK, 18) + c & _MASK, factor)


def _farm_64(text: bytes, size: int) -> int:
    factor = _K2 + size * 2
    a, b = _word(text, 0) * _K2 & _MASK, _word(text, 8)
    c, d = _word(text, size - 8) * factor & _MASK, _word(text, size - 16) * _K2
    y = _rotated(a + b & _MASK, 43) + _rotated(c, 30) + d & _MASK
    z = _of_two(y, a + _rotated(b + _K2 & _MASK, 18) + c & _MASK, factor)
    e, f = _word(text, 16) * factor & _MASK, _word(text, 24)
    g, h = (y + _word(text, size - 32)) * factor & _MASK, (z + _word(text, size - 24)) * factor & _MASK
    u = _rotated(e + f & _MASK, 43) + _rotated(g, 30) + h & _MASK
    return _of_two(u, e + _rotated(f + a & _MASK, 18) + g & _MASK, factor)


def _farm_long(text: bytes, size: int) -> int:
    seed = 81
    y = seed * _K1 + 113 & _MASK
    z = _mixed(y * _K2 + 113 & _MASK) * _K2 & _MASK
    x = seed * _K2 + _word(text, 0) & _MASK
    v, w = (0, 0), (0, 0)
    for at in range(0, (size - 1) // 64 * 64, 64):
        x, y, z, v, w = _farm_block(text, at, x, y, z, v, w, _K1, 1)
    factor = _K1 + ((z & 0xFF) << 1)
    first = w[0] + (size - 1 & 63) & _MASK
    v = v[0] + first & _MASK, v[1]
    w = first + v[0] & _MASK, w[1]
    x, y, z, v, w = _farm_block(text, size - 64, x, y, z, v, w, factor, 9)
    a = _of_two(v[0], w[0], factor) + _mixed(y) * _K0 + z & _MASK
    return _of_two(a, _of_two(v[1], w[1], factor) + x & _MASK, factor)


def _farm_block(
    text: bytes, at: int, x: int, y: int, z: int, v: tuple[int, int], w: tuple[int, int], factor: int, times: int
) -> tuple[int, int, int, tuple[int, int], tuple[int, int]]:
    """The state after 64 bytes."""
    words = struct.unpack_from("<8Q", text, at)
    x = _rotated(x + y + v[0] + words[1] & _MASK, 37) * factor & _MASK
    y = _rotated(y + v[1] + words[6] & _MASK, 42) * factor & _MASK
    x ^= w[1] * times & _MASK
    y = y + v[0] * times + words[5] & _MASK
    z = _rotated(z + w[0] & _MASK, 33) * factor & _MASK
    v = _of_32(*words[:4], v[1] * factor & _MASK, x + w[0] & _MASK)
    w = _of_32(*words[4:], z + w[1] & _MASK, y + words[2] & _MASK)
    return z, y, x, v, w


def sip_hash(text: bytes, key: tuple[int, int]) -> int:
    """SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012)."""
    k0, k1 = key[0] & _MASK, key[1] & _MASK
    state = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    size = len(text)
    padded = text + bytes(7 - size % 8) + bytes([size & 0xFF])
    for (m,) in struct.iter_unpack("<Q", padded):
        state[3] ^= m
        _sip_rounds(state, 2)
        state[0] ^= m
    state[2] ^= 0xFF
    _sip_rounds(state, 4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _sip_rounds(state: list[int], count: int) -> None:
    a, b, c, d = state
    for _ in range(count):
        a = a + b & _MASK
        b = _rotated(b, 51) ^ a
        a = _rotated(a, 32)
        c = c + d & _MASK
        d = _rotated(d, 48) ^ c
        a = a + d & _MASK
        d = _rotated(d, 43) ^ a
        c = c + b & _MASK
        b = _rotated(b, 47) ^ c
        c = _rotated(c, 32)
    state[:] = a, b, c, d


def _buckets(digest: Callable[[bytes], int], count: int) -> Callable[[bytes], int]:
    return lambda text: digest(text) % count


def _legacy(ctx: BuildContext) -> Callable[[bytes], int]:
    return _buckets(murmur_hash, ctx.attr("num_buckets"))


def _fast(ctx: BuildContext) -> Callable[[bytes], int]:
    return _buckets(farm_hash, ctx.attr("num_buckets"))


def _strong(ctx: BuildContext) -> Callable[[bytes], int]:
    first, second = ctx.attr("key")
    return _buckets(lambda text: sip_hash(text, (first, second)), ctx.attr("num_buckets"))


KERNELS = [
    KernelDef("StringToHashBucket", "cpu", elementwise(_legacy)),
    KernelDef("StringToHashBucketFast", "cpu", elementwise(_fast)),
    KernelDef("StringToHashBucketStrong", "cpu", elementwise(_strong)),
]
