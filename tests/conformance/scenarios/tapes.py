import tensorflow.compat.v1 as tf
from scenarios import models


def _trained_by(model_dir, train_op_of, steps=3):
    def model_fn(features, labels, mode):
        loss, train_op = train_op_of(features, labels)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    estimator = models.estimator(model_dir, model_fn)
    estimator.train(models.batches(), steps=steps)
    return estimator


def a_tape(model_dir, record):
    def train_op(features, labels):
        with tf.GradientTape() as tape:
            loss = models.loss_of(features, labels)
        gradients = tape.gradient(loss, tf.trainable_variables())
        optimizer = tf.train.GradientDescentOptimizer(0.5)
        pairs = zip(gradients, tf.trainable_variables(), strict=True)
        return loss, optimizer.apply_gradients(pairs, tf.train.get_global_step())

    _trained_by(model_dir, train_op)


def a_persistent_tape(model_dir, record):
    def train_op(features, labels):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(features["x"])
            loss = models.loss_of(features, labels)
        of_input = tape.gradient(loss, features["x"])
        of_weight = tape.gradient(loss, tf.trainable_variables())
        tf.summary.scalar("of_input", tf.reduce_sum(of_input))
        optimizer = tf.train.GradientDescentOptimizer(0.5)
        pairs = zip(of_weight, tf.trainable_variables(), strict=True)
        return loss, optimizer.apply_gradients(pairs, tf.train.get_global_step())

    _trained_by(model_dir, train_op)


def nested_tapes(model_dir, record):
    def train_op(features, labels):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                loss = models.loss_of(features, labels)
            slope = inner.gradient(loss, tf.trainable_variables())[0]
        curvature = outer.gradient(slope, tf.trainable_variables())[0]
        w = tf.trainable_variables()[0]
        with tf.control_dependencies([w.assign_sub(slope / curvature)]):
            return loss, tf.assign_add(tf.train.get_global_step(), 1)

    _trained_by(model_dir, train_op)


def a_keras_optimizer(model_dir, record):
    def train_op(features, labels):
        loss = models.loss_of(features, labels)
        optimizer = tf.keras.optimizers.legacy.SGD(0.5, momentum=0.9)
        optimizer.iterations = tf.train.get_or_create_global_step()
        return loss, optimizer.get_updates(loss, tf.trainable_variables())[0]

    _trained_by(model_dir, train_op)


def a_keras_optimizer_with_a_tape(model_dir, record):
    def train_op(features, labels):
        with tf.GradientTape() as tape:
            loss = models.loss_of(features, labels)
        variables = tf.trainable_variables()
        optimizer = tf.keras.optimizers.legacy.Adagrad(0.1)
        optimizer.iterations = tf.train.get_global_step()
        update = optimizer.apply_gradients(
            zip(tape.gradient(loss, variables), variables, strict=True)
        )
        return loss, update

    _trained_by(model_dir, train_op)


def an_object_checkpoint(model_dir, record):
    """tf.train.Checkpoint in Scaffold(saver=): keys are paths of objects."""

    def model_fn(features, labels, mode):
        w = models.weight()
        loss = tf.reduce_mean(tf.square(w * features["x"] - labels))
        checkpoint = tf.train.Checkpoint(weight=w, step=tf.train.get_global_step())
        scaffold = tf.train.Scaffold(saver=checkpoint)
        return tf.estimator.EstimatorSpec(
            mode, loss=loss, train_op=models.descent(loss), scaffold=scaffold
        )

    estimator = models.trained(model_dir, 2, model_fn)
    estimator.train(models.batches(), steps=1)
    record(sorted(estimator.get_variable_names()))
    return estimator.evaluate(models.batches(), steps=1)


def keras_layers_in_a_model_fn(model_dir, record):
    def train_op(features, labels):
        x = tf.reshape(features["x"], [-1, 1])
        layer = tf.keras.layers.Dense(
            2, kernel_initializer="ones", kernel_regularizer=tf.keras.regularizers.l2(0.1)
        )
        out = tf.keras.layers.Dense(1, name="named", kernel_initializer="ones")(layer(x))
        loss = tf.reduce_mean(tf.square(out[:, 0] - labels)) + tf.add_n(layer.losses)
        return loss, models.descent(loss)

    _trained_by(model_dir, train_op)


def a_keras_model_in_a_model_fn(model_dir, record):
    def train_op(features, labels):
        model = tf.keras.Sequential(
            [tf.keras.layers.Dense(1, kernel_initializer="ones", input_shape=(1,))]
        )
        out = model(tf.reshape(features["x"], [-1, 1]), training=True)
        loss = tf.reduce_mean(tf.square(out[:, 0] - labels))
        return loss, models.descent(loss)

    _trained_by(model_dir, train_op)


