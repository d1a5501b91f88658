"""Proofs of names of `tensorflow.python` that TensorFlow has moved or dropped."""

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import control_flow_ops
from tensorflow.python.tpu import tpu_function

from support.proofs import below, evaluate, graph, proves, variables_of

OPS = "tf.python.ops"
FLOW = f"{OPS}.control_flow_ops"
FRAMEWORK = "tf.python.framework.ops"


@proves(f"{OPS}.array_ops.stack")
def stacks(stack):
    assert evaluate(lambda: stack([1, 2])).tolist() == [1, 2]


@proves(f"{OPS}.array_ops.unstack")
def unstacks(unstack):
    assert evaluate(lambda: unstack(tf.constant([1, 2]))) == [1, 2]


@proves(f"{FLOW}.Assert")
def asserts(check):
    def build(condition):
        with tf.control_dependencies([check(tf.constant(condition), ["no"])]):
            return tf.constant(1)

    assert evaluate(lambda: build(True)) == 1
    try:
        evaluate(lambda: build(False))
    except tf.errors.InvalidArgumentError:
        return
    raise AssertionError("Assert let False pass")


@proves(f"{FLOW}.cond")
def branches(cond):
    assert evaluate(lambda: cond(tf.constant(True), lambda: 1, lambda: 2)) == 1


@proves(f"{FLOW}.while_loop")
def loops(while_loop):
    assert evaluate(lambda: while_loop(lambda i: i < 5, lambda i: i + 1, [0])) == 5


@proves(f"{FLOW}.case")
def chooses(case):
    assert evaluate(lambda: case([(tf.constant(True), lambda: 1)], lambda: 2)) == 1


@proves(f"{FLOW}.switch_case")
def switches(switch_case):
    assert evaluate(lambda: switch_case(tf.constant(1), [lambda: 1, lambda: 2])) == 2


@proves(f"{OPS}.random_ops.random_crop")
def crops(random_crop):
    assert evaluate(lambda: random_crop(tf.zeros([4, 4]), [2, 3])).shape == (2, 3)


@proves(f"{OPS}.variable_scope.variable", f"{OPS}.variables.VariableV1")
def makes_variables(variable):
    assert evaluate(lambda: variable(3.0, name="v")) == 3.0
    assert variables_of(lambda: variable(3.0, name="v")) == ["v"]


@proves(f"{OPS}.variables.RefVariable")
def makes_ref_variables(variable):
    assert evaluate(lambda: variable(3.0)) == 3.0


@proves(f"{OPS}.variables.is_variable_initialized")
def tells_of_initialization(is_variable_initialized):
    assert evaluate(lambda: is_variable_initialized(tf.Variable(1.0)))


@proves(
    *below(
        f"{OPS}.variable_scope",
        "enable_resource_variables disable_resource_variables resource_variables_enabled",
    )
)
def toggles_resource_variables(function):
    from tensorflow.python.ops import resource_variables_toggle as toggle

    before = toggle.resource_variables_enabled()
    try:
        toggle.enable_resource_variables()
        function()
        enabled = toggle.resource_variables_enabled()
        assert enabled is (function.__name__ != "disable_resource_variables")
    finally:
        (toggle.enable_resource_variables if before else toggle.disable_resource_variables)()


@proves(f"{FRAMEWORK}.Tensor")
def is_the_class_of_tensors(tensor):
    assert isinstance(tf.constant(1), tensor)


@proves(f"{FRAMEWORK}.IndexedSlices")
def makes_slices(slices):
    made = slices(tf.ones([1, 2]), tf.constant([3]))
    assert isinstance(made, tf.IndexedSlices)


@proves(f"{FRAMEWORK}.IndexedSlicesValue")
def makes_values_of_slices(value):
    assert value([1.0], [3], None).indices == [3]


@proves(f"{FRAMEWORK}.convert_to_tensor_or_indexed_slices")
def converts(convert):
    assert evaluate(lambda: convert([1, 2])).tolist() == [1, 2]


@proves(f"{FRAMEWORK}.convert_to_tensor_v2")
def converts_to_tensors(convert):
    assert evaluate(lambda: convert([1, 2])).tolist() == [1, 2]


@proves(f"{FRAMEWORK}.register_tensor_conversion_function")
def registers(register):
    class Box:
        pass

    register(Box, lambda value, dtype=None, name=None, as_ref=False: tf.constant(7))
    assert evaluate(lambda: tf.convert_to_tensor(Box())) == 7


@proves(
    "tf.python.framework.graph_util.convert_variables_to_constants",
    "tf.python.framework.graph_util_impl.convert_variables_to_constants",
)
def freezes(convert):
    with graph() as new, tf.Session() as session:
        tf.identity(tf.Variable(5.0), "out")
        session.run(tf.global_variables_initializer())
        frozen = convert(session, new.as_graph_def(), ["out"])
    with graph() as new, tf.Session() as session:
        tf.import_graph_def(frozen, name="")
        assert session.run("out:0") == 5.0


@proves(
    "tf.contrib.framework.nest.is_sequence",
    "tf.python.data.util.nest.is_sequence",
    "tf.python.util.nest.is_sequence",
    "tf.python.util.nest.is_sequence_or_composite",
)
def tells_sequences(is_sequence):
    assert is_sequence((1, 2))
    assert not is_sequence(1)


@proves("tf.python.data.ops.dataset_ops.Options")
def sets_options(options):
    made = options()
    made.deterministic = False
    assert tf.data.Dataset.range(1).with_options(made).options().deterministic is False


