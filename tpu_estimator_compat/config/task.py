"""This process's task in the cluster that TF_CONFIG describes."""

import dataclasses
import json
import os
from typing import Any

import tensorflow as tf

LOCAL_MASTER = ""
TF_CONFIG_ENV = "TF_CONFIG"
SERVICE_KEY = "service"


class TaskType:
    """Names of the jobs of a cluster, the original's."""

    MASTER = "master"
    PS = "ps"
    WORKER = "worker"
    CHIEF = "chief"
    EVALUATOR = "evaluator"


@dataclasses.dataclass(frozen=True)
class Task:
    """This process's place in the cluster, in fields named like the properties of `RunConfig`.

    `global_id_in_cluster` counts over all jobs: chief first, parameter servers last, the others
    in alphabetical order between them. It is None for an evaluator, which is not in the cluster.
    """

    service: dict[str, Any] | None
    cluster_spec: tf.train.ClusterSpec
    task_type: str
    task_id: int
    master: str = LOCAL_MASTER
    evaluation_master: str = LOCAL_MASTER
    is_chief: bool = False
    num_ps_replicas: int = 0
    num_worker_replicas: int = 0
    global_id_in_cluster: int | None = None


def read_tf_config() -> dict[str, Any]:
    """The TF_CONFIG environment variable as a dict, empty when unset."""
    text = os.environ.get(TF_CONFIG_ENV, "{}")
    try:
        tf_config = json.loads(text)
    except json.JSONDecodeError as error:
        advice = f"The environment variable TF_CONFIG is not JSON. Got {text!r}; {_TF_CONFIG}"
        raise json.JSONDecodeError(f"{advice}. {error.msg}", error.doc, error.pos) from None
    if not isinstance(tf_config, dict):
        raise TypeError(
            "The environment variable TF_CONFIG must be a JSON object. "
            f"Got {tf_config!r}; {_TF_CONFIG}."
        )
    if not isinstance(tf_config.get("task", {}), dict):
        raise TypeError(
            f'"task" in TF_CONFIG must be a JSON object. Got {tf_config["task"]!r}; {_TF_CONFIG}.'
        )
    if not isinstance(service := tf_config.get(SERVICE_KEY), dict | None):
        raise TypeError(
            'If "service" is set in TF_CONFIG, it must be a dict.'
            f" Given {type(service)}: {service!r}"
        )
    return tf_config


_TF_CONFIG = (
    'unset it, or write {"cluster": {"chief": ["host:port"]}, "task": {"type": "chief", "index": 0}'
    "}"
)


def task_from_tf_config(tf_config: dict[str, Any], *, chief_optional: bool = False) -> Task:
    """This process's task in a parsed TF_CONFIG; worker 0 where that has no cluster.

    With `chief_optional`, worker 0 is the chief of a cluster without the job `chief` or `master`.
    """
    service = tf_config.get(SERVICE_KEY)
    try:
        cluster_spec = tf.train.ClusterSpec(tf_config.get("cluster", {}))
    except TypeError as error:
        raise TypeError(f"In TF_CONFIG, {error}. Instead, {_TF_CONFIG}.") from None
    if not cluster_spec:
        return _local_task(tf_config, service)
    chief = _chief_job(cluster_spec, chief_optional)
    task_type, task_id = _checked_task(cluster_spec, tf_config.get("task", {}))
    if task_type == TaskType.EVALUATOR:
        if chief == TaskType.MASTER:
            raise ValueError(
                "If `master` node exists in `cluster`, task_type `evaluator` is not supported. "
                "Rename the `master` job in TF_CONFIG to `chief`."
            )
        evaluation_master = tf_config.get("eval_session_master", LOCAL_MASTER)
        # An empty cluster: with another one, the evaluator would wait for its tasks.
        outside = tf.train.ClusterSpec({})
        return Task(service, outside, task_type, task_id, evaluation_master=evaluation_master)
    count = {job: cluster_spec.num_tasks(job) for job in cluster_spec.jobs}
    return Task(
        service=service,
        cluster_spec=cluster_spec,
        task_type=task_type,
        task_id=task_id,
        master=_session_master(cluster_spec, task_type, task_id, tf_config),
        is_chief=task_type == chief and task_id == 0,
        num_ps_replicas=count.get(TaskType.PS, 0),
        num_worker_replicas=sum(count.get(job, 0) for job in {TaskType.WORKER, chief}),
        global_id_in_cluster=_global_id(count, chief, task_type, task_id),
    )


