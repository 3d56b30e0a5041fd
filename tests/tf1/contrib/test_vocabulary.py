"""``tf.contrib.learn.preprocessing``: words, numbers and rows."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

preprocessing = tf.contrib.learn.preprocessing
TEXTS = ["I love you", "I love me", "he loves her, isn't it"]


def test_texts_are_rows_of_numbers() -> None:
    processor = preprocessing.VocabularyProcessor(4)
    rows = np.array(list(processor.fit_transform(TEXTS)))
    assert rows.dtype == np.int64
    assert rows.tolist() == [[1, 2, 3, 0], [1, 2, 4, 0], [5, 6, 7, 8]]
    assert len(processor.vocabulary_) == 10
    assert [r.tolist() for r in processor.transform(["you love cats"])] == [[3, 2, 0, 0]]
    assert list(processor.reverse([[1, 2, 0]])) == ["I love <UNK>"]
    assert list(preprocessing.tokenizer(["he isn't HTTPServer"])) == [["he", "isn't", "HTTP", "Server"]]


def test_rare_words_are_unknown_and_the_rest_is_numbered_anew() -> None:
    processor = preprocessing.VocabularyProcessor(3, min_frequency=1).fit(TEXTS)
    assert [r.tolist() for r in processor.transform(TEXTS)] == [[1, 2, 0], [1, 2, 0], [0, 0, 0]]


def test_processors_are_kept_in_files(tmp_path) -> None:
    processor = preprocessing.VocabularyProcessor(4).fit(TEXTS)
    processor.save(str(tmp_path / "vocab"))
    again = preprocessing.VocabularyProcessor.restore(str(tmp_path / "vocab"))
    assert [r.tolist() for r in again.transform(TEXTS)] == [r.tolist() for r in processor.transform(TEXTS)]


def test_a_vocabulary_counts_trims_and_freezes() -> None:
    words = preprocessing.CategoricalVocabulary(unknown_token="?")
    for word, count in (("b", 3), ("a", 3), ("c", 9), ("d", 1), ("?", 5)):
        words.add(word, count)
    words.trim(1, 9)
    assert [words.reverse(i) for i in range(len(words))] == ["?", "a", "b"]
    assert words.get("c") == 3
    words.freeze()
    assert words.get("new") == 0
    with pytest.raises(ValueError, match="support_reverse"):
        preprocessing.CategoricalVocabulary(support_reverse=False).reverse(0)
