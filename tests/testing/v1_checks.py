"""The checks on graphs of TensorFlow 1: a script, as v2 behaviour is of the whole process."""

import sys

import tensorflow.compat.v1 as tf


def check_sound_models():
    from testing.sound_models import SOUND
    from tpu_estimator_compat import testing

    testing.check_learns(*SOUND["batch_norm"], steps=20)
    testing.check_replicas_agree(*SOUND["dense"])
    testing.check_modes_agree(*SOUND["batch_norm"])
    testing.check_batch_independent(*SOUND["batch_norm"])
    testing.check_exports(*SOUND["adam"])
    testing.check_deterministic(*SOUND["dropout"])
    testing.check_resumes(*SOUND["accumulation"])


def fixed(features, training):
    return tf.layers.dense(tf.reshape(features, [8, 4]), 3)


def centred(features, training):
    return tf.layers.dense(features - tf.reduce_mean(features, axis=0), 3)


def check_models_with_bugs():
    from testing.models import X, Y, classifier, failure
    from testing.sound_models import normalized
    from tpu_estimator_compat import testing

    for check, logits_of, said in (
        (testing.check_learns, normalized, "an update in UPDATE_OPS that nobody runs"),
        (testing.check_exports, fixed, "'logits' is of 8 examples, always."),
        (testing.check_batch_independent, centred, "features - tf.reduce_mean(features, axis=0)"),
    ):
        found = failure(check, classifier(logits_of), X, Y)
        assert said in found, found


if __name__ == "__main__":
    tf.disable_v2_behavior()
    sys.path.insert(0, sys.argv[1])
    import tpu_estimator_compat.v1 as tf

    check_sound_models()
    check_models_with_bugs()
    print("all as expected")
