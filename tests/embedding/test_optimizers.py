import numpy as np
import pytest
import tensorflow as tf2
import tensorflow.compat.v1 as tf
from support import numpy_embedding as reference

from tpu_estimator_compat import embedding
from tpu_estimator_compat.embedding import optimizers

ROWS, DIMENSION = 7, 3
CASES = {
    "sgd": ("StochasticGradientDescent", {}),
    "sgd, limits of gradients": (
        "StochasticGradientDescent",
        {"clip_gradient_min": -0.5, "clip_gradient_max": 0.4},
    ),
    "sgd, limits of weights": (
        "StochasticGradientDescent",
        {"clip_weight_min": -0.6, "clip_weight_max": 0.7},
    ),
    "sgd, decay": ("StochasticGradientDescent", {"weight_decay_factor": 0.1}),
    "adagrad": ("Adagrad", {}),
    "adagrad, all": (
        "Adagrad",
        {
            "initial_accumulator": 0.3,
            "clip_weight_min": -0.6,
            "clip_weight_max": 0.7,
            "weight_decay_factor": 0.1,
            "multiply_weight_decay_factor_by_learning_rate": True,
            "clip_gradient_min": -0.5,
            "clip_gradient_max": 0.4,
        },
    ),
    "proximal": ("ProximalAdagrad", {}),
    "proximal, l1 and l2": (
        "ProximalAdagrad",
        {"l1_regularization_strength": 0.2, "l2_regularization_strength": 0.3},
    ),
    "adam": ("Adam", {}),
    "adam, sum outside": ("Adam", {"sum_inside_sqrt": False, "epsilon": 0.1, "beta1": 0.8}),
    "adam, all rows": ("Adam", {"lazy_adam": False, "beta2": 0.9, "weight_decay_factor": 0.1}),
    "ftrl": ("Ftrl", {}),
    "ftrl, all": (
        "Ftrl",
        {
            "learning_rate_power": -0.7,
            "initial_accumulator_value": 0.2,
            "l1_regularization_strength": 0.1,
            "l2_regularization_strength": 0.3,
            "beta": 0.5,
        },
    ),
    "ftrl, linear by rate": (
        "Ftrl",
        {
            "multiply_linear_by_learning_rate": True,
            "l1_regularization_strength": 0.1,
            "l2_regularization_strength": 0.3,
            "beta": 0.5,
        },
    ),
    "ftrl, zero accumulator": (
        "Ftrl",
        {"initial_accumulator_value": 0.0, "allow_zero_accumulator": True},
    ),
    "momentum": ("Momentum", {"momentum": 0.9}),
    "nesterov": ("Momentum", {"momentum": 0.9, "use_nesterov": True}),
    "rmsprop": ("RMSProp", {"rho": 0.8, "momentum": 0.7, "epsilon": 0.01}),
}


def three_steps(parameters, table, gradients, rate):
    """Table and slots after steps with `gradients`: a list of (ids, gradients)."""
    kind = optimizers.OPTIMIZERS[type(parameters)]
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("table", initializer=table, use_resource=True)
        slots = [
            tf.get_variable(
                f"slot_{i}",
                initializer=tf.fill(table.shape, np.float32(slot.initial(parameters))),
                use_resource=True,
            )
            for i, slot in enumerate(kind.slots)
        ]
        session.run(tf.global_variables_initializer())
        ids, values = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None, None])
        update = optimizers.apply(
            parameters, optimizers.Rows(variable, slots, ids, values, tf.constant(rate))
        )
        for step_ids, step_values in gradients:
            session.run(update, {ids: step_ids, values: step_values})
        return session.run([variable, *slots])


@pytest.mark.parametrize(("name", "options"), CASES.values(), ids=CASES)
def test_rows_change_as_the_formulas_say(name, options):
    rng = np.random.RandomState(3)
    table = rng.normal(size=(ROWS, DIMENSION)).astype(np.float32)
    gradients = [
        (rng.permutation(ROWS)[:4], rng.normal(size=(4, DIMENSION)).astype(np.float32))
        for _ in range(3)
    ]
    parameters = getattr(embedding, f"{name}Parameters")(0.3, **options)
    found, *found_slots = three_steps(parameters, table, gradients, 0.3)

    expected = table.astype(np.float64)
    slots = reference.first_slots(name, options, table.shape)
    for ids, values in gradients:
        reference.update(name, options, expected, slots, dict(zip(ids, values)), 0.3)  # noqa: B905
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)
    assert len(found_slots) == len(slots)
    for slot, wanted in zip(found_slots, slots, strict=True):
        np.testing.assert_allclose(slot, wanted, rtol=2e-5, atol=2e-6)


