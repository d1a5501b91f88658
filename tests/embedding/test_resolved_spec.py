import pytest
import tensorflow.compat.v1 as tf

import tpu_estimator_compat as tpu
from tpu_estimator_compat import embedding

from .small_model import BATCH, FEATURE, SGD, TABLE, column, dict_spec, estimator_of, model_fn


def test_what_an_estimator_refuses(tmp_path):
    with pytest.raises(ValueError, match="Only PER_HOST_V1 and PER_HOST_V2 is supported"):
        estimator_of(
            tmp_path, dict_spec(), per_host_input_for_training=tpu.InputPipelineConfig.BROADCAST
        )
    plain = tf.feature_column.numeric_column("x")
    with pytest.raises(TypeError, match="Unsupported feature column"):
        estimator_of(tmp_path, embedding.EmbeddingConfigSpec([plain], SGD))
    with pytest.raises(ValueError, match="a is used with multiple embeddings"):
        estimator_of(tmp_path, embedding.EmbeddingConfigSpec([column(), column()], SGD))
    unused = {**TABLE, "letters": embedding.TableConfig(3, 2)}
    with pytest.raises(ValueError, match=r"a table that is not used .* letters"):
        estimator_of(
            tmp_path,
            embedding.EmbeddingConfigSpec(
                table_to_config_dict=unused, feature_to_config_dict=FEATURE
            ),
        )
    for use_tpu, eval_on_tpu in [(False, True), (True, False)]:
        with pytest.raises(ValueError, match="Mod sharding of embedding tables not supported"):
            tpu.TPUEstimator(
                model_fn,
                config=tpu.RunConfig(),
                use_tpu=use_tpu,
                eval_on_tpu=eval_on_tpu,
                train_batch_size=BATCH,
                embedding_config_spec=dict_spec(partition_strategy="mod"),
            )
