"""``tf.contrib.learn.preprocessing``: texts as rows of word numbers."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from graphdock_tf1.platform.gfile import GFile

#: Words: capitals, a capitalised word, or letters, digits, hyphens and apostrophes: TensorFlow's, so that numbers are the same.
_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|['\w\-]+", re.UNICODE)


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each text."""
    for value in iterator:
        yield _WORD.findall(value)


class CategoricalVocabulary:
    """Numbers of categories: 0 is the unknown one, others are numbered as they are first seen.

    Args:
      unknown_token: the name of number 0. support_reverse: keep names, for :meth:`reverse`.
    """

    def __init__(self, unknown_token: str = "<UNK>", support_reverse: bool = True) -> None:
        self._unknown_token = unknown_token
        self._mapping: dict[Any, int] = {unknown_token: 0}
        self._support_reverse = support_reverse
        self._reverse_mapping = [unknown_token]
        self._freq: Counter[Any] = Counter()
        self._freeze = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Number no more categories: new ones are unknown."""
        self._freeze = freeze

    def get(self, category: Any) -> int:
        """The number of a category; a new one is numbered, or unknown where the vocabulary is frozen."""
        found = self._mapping.get(category)
        if found is None:
            if self._freeze:
                return 0
            found = self._mapping[category] = len(self._mapping)
            self._reverse_mapping += [category] if self._support_reverse else []
        return found

    def add(self, category: Any, count: int = 1) -> None:
        """Count a category; the unknown one is not counted."""
        if self.get(category) > 0:
            self._freq[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Number anew, the most frequent first and then by name, what was counted more than ``min_frequency`` and, unless that is
        below 1, less than ``max_frequency`` times."""
        by_name = sorted(self._freq.items(), key=lambda item: (isinstance(item[0], str), item[0]))
        ordered = sorted(by_name, key=lambda item: item[1], reverse=True)
        kept = [(c, n) for c, n in ordered if n > min_frequency and (max_frequency <= 0 or n < max_frequency)]
        self._mapping = {self._unknown_token: 0, **{category: i + 1 for i, (category, _) in enumerate(kept)}}
        self._reverse_mapping = list(self._mapping) if self._support_reverse else [self._unknown_token]
        self._freq = Counter(dict(kept))

    def reverse(self, class_id: int) -> Any:
        """The category of a number.

        Raises:
          ValueError: names are not kept. IndexError: there is no such number.
        """
        if not self._support_reverse:
            raise ValueError("This vocabulary wasn't initialized with support_reverse to support reverse() function.")
        return self._reverse_mapping[class_id]


class VocabularyProcessor:
    """Texts as rows of word numbers, all of one length: cut, or filled with 0, which is also the number of unknown words.

    Args:
      max_document_length: words of a row.
      min_frequency: words that are not seen more often are unknown.
      vocabulary: one to use and to add to; default: a new CategoricalVocabulary.
      tokenizer_fn: takes texts and gives the words of each; default: :func:`tokenizer`.
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[str]], Iterable[list[str]]] | None = None,
    ) -> None:
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> VocabularyProcessor:
        """Number the words of texts, and freeze the vocabulary; returns this."""
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(self, raw_documents: Any, unused_y: Any = None) -> Iterator[Any]:
        """:meth:`fit` and :meth:`transform`."""
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def transform(self, raw_documents: Iterable[str]) -> Iterator[Any]:
        """A row for each text: an int64 array ``[max_document_length]``."""
        for words in self._tokenizer(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            known = [self.vocabulary_.get(word) for word in words[: self.max_document_length]]
            row[: len(known)] = known
            yield row

    def reverse(self, documents: Iterable[Any]) -> Iterator[str]:
        """A text for each row: its words with blanks between."""
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(number) for number in row)

    def save(self, filename: str) -> None:
        """Write this to a file, as a pickle; a ``tokenizer_fn`` has to be one that pickles."""
        with GFile(filename, "wb") as file:
            file.write(pickle.dumps(self))

    @classmethod
    def restore(cls, filename: str) -> VocabularyProcessor:
        """Read one from a file. A pickle runs what its writer wants: read no file that you do not trust."""
        with GFile(filename, "rb") as file:
            return pickle.loads(file.read())  # type: ignore[no-any-return]  # noqa: S301 - the format is TensorFlow's