@proves("tf.python.eager.function.defun")
def makes_functions(defun):
    assert defun(lambda x: x + 1)(tf.constant(1)).numpy() == 2


@proves(
    *below(
        "tf.python",
        "distribute.distribution_strategy_context training.distribution_strategy_context",
    ),
    "tf.python.training.distribute",
)
def knows_the_strategy(context):
    assert context.get_strategy() is tf.distribute.get_strategy()
    assert not context.has_strategy()


@proves("tf.python.saved_model.utils_impl.get_variables_path")
def knows_paths(get_variables_path):
    assert get_variables_path("/export") == "/export/variables/variables"


@proves("tf.python.tpu.tpu.outside_compilation")
def runs_outside(outside_compilation):
    assert evaluate(lambda: outside_compilation(lambda x: x + 1, tf.constant(1))) == 2


TRACKING = "tf.python.training.tracking"


@proves(f"{TRACKING}.base")
def tracks(base):
    assert isinstance(tf.Variable(1.0), base.Trackable)


@proves(f"{TRACKING}.data_structures")
def wraps_lists(data_structures):
    made = data_structures.List()
    made.append(tf.Module())
    assert len(made) == 1


@proves(f"{TRACKING}.python_state")
def keeps_python_state(python_state):
    class Counter(python_state.PythonState):
        count = 1

        def serialize(self):
            return str(self.count)

        def deserialize(self, string_value):
            self.count = int(string_value)

    assert Counter().serialize() == "1"


@proves(f"{TRACKING}.tracking")
def tracks_attributes(tracking):
    node = tracking.AutoTrackable()
    node.value = tf.Variable(1.0)
    assert "value" in node._trackable_children()


@proves(f"{TRACKING}.graph_view")
def views_objects(graph_view):
    root = tf.Module()
    root.value = tf.Variable(1.0)
    names = [reference.name for reference in graph_view.ObjectGraphView(root).list_children(root)]
    assert "value" in names


@proves(f"{TRACKING}.util")
def saves_objects(util):
    checkpoint = util.Checkpoint(value=tf.Variable(1.0))
    assert np.asarray(checkpoint.value) == 1.0


@proves(
    "tf.pywrap_tensorflow.NewCheckpointReader", "tf.python.pywrap_tensorflow.NewCheckpointReader"
)
def reads_checkpoints(reader, tmp_path):
    with graph() as new, tf.Session(graph=new) as session:
        tf.get_variable("v", initializer=[1.0, 2.0])
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    assert reader(path).get_variable_to_shape_map() == {"v": [2]}
    assert reader(path).get_tensor("v").tolist() == [1, 2]


@proves(*below("tf.python.training", "training_ops gen_training_ops"))
def has_the_updates_of_optimizers(module):
    with graph() as new, tf.Session(graph=new) as session:
        variable = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
        update = module.resource_apply_gradient_descent(variable.handle, 0.5, [2.0, 2.0])
        session.run(tf.global_variables_initializer())
        session.run(update)
        assert session.run(variable).tolist() == [0, 1]


COLUMNS = "tf.python.feature_column"


@proves(f"{COLUMNS}.feature_column_v2.FeatureColumn")
def is_the_base_of_columns(column):
    assert isinstance(tf.feature_column.numeric_column("x"), column)


EXPERIMENTAL = "tf.python.data.experimental.ops"


@proves(
    *below(
        EXPERIMENTAL,
        "distribute_options.DistributeOptions optimization_options.OptimizationOptions "
        "threading_options.ThreadingOptions",
    )
)
def is_part_of_options(kind):
    options = tf.data.Options()
    parts = [
        options.experimental_distribute,
        options.experimental_optimization,
        options.threading,
    ]
    assert any(type(part) is kind for part in parts)


@proves("tf.python.framework.tensor_util.shape_tensor")
def makes_shapes(shape_tensor):
    assert evaluate(lambda: shape_tensor([2, tf.constant(3)])).tolist() == [2, 3]


@proves("tf.python.tpu.tpu.TPUReplicateContext")
def is_a_context(context):
    assert issubclass(context, control_flow_ops.XLAControlFlowContext)


UTIL = f"{OPS}.control_flow_util"


@proves(f"{UTIL}.GetContainingXLAContext")
def finds_xlas_context(containing):
    context = control_flow_ops.XLAControlFlowContext()
    assert containing(context) is context
    assert containing(None) is None
    with tpu_function.tpu_shard_context(1):
        assert containing(None).IsXLAContext()


@proves(f"{UTIL}.InXlaContext", f"{UTIL}.GraphOrParentsInXlaContext")
def asks_a_graph(in_xla):
    with tf.Graph().as_default() as graph:
        assert not in_xla(graph)
        with tpu_function.tpu_shard_context(1):
            assert in_xla(graph)


@proves(f"{UTIL}.IsInXLAContext")
def asks_an_operation(in_xla):
    with tf.Graph().as_default():
        operation = tf.no_op()
        assert not in_xla(operation)
        with tpu_function.tpu_shard_context(1):
            assert in_xla(operation)


XLA = "tf.compiler.xla.experimental.xla_sharding"


@proves(XLA, f"{XLA}.xla_sharding")
def splits_for_xla(module):
    with graph():
        sharded = module.split(tf.ones([4, 2]), 0, 2)
        assert sharded.shape == [4, 2]
