import pytest

from tpu_estimator_compat import config

from . import config_probe

pytestmark = [pytest.mark.slow, pytest.mark.parity]

CLUSTER = {"chief": ["c:1"], "ps": ["p:1", "p:2"], "worker": ["w:1", "w:2", "w:3"]}
MASTER_CLUSTER = {"master": ["m:1"], "worker": ["w:1"], "ps": ["p:1"]}


def task(kind, index, cluster=CLUSTER, **more):
    """TF_CONFIG of one task of `cluster`."""
    return {"cluster": cluster, "task": {"type": kind, "index": index}, **more}


PLAIN = [
    "RunConfig()",
    "RunConfig('/m', 7, 10, 20)",
    "RunConfig(model_dir=Path('/m/n'))",
    "RunConfig(model_dir='')",
    "RunConfig(save_checkpoints_steps=5)",
    "RunConfig(save_checkpoints_secs=5)",
    "RunConfig(save_checkpoints_steps=None)",
    "RunConfig(save_checkpoints_steps=None, save_checkpoints_secs=None)",
    "RunConfig(save_checkpoints_steps=5, save_checkpoints_secs=6)",
    "RunConfig(save_checkpoints_steps=5, save_checkpoints_secs=None)",
    "RunConfig(save_checkpoints_steps=-1)",
    "RunConfig(save_checkpoints_secs=-1)",
    "RunConfig(save_checkpoints_steps='5')",
    "RunConfig(save_summary_steps=-1)",
    "RunConfig(save_summary_steps=None)",
    "RunConfig(session_config={})",
    "RunConfig(session_config=v1.ConfigProto(log_device_placement=True))",
    "RunConfig(keep_checkpoint_max=-1)",
    "RunConfig(keep_checkpoint_max=None)",
    "RunConfig(keep_checkpoint_every_n_hours=0)",
    "RunConfig(keep_checkpoint_every_n_hours=0.5)",
    "RunConfig(log_step_count_steps=0)",
    "RunConfig(log_step_count_steps=None)",
    "RunConfig(tf_random_seed=1.5)",
    "RunConfig(device_fn=lambda op: '/cpu:0')",
    "RunConfig(device_fn=lambda node: '/cpu:0')",
    "RunConfig(device_fn='/cpu:0')",
    "RunConfig(device_fn=OpCallable())",
    "RunConfig(device_fn=partial(lambda op, where: where, where='/cpu:0'))",
    "RunConfig(protocol='grpc+verbs')",
    "RunConfig(protocol='http')",
    "RunConfig(experimental_max_worker_delay_secs=1.5)",
    "RunConfig(experimental_max_worker_delay_secs=3)",
    "RunConfig(session_creation_timeout_secs=0)",
    "RunConfig(checkpoint_save_graph_def=False)",
    "RunConfig(no_such_argument=1)",
    "RunConfig(train_distribute=tf.distribute.MirroredStrategy(['/cpu:0']))",
    "RunConfig(train_distribute=uninitialized_parameter_server_strategy())",
    "RunConfig(eval_distribute=uninitialized_parameter_server_strategy())",
    "RunConfig().replace(save_checkpoints_steps=5)",
    "RunConfig(save_checkpoints_steps=5).replace(save_checkpoints_secs=6)",
    "RunConfig(save_checkpoints_steps=5).replace(save_checkpoints_secs=None)",
    "RunConfig().replace(save_checkpoints_steps=5, save_checkpoints_secs=6)",
    "RunConfig().replace(save_checkpoints_steps=None, save_checkpoints_secs=None)",
    "RunConfig().replace(model_dir='')",
    "RunConfig().replace(model_dir='/n', tf_random_seed=3, keep_checkpoint_max=0)",
    "RunConfig().replace(master='grpc://x')",
    "RunConfig().replace(train_distribute=tf.distribute.OneDeviceStrategy('/cpu:0'))",
    "replaced_attribute(RunConfig(), _model_dir='/p', _save_checkpoints_steps=9)",
    "default_session_config()",
]
TPU = [
    "InputPipelineConfig.SLICED",
    "TPUConfig()",
    "TPUConfig(100, 8, 2, 3)",
    "TPUConfig(iterations_per_loop='1h')",
    "TPUConfig(iterations_per_loop='0s')",
    "TPUConfig(iterations_per_loop=0)",
    "TPUConfig(iterations_per_loop=2.0)",
    "TPUConfig(iterations_per_loop=True)",
    "TPUConfig(num_shards=0)",
    "TPUConfig(num_shards='8')",
    "TPUConfig(num_cores_per_replica=3)",
    "TPUConfig(per_host_input_for_training=False)",
    "TPUConfig(per_host_input_for_training=InputPipelineConfig.BROADCAST)",
    "TPUConfig(initial_infeed_sleep_secs=-1)",
    "TPUConfig(initial_infeed_sleep_secs=0)",
    "TPUConfig(input_partition_dims=[])",
    "TPUConfig(input_partition_dims=[[1, 2]])",
    "TPUConfig(input_partition_dims=[[1, 2]], per_host_input_for_training=3)",
    "TPUConfig(input_partition_dims=[[1, 2]], per_host_input_for_training=3, "
    "num_cores_per_replica=2)",
    "TPUConfig(eval_training_input_configuration=3)",
    "TPUConfig(eval_training_input_configuration=InputPipelineConfig.SLICED)",
    "TPUConfig()._replace(iterations_per_loop=50)",
    "TPUConfig()._replace(num_cores_per_replica=3)",
    "parse_iterations_per_loop('90')",
    "parse_iterations_per_loop('2m')",
    "TPURunConfig()",
    "TPURunConfig(TPUConfig(10), 'grpc://eval', 'grpc://train')",
    "TPURunConfig(master='grpc://train')",
    "TPURunConfig(master='', evaluation_master='')",
    "TPURunConfig(master='x', cluster=resolver('w:1'))",
    "TPURunConfig(cluster=resolver('w:1', 'w:2'))",
    "TPURunConfig(cluster=resolver())",
    "TPURunConfig(cluster='')",
    "TPURunConfig(cluster='', master='x')",
    "TPURunConfig(cluster=resolver('w:1'), session_config=v1.ConfigProto())",
    "TPURunConfig(cluster=resolver('w:1'), session_config=v1.ConfigProto("
    "cluster_def=tf.train.ClusterSpec({'w': ['a:1']}).as_cluster_def()))",
    "TPURunConfig(save_checkpoints_steps=3, model_dir='/t')",
    "TPURunConfig(save_summary_steps=-3)",
    "TPURunConfig().replace(tpu_config=TPUConfig(7), model_dir='/u')",
    "TPURunConfig(TPUConfig(7)).replace(save_checkpoints_steps=7)",
    "TPURunConfig().replace(master='x')",
    "TPURunConfig().replace(cluster=None)",
]
IN_A_CLUSTER = [
    task("chief", 0),
    task("worker", 2),
    task("ps", 1),
    task("evaluator", 0, eval_session_master="grpc://e"),
    task("worker", 3),
    task("worker", -1),
    task("trainer", 0),
    task("chief", 0, {"chief": ["c:1", "c:2"]}),
    task("chief", 0, {"chief": ["c:1"]}),
    task("worker", 0, {"worker": ["w:1", "w:2"]}),
    task("master", 0, MASTER_CLUSTER),
    task("worker", 0, MASTER_CLUSTER, session_master="grpc://s"),
    task("evaluator", 0, MASTER_CLUSTER),
    task("master", 0, {"master": ["m:1"], "chief": ["c:1"]}),
    {"cluster": CLUSTER},
    {"cluster": CLUSTER, "task": {"type": "worker"}},
    {"task": {"type": "ps", "index": 0}},
    {"task": {"type": "worker", "index": 1}},
    {"session_master": "grpc://s", "eval_session_master": "grpc://e"},
    {"service": {"tpu_worker_job_name": "tpu_job"}},
    {"service": 5},
    {"model_dir": "/from/cluster"},
    {"model_dir": ""},
]
CASES = [
    *((None, expression) for expression in PLAIN + TPU),
    *((tf_config, "RunConfig()") for tf_config in IN_A_CLUSTER),
    *((tf_config, "TPURunConfig()") for tf_config in IN_A_CLUSTER),
    ({"model_dir": "/a"}, "RunConfig(model_dir='/b')"),
    ({"model_dir": "/a"}, "RunConfig(model_dir='/a')"),
    (task("worker", 1), "RunConfig(session_config=v1.ConfigProto())"),
    (task("evaluator", 0), "TPURunConfig(master='grpc://train')"),
]


@pytest.fixture(scope="module")
def originals_reports(original):
    return original.run(config_probe.__file__, given=CASES)


def words(message):
    """`message` without white space, which the original lacks here and there."""
    return "".join(message.split())


@pytest.mark.parametrize(
    "number",
    range(len(CASES)),
    ids=[f"{i}:{expression}" for i, (_, expression) in enumerate(CASES)],
)
def test_same_outcome_as_the_original(number, originals_reports):
    names = {name: getattr(config, name) for name in config_probe.ORIGINAL}
    original, ours = originals_reports[number], config_probe.report(names, *CASES[number])
    if "error" not in original:
        assert ours == original
        return
    assert ours["error"] == original["error"]
    assert words(original["message"]) in words(ours["message"])


def test_the_cases_hold_good_calls_and_bad_ones(originals_reports):
    errors = sum("error" in report for report in originals_reports)
    assert len(CASES) > 100
    assert errors > 40
    assert len(CASES) - errors > 60
