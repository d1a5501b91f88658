"""TensorFlow's private modules and names that the package uses, each with its purpose.

Only two other places import `tensorflow.python`, as a linter checks: `old_names/contrib/`, for
names of `tf.contrib`, and `tools/compare/sides/`, which runs in the original's process. TensorFlow
2.19, 2.20 and 2.21 have all these names. `import tensorflow` imports all these modules itself.
"""

# Calling legacy code in a graph.
from tensorflow.python import pywrap_tfe  # pauses gradient tapes; lists devices
from tensorflow.python import tf2  # whether TensorFlow 2's behavior is on, which scripts may switch
from tensorflow.python.distribute import device_util  # the current device
from tensorflow.python.distribute import distribute_lib  # the class of the default strategy
from tensorflow.python.eager import cancellation  # cancels blocked steps when a signal comes
from tensorflow.python.eager import context  # eager and graph mode, and the runtime's options
from tensorflow.python.eager import execute  # calls of functions that can be cancelled
from tensorflow.python.eager import record  # calls that gradient tapes do not record
from tensorflow.python.framework.func_graph import FuncGraph  # refs in branches and loops
from tensorflow.python.framework import stack  # the default session: `variable.eval()` of hooks
from tensorflow.python.framework.tensor_shape import Dimension  # `shape[0].value` of TensorFlow 1
from tensorflow.python.ops import cond_v2  # names and reads in branches, as TensorFlow 1 had them
from tensorflow.python.ops import control_flow_ops  # contexts of code that XLA compiles
from tensorflow.python.framework import ops  # chooses an op's graph by its inputs
from tensorflow.python.ops import control_flow_util_v2  # functions of branches
from tensorflow.python.ops import control_flow_util  # the switch for TensorFlow 2's control flow
from tensorflow.python.ops import script_ops  # py_functions: which one runs, and their registry
from tensorflow.python.ops import while_v2  # variables in loops, as TensorFlow 1 had them
from tensorflow.python.tpu import tpu_function  # the number of shards, as a model_fn reads it
from tensorflow.python.tpu import tpu_replication  # marks of outside compilation
from tensorflow.python.tpu.ops import tpu_ops  # collectives and inputs of replicated code
from tensorflow.python.training import evaluation  # the counter of an evaluation's steps
from tensorflow.python.training import training_util  # the read of the step that hooks fetch
from tensorflow.python.training.training_util import GLOBAL_STEP_READ_KEY  # where that read is
from tensorflow.python.util import function_utils  # arguments of callables
from tensorflow.python.util import nest  # names for the tensors of an element
from tensorflow.python.util import tf_inspect  # arguments of decorated functions

# Functions made of a captured graph.
from tensorflow.python.distribute import collective_all_reduce_strategy  # classes of strategies
from tensorflow.python.distribute import distribute_utils  # values of one replica, and of all
from tensorflow.python.distribute import cross_device_ops  # what a strategy makes of equal values
from tensorflow.python.distribute import values as distribute_values  # classes of those values
from tensorflow.python.distribute import values_util  # what a variable makes of those values
from tensorflow.python.distribute import mirrored_strategy  # classes of strategies
from tensorflow.python.distribute.collective_all_reduce_strategy import (
    CollectiveAllReduceExtended,  # collective keys, equal on all machines
)
from tensorflow.python.eager.polymorphic_function.atomic_function import (
    AtomicFunction,  # calls a traced function without the cost of `tf.function`
    InterpolateRuntimeError,  # the same errors as `tf.function` raises
)
from tensorflow.python.eager.polymorphic_function.polymorphic_function import (
    Function as PolymorphicFunction,  # traced even with run_functions_eagerly(True)
)
from tensorflow.python.framework import config as framework_config  # the switch for determinism
from tensorflow.python.framework import error_interpolation  # nodes that an error's text names
from tensorflow.python.framework.function_def_to_graph import (
    function_def_to_graph,  # functions of a SavedModel
)
from tensorflow.python.framework import kernels  # operations that XLA has kernels for
from tensorflow.python.framework import auto_control_deps_utils  # resources that branches only read
from tensorflow.python.framework import op_def_registry  # inputs and attributes of operations
from tensorflow.python.framework import smart_cond  # conditions known while a graph is built
from tensorflow.python.framework import tensor_shape  # shapes in attributes of operations
from tensorflow.python.lib.io import file_io  # atomic writes and moves of files
from tensorflow.python.ops import collective_ops  # sums and sends between machines
from tensorflow.python.ops import handle_data_util  # shapes and dtypes behind resource handles
from tensorflow.python.ops import init_ops  # initial values of shards: constants
from tensorflow.python.ops import resource_variable_ops  # variables without values
from tensorflow.python.ops import variable_scope  # the store of a graph's variables
from tensorflow.python.ops.variable_scope import _PartitionInfo  # initial values of shards