def _local_task(tf_config: dict[str, Any], service: dict[str, Any] | None) -> Task:
    task = tf_config.get("task", {})
    task_type, task_id = task.get("type", TaskType.WORKER), _index(task.get("index", 0))
    if task_type != TaskType.WORKER:
        raise ValueError(
            'If "cluster" is not set in TF_CONFIG, task type must be WORKER.'
            f' Got {task_type!r}; add the "cluster" or remove the "task".'
        )
    if task_id != 0:
        raise ValueError(
            'If "cluster" is not set in TF_CONFIG, task index must be 0.'
            f' Got {task_id}; add the "cluster" or remove the "task".'
        )
    return Task(
        service=service,
        cluster_spec=tf.train.ClusterSpec({}),
        task_type=task_type,
        task_id=task_id,
        master=tf_config.get("session_master", LOCAL_MASTER),
        evaluation_master=tf_config.get("eval_session_master", LOCAL_MASTER),
        is_chief=True,
        num_worker_replicas=1,
        global_id_in_cluster=0,
    )


def _chief_job(cluster_spec: tf.train.ClusterSpec, chief_optional: bool) -> str:
    """The job that holds the chief: `master` in old clusters, `chief` in later ones."""
    jobs = cluster_spec.jobs
    if TaskType.MASTER in jobs and TaskType.CHIEF in jobs:
        raise ValueError(
            "If `master` node exists in `cluster`, job `chief` is not supported. "
            f"Keep one of the two in TF_CONFIG; got the jobs {sorted(jobs)}."
        )
    chief = TaskType.MASTER if TaskType.MASTER in jobs else TaskType.CHIEF
    if chief not in jobs:
        if chief_optional and TaskType.WORKER in jobs:
            return TaskType.WORKER
        raise ValueError(
            f'If "cluster" is set in TF_CONFIG, it must have one "{chief}" node.'
            f" Got the jobs {sorted(jobs)}."
        )
    if len(cluster_spec.job_tasks(chief)) > 1:
        raise ValueError(
            f'The "cluster" in TF_CONFIG must have only one "{chief}" node.'
            f" Got {cluster_spec.job_tasks(chief)}."
        )
    return chief


def _checked_task(cluster_spec: tf.train.ClusterSpec, task: dict[str, Any]) -> tuple[str, int]:
    task_type, task_id = task.get("type"), task.get("index")
    if not task_type:
        raise ValueError(
            'If "cluster" is set in TF_CONFIG, task type must be set.'
            f" Got the task {task!r}; give it a type, one of {sorted(cluster_spec.jobs)}."
        )
    if task_id is None:
        raise ValueError(
            'If "cluster" is set in TF_CONFIG, task index must be set.'
            f" Got the task {task!r}; give it an index, counting from 0."
        )
    task_id = _index(task_id)
    if task_id < 0:
        raise ValueError(f"Task index must be non-negative number. Got {task_id}.")
    if task_type != TaskType.EVALUATOR:
        _check_task_is_in_cluster(cluster_spec, task_type, task_id)
    return task_type, task_id


def _index(given: Any) -> int:
    try:
        return int(given)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"The task index in TF_CONFIG must be a number, counted from 0. Got {given!r}: {error}"
        ) from None


def _check_task_is_in_cluster(
    cluster_spec: tf.train.ClusterSpec, task_type: str, task_id: int
) -> None:
    source = "Note that these values may be coming from the TF_CONFIG environment variable."
    if task_type not in cluster_spec.jobs:
        raise ValueError(
            f"{task_type} is not a valid task_type in the cluster_spec:\n{cluster_spec}\n\n{source}"
        )
    if task_id >= len(cluster_spec.job_tasks(task_type)):
        raise ValueError(
            f"{task_id} is not a valid task_id for task_type {task_type} in the cluster_spec:\n"
            f"{cluster_spec}\n\n{source}"
        )


def _session_master(
    cluster_spec: tf.train.ClusterSpec, task_type: str, task_id: int, tf_config: dict[str, Any]
) -> str:
    if "session_master" in tf_config:
        master: str = tf_config["session_master"]
        return master
    # A cluster of one node runs in this process: no server to talk to.
    if len(cluster_spec.jobs) == 1 and len(cluster_spec.job_tasks(cluster_spec.jobs[0])) == 1:
        return LOCAL_MASTER
    return f"grpc://{cluster_spec.job_tasks(task_type)[task_id]}"


def _global_id(count: dict[str, int], chief: str, task_type: str, task_id: int) -> int:
    """Number of tasks that stand before this one (order: see `Task`)."""
    order = sorted(count, key=lambda job: (job != chief, job == TaskType.PS, job))
    return sum(count[job] for job in order[: order.index(task_type)]) + task_id
