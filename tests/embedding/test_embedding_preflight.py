import tf_keras
from support import columns_probe

import tpu_estimator_compat as tpu
from tpu_estimator_compat import embedding


def test_ids_stay_on_the_host_and_activations_are_the_input(tmp_path):
    columns = columns_probe.tpu_columns()
    estimator = tpu.TPUEstimator(
        columns_probe.model_with(
            columns, tpu.TPUEstimatorSpec, tf_keras.layers.DenseFeatures, exchange=True
        ),
        str(tmp_path),
        tpu.RunConfig(),
        {"optimizer": "adagrad"},
        train_batch_size=columns_probe.BATCH,
        embedding_config_spec=embedding.EmbeddingConfigSpec(
            columns, embedding.AdagradParameters(0.1)
        ),
    )
    result = estimator.preflight(columns_probe.input_fn, topology="v5e:2x2", depth="lower")
    [report] = result.reports
    assert not report.findings, str(result)
    # age, a label and four activations of three, for two examples of a replica
    assert report.input_bytes == 4 * 2 * (1 + 1 + 4 * 3)
    assert "Variables of the host take" in str(result)
    assert "input_layer/user_embedding/embedding_weights (9 rows)" in str(result)
    assert report.parameters == 13
