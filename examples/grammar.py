"""Sentences of a small grammar: a text with structure over long distances, of which the best possible perplexity is known.

A noun and its verb agree in number, however much stands between them: `the a1 noun2 that verb3s the noun0s verb1s the noun4 .`
Within a kind, words are used by Zipf's law.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

__all__ = ["Text", "write"]

#: Symbol -> what it may become, with weights. `-s` are the symbols of the plural. Capitals stand for a word of a kind.
RULES: dict[str, tuple[tuple[float, str], ...]] = {
    "sentence": ((1, "one does ."), (1, "many do .")),
    "one": ((4, "the NOUN"), (2, "the ADJECTIVE NOUN"), (1, "the NOUN that does")),
    "many": ((4, "the NOUNS"), (2, "the ADJECTIVE NOUNS"), (1, "the NOUNS that do")),
    "does": ((2, "SLEEPS"), (2, "SEES one"), (2, "SEES many")),
    "do": ((2, "SLEEP"), (2, "SEE one"), (2, "SEE many")),
}

#: Kind of word -> how the words of it look.
KINDS = {
    "NOUN": "noun{}",
    "NOUNS": "noun{}s",
    "ADJECTIVE": "adjective{}",
    "SLEEP": "sleep{}",
    "SLEEPS": "sleep{}s",
    "SEE": "see{}",
    "SEES": "see{}s",
}


@dataclass(frozen=True)
class Text:
    """A text as numbers of words.

    words: int32 [length]. vocabulary: the words by number, the most frequent first, as sampled losses expect it.
    best: the perplexity of the grammar itself, below which no model comes but by luck.
    """

    words: np.ndarray
    vocabulary: list[str]
    best: float


def write(length: int, per_kind: int, random: np.random.RandomState) -> Text:
    """About ``length`` words of whole sentences. per_kind: how many words a kind has."""
    chances = 1.0 / np.arange(1, per_kind + 1)
    chances /= chances.sum()
    drawn: list[str] = []
    surprise = 0.0
    while len(drawn) < length:
        left = ["sentence"]
        while left:
            symbol = left.pop()
            if symbol in RULES:
                weights = np.array([weight for weight, _ in RULES[symbol]]) / sum(weight for weight, _ in RULES[symbol])
                chosen = random.choice(len(weights), p=weights)
                surprise -= np.log(weights[chosen])
                left.extend(reversed(RULES[symbol][chosen][1].split()))
            elif symbol in KINDS:
                number = int(random.choice(per_kind, p=chances))
                surprise -= np.log(chances[number])
                drawn.append(KINDS[symbol].format(number))
            else:
                drawn.append(symbol)
    vocabulary = [word for word, _ in Counter(drawn).most_common()]
    number_of = {word: number for number, word in enumerate(vocabulary)}
    words = np.array([number_of[word] for word in drawn], np.int32)
    return Text(words, vocabulary, float(np.exp(surprise / len(drawn))))
