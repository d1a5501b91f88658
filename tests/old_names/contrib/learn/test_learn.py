import gzip
import struct

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

from tpu_estimator_compat.old_names.contrib.learn import datasets
from tpu_estimator_compat.old_names.contrib.learn.text_preprocessing import (
    ByteProcessor,
    CategoricalVocabulary,
    VocabularyProcessor,
)

FILES = {"train": 20, "t10k": 4}


def write_mnist(folder, magic=2051):
    """Images of 28 x 28 whose pixels are all their number, and labels: the number modulo ten."""
    for name, count in FILES.items():
        with gzip.open(folder / f"{name}-images-idx3-ubyte.gz", "wb") as file:
            file.write(struct.pack(">4i", magic, count, 28, 28))
            file.write(b"".join(bytes([i]) * 784 for i in range(count)))
        with gzip.open(folder / f"{name}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(struct.pack(">2i", 2049, count))
            file.write(bytes(i % 10 for i in range(count)))


@pytest.fixture
def folder(tmp_path):
    write_mnist(tmp_path)
    return str(tmp_path)


def test_images_and_labels(folder):
    mnist = datasets.read_data_sets(folder, validation_size=5)
    assert [part.num_examples for part in mnist] == [15, 5, 4]
    assert mnist.train.images.shape == (15, 784)
    assert mnist.train.images.dtype == np.float32
    np.testing.assert_allclose(mnist.train.images[:, 0] * 255, range(5, 20), rtol=1e-6)
    assert mnist.validation.labels.tolist() == [0, 1, 2, 3, 4]
    assert mnist.test.labels.dtype == np.uint8


def test_options(folder):
    mnist = datasets.read_data_sets(
        folder, one_hot=True, dtype=tf.uint8, reshape=False, validation_size=0
    )
    assert mnist.train.images.shape == (20, 28, 28, 1)
    assert mnist.train.images.max() == 19
    assert mnist.train.labels[13].tolist() == [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]


def test_batches_go_on_in_the_next_epoch(folder):
    test = datasets.read_data_sets(folder, validation_size=0, dtype=tf.uint8).test
    images, labels = test.next_batch(3, shuffle=False)
    assert images[:, 0].tolist() == labels.tolist() == [0, 1, 2]
    assert test.epochs_completed == 0
    assert test.next_batch(3, shuffle=False)[1].tolist() == [3, 0, 1]
    assert test.epochs_completed == 1


def test_each_epoch_has_an_order_that_the_seed_gives(folder):
    def order():
        train = datasets.read_data_sets(folder, validation_size=0, seed=7).train
        return [train.next_batch(20)[1].tolist() for _ in range(2)]

    first, second = order()
    assert first != second
    assert sorted(first) == sorted(second)
    assert order() == [first, second]


def test_fake_data_needs_no_file(tmp_path):
    mnist = datasets.read_data_sets(str(tmp_path / "none"), fake_data=True, one_hot=True)
    images, labels = mnist.train.next_batch(2, fake_data=True)
    assert np.shape(images) == (2, 784)
    assert labels == [[1] + [0] * 9] * 2


def test_what_is_missing_is_downloaded(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    write_mnist(source)
    mnist = datasets.read_data_sets(
        str(tmp_path / "new"), validation_size=0, source_url=f"{source.as_uri()}/"
    )
    assert mnist.train.num_examples == 20
    assert len(list((tmp_path / "new").iterdir())) == 4


def test_wrong_files_and_sizes(folder, tmp_path):
    with pytest.raises(ValueError, match=r"should be between 0 and 20\. Received: 21"):
        datasets.read_data_sets(folder, validation_size=21)
    with pytest.raises(TypeError, match="expected uint8 or float32"):
        datasets.read_data_sets(folder, validation_size=0, dtype=tf.int32)
    write_mnist(tmp_path, magic=1)
    with pytest.raises(ValueError, match=r"Invalid magic number 1 in MNIST file .*train-images"):
        datasets.read_data_sets(str(tmp_path))
    with pytest.raises(ValueError, match='"mnist" is provided'):
        datasets.load_dataset("iris")


def test_tables(tmp_path):
    path = tmp_path / "iris.csv"
    path.write_text("2,3,a,b\n1,2,3,0\n4,5,6,1\n")
    table = datasets.load_csv_with_header(str(path), np.int32, np.float32)
    assert table.data.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert table.target.tolist() == [0, 1]
    path.write_text("7,1,2\n8,3,4\n")
    table = datasets.load_csv_without_header(str(path), np.int64, np.float64, target_column=0)
    assert (table.data.tolist(), table.target.tolist()) == ([[1, 2], [3, 4]], [7, 8])


DOCUMENTS = ["b a", "b c", "b c d"]


def test_words_get_ids_in_their_order():
    processor = VocabularyProcessor(2)
    found = np.array(list(processor.fit_transform(DOCUMENTS)))
    assert found.dtype == np.int64
    assert found.tolist() == [[1, 2], [1, 3], [1, 3]]
    assert next(iter(processor.transform(["new b"]))).tolist() == [0, 1]
    assert list(processor.reverse([[1, 0, 4]])) == ["b <UNK> d"]
    assert processor.vocabulary_._mapping == {"<UNK>": 0, "b": 1, "a": 2, "c": 3, "d": 4}


def test_words_are_sorted_by_frequency_then_alphabet():
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
