"""`tf.contrib.learn.preprocessing`: documents as arrays of word ids."""

from __future__ import annotations

import collections
import pickle
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

# A run of capitals, a capitalized word inside of a longer one, or anything of letters, digits,
# apostrophes and hyphens.
TOKENIZER_RE = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)

Tokenizer = Callable[[Iterable[str]], Iterable[Iterable[str]]]


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each document."""
    for document in iterator:
        yield TOKENIZER_RE.findall(document)


class CategoricalVocabulary:
    """Ids of categories, in the order in which they came; 0 is for unknown ones."""

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
        """Makes categories that are new from now on unknown ones, or no longer."""
        self._freeze = freeze

    def get(self, category: Hashable) -> int:
        """The id of a category; a new one gets the next id."""
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
        """Counts a category that is not unknown."""
        if self.get(category) > 0:
            self._freq[category] += count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Drops categories that are too rare or too frequent, and gives ids by frequency.

        Args:
          min_frequency: words that came no more often are dropped.
          max_frequency: words that came as often or more often are dropped; below 1 for no limit.
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
    """Documents as arrays of word ids, cut or filled with 0 to one length.

    Words that come no more often than `min_frequency` are unknown.
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
        """Learns the words of documents; later ones are unknown. Returns itself."""
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
        """Yields an int64 array of `max_document_length` ids for each document."""
        for words in self._tokenizer(raw_documents):
            ids = np.zeros(self.max_document_length, np.int64)
            for i, word in enumerate(words):
                if i >= self.max_document_length:
                    break
                ids[i] = self.vocabulary_.get(word)
            yield ids

    def reverse(self, documents: Iterable[Iterable[int]]) -> Iterator[str]:
        """Yields the words of ids, with spaces between them."""
        for ids in documents:
            yield " ".join(str(self.vocabulary_.reverse(each)) for each in ids)

    def save(self, filename: str) -> None:
        with tf.io.gfile.GFile(filename, "wb") as file:
            file.write(pickle.dumps(self))

    @classmethod
    def restore(cls, filename: str) -> Any:
        """The processor that was saved in a file, which must be trusted: it is a pickle."""
        with tf.io.gfile.GFile(filename, "rb") as file:
            return pickle.loads(file.read())


class ByteProcessor:
    """Documents as arrays of bytes, cut or filled with 0 to one length."""

    def __init__(self, max_document_length: int):
        self.max_document_length = max_document_length

    def fit(self, x: Any) -> None:
        """Does nothing; there is nothing to learn."""

    def fit_transform(self, x: Iterable[str | bytes]) -> Iterator[np.ndarray]:
        return self.transform(x)

    def transform(self, x: Iterable[str | bytes]) -> Iterator[np.ndarray]:
        """Yields a uint8 array of `max_document_length` bytes for each document."""
        for document in x:
            raw = document.encode() if isinstance(document, str) else bytes(document)
            found = np.zeros(self.max_document_length, np.uint8)
            part = np.frombuffer(raw, np.uint8)[: self.max_document_length]
            found[: len(part)] = part
            yield found

    def reverse(self, x: Iterable[np.ndarray]) -> Iterator[str]:
        """Yields the text of bytes; an empty one where they are no UTF-8, such as half a letter."""
        for data in x:
            raw = np.trim_zeros(np.asarray(data).astype(np.uint8), "b").tobytes()
            try:
                yield raw.decode()
            except UnicodeDecodeError:
                yield ""


__all__ = ["ByteProcessor", "CategoricalVocabulary", "VocabularyProcessor", "tokenizer"]