def test_a_step_without_ids_changes_nothing():
    table = np.ones([ROWS, DIMENSION], np.float32)
    nothing = (np.zeros([0], np.int64), np.zeros([0, DIMENSION], np.float32))
    for name, options in CASES.values():
        if not options.get("lazy_adam", True):
            continue
        parameters = getattr(embedding, f"{name}Parameters")(0.3, **options)
        found, *_ = three_steps(parameters, table, [nothing], 0.3)
        np.testing.assert_array_equal(found, table)


def test_zero_learning_rate_with_a_linear_slot_gives_no_nan():
    parameters = embedding.FtrlParameters(0.0, multiply_linear_by_learning_rate=True)
    table = np.ones([ROWS, DIMENSION], np.float32)
    step = (np.array([1]), np.ones([1, DIMENSION], np.float32))
    found, *_ = three_steps(parameters, table, [step], 0.0)
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: embedding.AdagradParameters(0.1, 0.0), "initial_accumulator must be positive"),
        (lambda: embedding.AdamParameters(0.1, beta1=1.0), "beta1 must be between"),
        (lambda: embedding.AdamParameters(0.1, epsilon=0.0), "epsilon must be positive"),
        (
            lambda: embedding.AdamParameters(0.1, lazy_adam=False, use_gradient_accumulation=False),
            "gradient accumulation must be used",
        ),
        (lambda: embedding.FtrlParameters(0.1, 0.5), "learning_rate_power"),
        (
            lambda: embedding.ProximalAdagradParameters(0.1, l1_regularization_strength=-1.0),
            "l1_regularization_strength must be greater",
        ),
        (
            lambda: embedding.StochasticGradientDescentParameters(
                0.1, use_gradient_accumulation=False, clip_gradient_max=1.0
            ),
            "gradient accumulation must be enabled",
        ),
    ],
)
def test_senseless_hyperparameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_slots_have_the_names_of_tensorflow_1():
    """Those of its own optimizers, asked here: checkpoints of either are read by the other."""
    theirs = {
        "Adagrad": tf.train.AdagradOptimizer(0.1),
        "ProximalAdagrad": tf.train.ProximalAdagradOptimizer(0.1),
        "Adam": tf.train.AdamOptimizer(0.1),
        "Ftrl": tf.train.FtrlOptimizer(0.1),
        "Momentum": tf.train.MomentumOptimizer(0.1, 0.9),
        "RMSProp": tf.train.RMSPropOptimizer(0.1),
    }
    for name, optimizer in theirs.items():
        with tf.Graph().as_default():
            variable = tf.get_variable("t", [2, 2], use_resource=True)
            optimizer.minimize(tf.reduce_sum(variable))
            found = {v.op.name for v in tf.global_variables() if v.shape == [2, 2]} - {"t"}
        kind = optimizers.OPTIMIZERS[getattr(embedding, f"{name}Parameters")]
        assert found == {f"t/{slot.suffix}" for slot in kind.slots}


def test_tables_are_never_read_whole():
    """A step costs by its ids: no operation of an update takes or gives a whole table."""
    for name, options in CASES.values():
        if not options.get("lazy_adam", True):
            continue
        parameters = getattr(embedding, f"{name}Parameters")(0.3, **options)
        kind = optimizers.OPTIMIZERS[type(parameters)]
        with tf2.Graph().as_default() as graph:
            names = ["table", *(slot.suffix for slot in kind.slots)]
            variable, *slots = [
                tf.get_variable(n, [ROWS, DIMENSION], use_resource=True) for n in names
            ]
            before = set(graph.get_operations())
            ids, values = tf.placeholder(tf.int64, [2]), tf.placeholder(tf.float32, [2, DIMENSION])
            optimizers.apply(
                parameters, optimizers.Rows(variable, slots, ids, values, tf.constant(0.1))
            )
            made = set(graph.get_operations()) - before
        assert not {op.type for op in made} & {"ReadVariableOp", "AssignVariableOp"}
