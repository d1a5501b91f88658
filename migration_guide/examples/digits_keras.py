"""A Keras model, written of a TensorFlow graph by to-keras."""

import keras
from keras import layers, ops


@keras.saving.register_keras_serializable("model")
class Model(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.conv2d_1 = layers.Conv2D(32, 3, padding="same", activation="relu")
        self.max_pooling2d_1 = layers.MaxPooling2D(2)
        self.conv2d_2 = layers.Conv2D(64, 3, padding="same", activation="relu")
        self.max_pooling2d_2 = layers.MaxPooling2D(2)
        self.dense = layers.Dense(128, activation="relu")
        self.dropout = layers.Dropout(0.25)
        self.logits = layers.Dense(10)
        self.accuracy = keras.metrics.Accuracy(name="accuracy")
        self({"image": keras.Input((8, 8, 1))})  # makes the weights

    def call(self, features, training=False):
        net = self.conv2d_1(features["image"])
        net = self.max_pooling2d_1(net)
        net = self.conv2d_2(net)
        net = self.dense(ops.reshape(self.max_pooling2d_2(net), (-1, 256)))
        net = self.dropout(net, training=training)
        net = self.logits(net)
        return {"class": ops.argmax(net, axis=-1), "probabilities": ops.softmax(net), "logits": net}

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = ops.sparse_categorical_crossentropy(y, y_pred["logits"], from_logits=True)
        return ops.mean(loss)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        self.accuracy.update_state(y_true=y, y_pred=y_pred["class"])
        return self.get_metrics_result()


def make_model(compiled=False):
    model = Model()
    if compiled:
        model.compile(
            keras.optimizers.Adam(
                learning_rate=keras.optimizers.schedules.ExponentialDecay(
                    initial_learning_rate=0.003, decay_rate=0.05, decay_steps=1500
                ),
                epsilon=1e-08,
            )
        )
        model.optimizer.build(model.trainable_variables)
    return model
