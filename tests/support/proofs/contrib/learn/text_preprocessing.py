"""Proofs of `tf.contrib.learn.preprocessing`."""

import numpy as np

from support.proofs import proves


@proves("tf.contrib.learn.preprocessing")
def makes_ids_of_words(module):
    processor = module.VocabularyProcessor(3)
    documents = ["the cat", "the dog sat down"]
    assert np.array_equal(list(processor.fit_transform(documents)), [[1, 2, 0], [1, 3, 4]])
    assert list(module.tokenizer(["It's TPUEstimator"])) == [["It's", "TPU", "Estimator"]]