# Input.
from tensorflow.python.data.experimental.ops.distribute import replicate  # a dataset per device
from tensorflow.python.data.experimental.ops.iterator_ops import (
    _convert_external_state_policy_to_enum,  # the policy for state outside an iterator
)
from tensorflow.python.data.ops import dataset_ops  # datasets of variants, and of TensorFlow 1
from tensorflow.python.data.ops import iterator_ops  # iterators in checkpoints
from tensorflow.python.ops import gen_dataset_ops  # iterators' states as tensors

# Sessions, hooks, checkpoints, events.
from tensorflow.python.checkpoint import checkpoint as object_checkpoint  # savers of objects
from tensorflow.python.checkpoint import graph_view  # savers of objects
from tensorflow.python.client import pywrap_tf_session as tf_session_api  # attributes of devices
from tensorflow.python.client import session as tf_session  # session classes, for hooks
from tensorflow.python.client import timeline as timeline_lib  # files of ProfilerHook
from tensorflow.python.client.session import _FetchHandler  # fetches of `session.run`
from tensorflow.python.ops import summary_ops_v2  # a graph's summary writers
from tensorflow.python.profiler import profiler_v2  # whether a profiler is already running
from tensorflow.python.trackable.base import OBJECT_GRAPH_PROTO_KEY  # checkpoints of objects
from tensorflow.python.training import basic_session_run_hooks as hooks_lib  # hooks' timers
from tensorflow.python.training import session_manager  # restoring, in TensorFlow's own order
from tensorflow.python.training.monitored_session import ChiefSessionCreator  # sessions' creation
from tensorflow.python.training.saver import object_graph_key_mapping  # checkpoints of objects
from tensorflow.python.util import compat  # names of files as bytes

# Export.
from tensorflow.python.framework import function as framework_function  # functions of TensorFlow 1
from tensorflow.python.saved_model.loader_impl import SavedModelLoader  # without a warning
from tensorflow.python.saved_model.model_utils import export_utils  # signatures
from tensorflow.python.saved_model.model_utils.export_output import (  # outputs that a spec exports
    ClassificationOutput,
    EvalOutput,
    ExportOutput,
    PredictOutput,
    RegressionOutput,
    TrainOutput,
)
from tensorflow.python.saved_model.model_utils.export_utils import (  # names in a SavedModel
    EXPORT_TAG_MAP,
    MAX_DIRECTORY_CREATION_ATTEMPTS,
    get_export_outputs,
    get_temp_export_dir,
    get_timestamped_export_dir,
)
from tensorflow.python.saved_model.model_utils.mode_keys import EstimatorModeKeys  # `ModeKeys`
from tensorflow.python.tpu import functional as tpu_functional  # a model's part on a TPU
from tensorflow.python.tpu import tpu as tpu_lib  # a model's part on a TPU
from tensorflow.python.util import deprecation  # warnings of old methods

# Embedding columns for TPU.
from tensorflow.python.feature_column import feature_column as columns_v1  # columns to refuse
from tensorflow.python.feature_column import feature_column_v2 as columns_v2  # columns to refuse
from tensorflow.python.framework.random_seed import DEFAULT_GRAPH_SEED  # initial values of shards
from tensorflow.python.tpu import feature_column as tpu_columns  # columns of TensorFlow 1
from tensorflow.python.tpu import feature_column_v2 as tpu_columns_v2  # columns of TensorFlow 2

# Dry runs.
from tensorflow.python.training import checkpoint_utils  # waits for checkpoints
