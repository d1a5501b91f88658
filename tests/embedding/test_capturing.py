"""Tables that model_fn does not use."""

import pytest

from tpu_estimator_compat import embedding

from .small_model import SGD, column, estimator_of, of, sparse


def test_columns_that_model_fn_does_not_use(tmp_path, strategy):
    given = embedding.EmbeddingConfigSpec([column()], SGD)
    estimator = estimator_of(tmp_path, given, strategy=strategy(1))
    with pytest.raises(RuntimeError, match="did not use the feature column of the table tbl_a"):
        estimator.train(of(lambda: {"a": sparse([1])}), steps=1)
