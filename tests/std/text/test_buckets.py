"""Hash buckets.

Expected values are TensorFlow's.
"""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest

from tests.std.text.results import run

BUCKETS: list[tuple[Any, Any]] = [
    (lambda: tf.string_to_hash_bucket(["hello", "world", "", "a"], 1000), [938, 861, 899, 868]),
    (
        lambda: tf.string_to_hash_bucket_fast(
            [
                "hello",
                "world",
                "",
                "a",
                "abcdefgh",
                "abcdefghi",
                "abcdefghijklmnopq",
                "x" * 32,
                "x" * 33,
                "y" * 64,
                "y" * 65,
                "z" * 100,
                "w" * 128,
                "w" * 129,
                "v" * 1000,
            ],
            2**31,
        ),
        [
            825756904,
            1589163118,
            797982799,
            920614371,
            281553161,
            1525004866,
            762811304,
            1282726917,
            1139152439,
            310634680,
            278946396,
            1004747385,
            582046616,
            611210099,
            1221534473,
        ],
    ),
    (
        lambda: tf.string_to_hash_bucket_strong(["hello", "world", "", "a", "y" * 65], 2**31, [1, 2]),
        [1799583894, 103213702, 1640736635, 1450769654, 1514227937],
    ),
    (
        lambda: tf.string_to_hash_bucket_strong(["x" * i for i in range(10)], 2**40, [2**63 - 1, -1]),
        [
            29737883218,
            798718009611,
            515316548281,
            235907609427,
            266819123044,
            1040750721682,
            84333150606,
            824553396998,
            566819391534,
            217489085638,
        ],
    ),
    (
        lambda: tf.string_to_hash_bucket(["x" * i for i in range(18)], 2**40),
        [
            142163811899,
            1026644654064,
            318588517052,
            557620249292,
            1050539720701,
            421491900682,
            836986231215,
            427700984255,
            374988365647,
            582159558723,
            406608820354,
            1153144372,
            316062246351,
            369140911107,
            47326618428,
            1048768236677,
            1078567620970,
            522267767094,
        ],
    ),
    (
        lambda: tf.string_to_hash_bucket_fast(["x" * i for i in range(18)], 2**62),
        [
            1936946117179621455,
            107802420385376258,
            3075356281063744165,
            3091163115821544028,
            1720235418723337390,
            4353426961065742888,
            1873083284026324572,
            1227340135899025967,
            416454844068956798,
            3938540446998675217,
            4498993042926045499,
            1569055911597205950,
            2344409068416288835,
            638094655595361623,
            952715409333942654,
            1773838639343418510,
            3320895591121647644,
            2082709914559524773,
        ],
    ),
]

REFUSED_BUCKETS: list[Any] = [
    lambda: tf.string_to_hash_bucket_fast(["hello"], 0),
    lambda: tf.string_to_hash_bucket_strong(["hello"], 10, [1]),
]


@pytest.mark.parametrize("index", range(len(BUCKETS)))
def test_buckets(index: int) -> None:
    build, want = BUCKETS[index]
    fetch = build()
    got = run(fetch)
    np.testing.assert_equal(got, want)


@pytest.mark.parametrize("index", range(len(REFUSED_BUCKETS)))
def test_refused_buckets(index: int) -> None:
    with pytest.raises((ValueError, TypeError)):
        run(REFUSED_BUCKETS[index]())
