import tf_keras

from support.proofs import below, proves

TPU = "tf.contrib.tpu"


@proves(f"{TPU}.keras_to_tpu_model")
def makes_a_model(keras_to_tpu_model):
    given = tf_keras.Sequential([tf_keras.Input([2]), tf_keras.layers.Dense(1)])
    made = keras_to_tpu_model(given)
    assert made.sync_to_cpu() is given
    assert [w is v for w, v in zip(made.weights, given.weights, strict=True)] == [True, True]


@proves(*below(TPU, "TPUDistributionStrategy"))
def is_made_of_a_resolver(strategy):
    assert strategy(None, using_single_core=True)
