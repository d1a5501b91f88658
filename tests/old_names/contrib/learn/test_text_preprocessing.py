import numpy as np
import pytest

from tpu_estimator_compat.old_names.contrib.learn.text_preprocessing import (
    ByteProcessor,
    CategoricalVocabulary,
    VocabularyProcessor,
)

DOCUMENTS = ["b a", "b c", "b c d"]


def test_words_get_ids_in_their_order():
    processor = VocabularyProcessor(2)
    found = np.array(list(processor.fit_transform(DOCUMENTS)))
    assert found.dtype == np.int64
    assert found.tolist() == [[1, 2], [1, 3], [1, 3]]
    assert next(iter(processor.transform(["new b"]))).tolist() == [0, 1]
    assert list(processor.reverse([[1, 0, 4]])) == ["b <UNK> d"]
    assert processor.vocabulary_._mapping == {"<UNK>": 0, "b": 1, "a": 2, "c": 3, "d": 4}


def test_rare_words_are_unknown_and_others_go_by_frequency_then_alphabet():
    processor = VocabularyProcessor(3, min_frequency=1).fit(["c c b b a a a d"])
    assert processor.vocabulary_._mapping == {"<UNK>": 0, "a": 1, "b": 2, "c": 3}
    assert len(processor.vocabulary_) == 4


def test_frequent_words_can_be_left_out():
    vocabulary = CategoricalVocabulary()
    for word, count in {"the": 9, "cat": 3, "dog": 2}.items():
        vocabulary.add(word, count)
    vocabulary.trim(2, max_frequency=9)
    assert vocabulary._mapping == {"<UNK>": 0, "cat": 1}


def test_a_vocabulary_without_reverse_says_so():
    with pytest.raises(ValueError, match="support_reverse"):
        CategoricalVocabulary(support_reverse=False).reverse(0)


def test_is_saved_and_restored(tmp_path):
    processor = VocabularyProcessor(2).fit(DOCUMENTS)
    processor.save(str(tmp_path / "vocabulary"))
    restored = VocabularyProcessor.restore(str(tmp_path / "vocabulary"))
    assert next(iter(restored.transform(["d x"]))).tolist() == [4, 0]


def test_bytes():
    processor = ByteProcessor(4)
    found = list(processor.fit_transform(["ab", "aéé"]))
    assert found[0].tolist() == [97, 98, 0, 0]
    assert list(processor.reverse(found)) == ["ab", ""]  # half of the last letter is cut off