def a_tape_in_a_prediction(model_dir, record):
    def model_fn(features, labels, mode):
        with tf.GradientTape() as tape:
            tape.watch(features["x"])
            squares = tf.square(features["x"])
        return tf.estimator.EstimatorSpec(mode, predictions=tape.gradient(squares, features["x"]))

    return list(models.estimator(model_dir, model_fn).predict(models.batches(1)))


def parts_that_a_tape_does_not_record(model_dir, record):
    def train_op(features, labels):
        with tf.GradientTape() as tape:
            with tape.stop_recording():
                scale = models.loss_of(features, labels)
            loss = scale * tf.reduce_mean((tf.trainable_variables()[0] - labels) ** 2)
        gradients = tape.gradient(loss, tf.trainable_variables())
        optimizer = tf.train.GradientDescentOptimizer(0.01)
        pairs = zip(gradients, tf.trainable_variables(), strict=True)
        return loss, optimizer.apply_gradients(pairs, tf.train.get_global_step())

    _trained_by(model_dir, train_op)


def a_jacobian_and_a_tape_through_a_function(model_dir, record):
    def train_op(features, labels):
        weight = models.weight()
        loss_of = tf.compat.v2.function(lambda x: tf.reduce_mean((weight * x - labels) ** 2))
        with tf.GradientTape(persistent=True) as tape:
            loss, outputs = loss_of(features["x"]), weight * features["x"]
        jacobian = tape.jacobian(outputs, weight)
        gradient = tape.gradient(loss, weight) + 0.01 * tf.reduce_sum(jacobian)
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        return loss, optimizer.apply_gradients([(gradient, weight)], tf.train.get_global_step())

    _trained_by(model_dir, train_op)


def optimizers_of_keras(model_dir, record):
    """Gradients of a tape or of a function; iterations of the optimizer, or the global step."""
    kinds, schedules = tf.keras.optimizers.legacy, tf.keras.optimizers.schedules

    def applied(make, counts=True):
        def train_op(features, labels):
            with tf.GradientTape() as tape:
                loss = models.loss_of(features, labels)
            variables, optimizer = tf.trainable_variables(), make()
            if counts:
                optimizer.iterations = tf.train.get_global_step()
            pairs = zip(tape.gradient(loss, variables), variables, strict=True)
            update = optimizer.apply_gradients(pairs)
            with tf.control_dependencies([update, loss]):
                step = update if counts else tf.assign_add(tf.train.get_global_step(), 1)
                return loss, step

        return train_op

    def minimized(features, labels):
        weight = models.weight()
        optimizer = kinds.SGD(0.1, momentum=0.9, nesterov=True)
        optimizer.iterations = tf.train.get_global_step()
        loss = lambda: tf.reduce_mean((weight * features["x"] - labels) ** 2)  # noqa: E731
        train_op = optimizer.minimize(loss, [weight])
        with tf.control_dependencies([train_op]):
            return loss(), train_op

    def scheduled():
        return kinds.SGD(schedules.ExponentialDecay(0.1, 1, 0.5), clipnorm=0.5)

    ways = {
        "adam": applied(lambda: kinds.Adam(0.1)),
        "nadam": applied(lambda: kinds.Nadam(0.1)),
        "rmsprop": applied(lambda: kinds.RMSprop(0.1, centered=True)),
        "adamax": applied(lambda: kinds.Adamax(0.1), counts=False),
        "scheduled": applied(scheduled),
        "minimized": minimized,
    }
    for name, way in ways.items():
        estimator = _trained_by(f"{model_dir}/{name}", way)
        record(name, {n: estimator.get_variable_value(n) for n in estimator.get_variable_names()})


def a_normalized_keras_model_with_a_tape(model_dir, record):
    def train_op(features, labels):
        layers, x = tf.keras.layers, tf.reshape(features["x"], [-1, 1])
        dense = [layers.Dense(n, kernel_initializer="ones") for n in (4, 1)]
        model = tf.keras.Sequential([dense[0], layers.BatchNormalization(), dense[1]])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True)[:, 0] - labels) ** 2)
        variables, optimizer = model.trainable_variables, tf.keras.optimizers.legacy.SGD(0.01)
        optimizer.iterations = tf.train.get_global_step()
        pairs = zip(tape.gradient(loss, variables), variables, strict=True)
        with tf.control_dependencies([optimizer.apply_gradients(pairs)]):
            return loss, tf.group(*model.get_updates_for(None), *model.get_updates_for(x))

    _trained_by(model_dir, train_op)
