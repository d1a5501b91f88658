"""`tf.contrib.learn.preprocessing`: converts documents to arrays of word ids."""

from __future__ import annotations

import collections
import pickle
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

# Matches a run of capitals, a capitalized word inside a longer word, or a run of letters, digits,
# apostrophes and hyphens.
TOKENIZER_RE = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)

Tokenizer = Callable[[Iterable[str]], Iterable[Iterable[str]]]


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """Yields the list of words of each document."""
    for document in iterator:
        yield TOKENIZER_RE.findall(document)


class CategoricalVocabulary:
    """Ids of categories in order of first occurrence; 0 is the unknown category."""

    def __init__(self, unknown_token: Hashable = "<UNK>", support_reverse: bool = True):
        self._unknown_token = unknown_token
        self._mapping: dict[Hashable, int] = {unknown_token: 0}
        self._reverse_mapping: list[Hashable] | None = [unknown_token] if support_reverse else None
        self._support_reverse = support_reverse
        self._freq: collections.Counter[Hashable] = collections.Counter()
        self._freeze = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Makes new categories unknown from now on; `freeze=False` undoes it."""
        self._freeze = freeze

    def get(self, category: Hashable) -> int:
        """The id of a category; a new category gets the next id unless frozen."""
        if category not in self._mapping:
            if self._freeze:
                return 0
            self._append(category)
        return self._mapping[category]

    def _append(self, category: Hashable) -> None:
        self._mapping[category] = len(self._mapping)
        if self._reverse_mapping is not None:
            self._reverse_mapping.append(category)

    def add(self, category: Hashable, count: int = 1) -> None:
        """Adds to a category's count, unless it is unknown."""
        if self.get(category) > 0:
            self._freq[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Drops categories that are too rare or too frequent, and renumbers the rest by frequency.

        Too rare: at most `min_frequency`; too frequent: at least `max_frequency`, if above 0.
        """
        by_name = sorted(self._freq.items(), key=lambda item: (isinstance(item[0], str), item[0]))
        by_frequency = sorted(by_name, key=lambda item: item[1], reverse=True)
        kept = [
            (category, count)
            for category, count in by_frequency
            if count > min_frequency and not 0 < max_frequency <= count
        ]
        self._mapping = {self._unknown_token: 0}
        if self._reverse_mapping is not None:
            self._reverse_mapping = [self._unknown_token]
        for category, _ in kept:
            self._append(category)
        self._freq = collections.Counter(dict(kept))

    def reverse(self, class_id: int) -> Hashable:
        if self._reverse_mapping is None:
            raise ValueError(
                "This vocabulary wasn't initialized with support_reverse to support reverse()."
            )
        return self._reverse_mapping[class_id]


class VocabularyProcessor:
    """Converts documents to arrays of word ids, cut or padded with 0 to one length.

    Words that occur at most `min_frequency` times are unknown.
    """

    def __init__(
        self,
        max_document_length: int,
        min_frequency: int = 0,
        vocabulary: Any = None,
        tokenizer_fn: Tokenizer | None = None,
    ):
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = CategoricalVocabulary() if vocabulary is None else vocabulary
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[str], unused_y: Any = None) -> VocabularyProcessor:
        """Learns the words of documents; later words are unknown. Returns itself."""
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def fit_transform(
        self, raw_documents: Iterable[str], unused_y: Any = None
    ) -> Iterator[np.ndarray]:
        self.fit(raw_documents)
        return self.transform(raw_documents)

    def transform(self, raw_documents: Iterable[str]) -> Iterator[np.ndarray]:
        """Yields one int64 array of `max_document_length` ids per document."""
        for words in self._tokenizer(raw_documents):
            ids = np.zeros(self.max_document_length, np.int64)
            for i, word in enumerate(words):
                if i >= self.max_document_length:
                    break
                ids[i] = self.vocabulary_.get(word)
            yield ids

    def reverse(self, documents: Iterable[Iterable[int]]) -> Iterator[str]:
        """Yields the words of each array of ids, joined by spaces."""
        for ids in documents:
            yield " ".join(str(self.vocabulary_.reverse(each)) for each in ids)

    def save(self, filename: str) -> None:
        with tf.io.gfile.GFile(filename, "wb") as file:
            file.write(pickle.dumps(self))

    @classmethod
    def restore(cls, filename: str) -> Any:
        """Loads a saved processor. The file is a pickle, so it must be trusted."""
        with tf.io.gfile.GFile(filename, "rb") as file:
            return pickle.loads(file.read())


class ByteProcessor:
    """Converts documents to arrays of bytes, cut or padded with 0 to one length."""

    def __init__(self, max_document_length: int):
        self.max_document_length = max_document_length

    def fit(self, x: Any) -> None:
        """Does nothing: there is nothing to learn."""

    def fit_transform(self, x: Iterable[str | bytes]) -> Iterator[np.ndarray]:
        return self.transform(x)

    def transform(self, x: Iterable[str | bytes]) -> Iterator[np.ndarray]:
        """Yields one uint8 array of `max_document_length` bytes per document."""
        for document in x:
            raw = document.encode() if isinstance(document, str) else bytes(document)
            found = np.zeros(self.max_document_length, np.uint8)
            part = np.frombuffer(raw, np.uint8)[: self.max_document_length]
            found[: len(part)] = part
            yield found

    def reverse(self, x: Iterable[np.ndarray]) -> Iterator[str]:
        """Yields the text of each array of bytes; "" for invalid UTF-8, such as a cut character."""
        for data in x:
            raw = np.trim_zeros(np.asarray(data).astype(np.uint8), "b").tobytes()
            try:
                yield raw.decode()
            except UnicodeDecodeError:
                yield ""


__all__ = ["ByteProcessor", "CategoricalVocabulary", "VocabularyProcessor", "tokenizer"]
