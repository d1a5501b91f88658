"""What a program is made of: for each choice its options, the simplest first, and their weights.

A choice is drawn from the seed and its own name, so that another choice, or an option that is added
elsewhere, changes nothing of it. A program is a dict of choices; nothing else tells it what to do.
"""

import random

Choices = dict[str, str]

CALLS = {
    "none": 3,
    "train": 3,
    "train_anew": 3,
    "train_to": 2,
    "train_all": 2,
    "evaluate": 4,
    "evaluate_all": 2,
    "evaluate_named": 2,
    "evaluate_checkpoint": 1,
    "predict": 3,
    "predict_keys": 2,
    "predict_whole": 2,
    "export": 2,
    "train_and_evaluate": 3,
    "values": 2,
}

TABLE: dict[str, dict[str, float]] = {
    "v2": {"on": 5, "off": 5},
    "estimator": {"Estimator": 7, "TPUEstimator": 3},
    "input": {
        "dataset": 5,
        "shuffled": 4,
        "generator": 2,
        "step_in_map": 2,
        "variable_in_map": 1,
        "py_func_in_map": 2,
        "one_shot": 3,
        "initializable": 3,
        "initialized_by_hook": 2,
        "constants": 2,
        "random_tensors": 3,
        "py_func": 2,
        "train_batch": 2,
        "string_producer": 1,
        "slice_producer": 2,
        "range_producer": 1,
        "numpy": 2,
        "placeholders": 2,
        "placeholders_with_default": 1,
        "counted": 2,
        "text": 2,
        "nothing": 1,
        "interleaved": 1,
        "zipped": 1,
    },
    "features": {"dict": 4, "tensor": 3, "tuple": 2, "named": 1},
    "aside": {"none": 8, "loss": 1, "summary": 1, "table": 1, "variable": 1, "collection": 1},
    "length": {"endless": 5, "finite": 3, "ragged": 3},
    "batch": {"2": 3, "1": 1, "3": 2, "5": 1},
    "model": {
        "linear": 3,
        "dense": 4,
        "convolution": 2,
        "recurrent": 2,
        "gru": 1,
        "embedding": 2,
        "sparse_embedding": 1,
        "while_loop": 2,
        "map_fn": 1,
        "cond": 2,
        "partitioned": 1,
        "reused": 1,
        "columns": 1,
        "template": 1,
    },
    "initial": {"zeros": 3, "seeded": 4, "drawn": 4},
    "normalization": {"none": 6, "batch": 2, "layer": 1},
    "dropout": {"none": 6, "seeded": 2, "drawn": 1},
    "noise": {"none": 8, "seeded": 1, "drawn": 1},
    "loss": {"square": 4, "losses": 3, "huber": 1, "weighted": 1, "absolute": 1, "sigmoid": 1},
    "regularization": {"none": 6, "l2": 2},
    "optimizer": {
        "GradientDescent": 3,
        "Momentum": 2,
        "Nesterov": 1,
        "Adam": 4,
        "Adagrad": 2,
        "RMSProp": 2,
        "CenteredRMSProp": 1,
        "Ftrl": 2,
        "Adadelta": 2,
        "ProximalAdagrad": 1,
        "ProximalGradientDescent": 1,
        "AdagradDA": 1,
        "two": 1,
    },
    "rate": {
        "fixed": 5,
        "exponential": 2,
        "staircase": 1,
        "polynomial": 1,
        "piecewise": 2,
        "cosine": 1,
        "inverse": 1,
        "fed": 1,
        "variable": 1,
    },
    "gradients": {
        "minimize": 6,
        "clipped_norm": 2,
        "clipped_values": 1,
        "scaled": 1,
        "every_second": 2,
        "accumulated": 1,
        "nan_guarded": 1,
        "alternating": 1,
    },
    "after": {
        "nothing": 5,
        "clip": 2,
        "decay": 1,
        "copy": 1,
        "twice": 2,
        "gan": 2,
        "sums": 1,
        "scatter": 1,
        "names": 1,
    },
    "counting": {
        "by_optimizer": 6,
        "apart": 2,
        "by_two": 1,
        "in_cond": 1,
        "uneven": 1,
        "by_batch": 1,
    },
    "late": {"no": 5, "yes": 4},
    "table": {"none": 8, "mutable": 1, "dense": 1, "static": 1},
    "counter": {"no": 7, "yes": 2, "while": 1, "cond": 2, "case": 1, "scatter": 1},
    "average": {"none": 7, "loss": 2, "variables": 2, "swapped": 1},
    "host": {"none": 7, "records": 2, "changes": 1, "numpy_function": 1},
    "host_call": {"none": 4, "takes": 1, "captures": 1, "takes_none": 1},
    "staged": {"none": 8, "area": 1, "map": 1, "accumulator": 1},
    "asks": {"nothing": 6, "replicas": 1},
    "assert": {"no": 8, "yes": 1},
    "print": {"no": 9, "yes": 1},
    "random_step": {"no": 8, "yes": 1},
    "summary_scalar": {"no": 2, "yes": 1},
    "summary_histogram": {"no": 4, "yes": 1},
    "summary_cond": {"no": 6, "yes": 1},
    "summary_text": {"no": 8, "yes": 1},
    "summary_image": {"no": 9, "yes": 1},
    "metrics": {"none": 2, "mean": 3, "several": 3, "own": 1},
    "outputs": {"one": 3, "two": 2, "classes": 1},
    "scaffold": {"none": 8, "init_fn": 1, "saver": 1, "init_op": 1, "local_init_op": 1},
    "spec_hooks": {"none": 6, "recording": 2, "logging": 1, "chief": 1},
    "hook_fetch": {"none": 3, "loss": 2, "several": 3, "third": 2, "objects": 1, "input": 2},
    "hook_session": {"no": 6, "reads": 2, "assigns": 1, "ends": 1},
    "hook_logging": {"none": 5, "two": 2, "at_end": 1, "formatter": 1, "seconds": 1},
    "hook_saver": {"none": 6, "steps": 2, "with_listener": 1},
    "hook_summary": {"none": 6, "own": 2, "scaffold": 1},
    "hook_stop": {"none": 6, "num_steps": 1, "last_step": 1, "requested": 2, "in_before": 1},
    "hook_feed": {"no": 4, "yes": 1, "args": 1},
    "hook_final": {"no": 5, "yes": 1},
    "hook_counter": {"no": 6, "yes": 1},
    "hook_nan": {"no": 6, "fails": 1, "stops": 1},
    "hook_raise": {
        "none": 14,
        "range": 1,
        "runtime": 1,
        "stop": 1,
        "stop_begin": 1,
        "stop_end": 1,
        "stop_saving": 1,
    },
    "hook_looks": {"no": 8, "latest": 1, "evaluates": 1},
    "hook_early": {"none": 10, "higher": 1, "no_decrease": 1},
    "hook_memory": {"no": 12, "yes": 1},
    "hook_order": {"given": 3, "reversed": 1},
    "nan_at": {"never": 14, "1": 1, "3": 1},
    "listeners": {"no": 5, "yes": 1, "stops": 1, "evaluates": 1},
    "save_summary_steps": {"100": 2, "1": 2, "2": 3, "none": 2, "3": 2},
    "save_checkpoints": {"secs": 3, "1": 1, "2": 2, "3": 2, "none": 1},
    "keep_checkpoint_max": {"5": 3, "1": 1, "2": 1, "none": 1},
    "log_step_count_steps": {"100": 3, "1": 1, "2": 2, "3": 1, "none": 1},
    "seed": {"1": 3, "none": 1, "4321": 3},
    "iterations": {"1": 2, "2": 1, "3": 1},
    "start": {"nothing": 8, "warm": 1, "warm_some": 1, "init_from_checkpoint": 1},
    "eval_hooks": {"none": 3, "recording": 2, "summary": 1, "final": 1, "stop": 1},
    "predict_hooks": {"none": 3, "recording": 1, "logging": 1},
    "exporter": {"none": 3, "final": 1, "latest": 1, "best": 1, "several": 1},
    "receiver": {"raw": 3, "parsing": 1, "tensor": 1},
    "steps0": {"3": 3, "1": 1, "2": 1, "4": 2, "7": 2},
    "steps1": {"2": 3, "1": 1, "3": 1, "5": 2},
    "steps2": {"2": 3, "1": 1, "3": 1, "4": 2},
    "call0": {"train": 8, "train_to": 2, "train_all": 3, "train_and_evaluate": 3, "train_anew": 1},
    "call1": CALLS,
    "call2": CALLS,
    "call3": CALLS,
}


def simplest() -> Choices:
    return {name: next(iter(options)) for name, options in TABLE.items()}


def drawn(seed: int) -> Choices:
    return {name: _one(f"{seed} {name}", options) for name, options in TABLE.items()}


def _one(key: str, options: dict[str, float]) -> str:
    left = random.Random(key).random() * sum(options.values())
    for option, weight in options.items():
        left -= weight
        if left < 0:
            return option
    return option


def consistent(given: Choices) -> Choices:
    """The same without what cannot go together, or would be chance in the original."""
    made = {**simplest(), **given}
    for rule in RULES:
        for name, value in rule(made).items():
            made[name] = value
    return made


QUEUES = ("numpy", "train_batch", "string_producer", "slice_producer", "range_producer")
ENDLESS = (
    *("constants", "random_tensors", "py_func", "placeholders", "placeholders_with_default"),
    *("counted", "nothing"),
)


def _of_inputs(made: Choices) -> Choices:
    """Lengths and structures that an input can have."""
    found = {}
    if made["input"] in ENDLESS:
        found["length"] = "endless"
    if made["input"] == "numpy":
        found["features"] = "dict"
    if made["input"] in (*QUEUES[1:], "py_func"):
        found["features"] = "tensor"
    if made["input"] == "nothing":
        found["features"] = "dict"
    if made["input"] in QUEUES:  # how full a queue is, a summary of its own, varies
        found["save_summary_steps"] = "none"
        found["hook_summary"] = "none"
        found["scaffold"] = "none"
    return found


def _of_races(made: Choices) -> Choices:
    """Ref variables, which the original has without v2 behaviour, are read at any time."""
    found = {}
    if made["v2"] == "off":
        if made["average"] in ("variables", "swapped"):
            found["average"] = "loss"
        if made["counter"] == "scatter":
            found["counter"] = "yes"
        if made["counting"] in (
            "by_two",
            "uneven",
            "by_batch",
        ):  # of the step, too, which hooks fetch
            found["counting"] = "apart"
        found["hook_early"] = "none"
        if made["input"] in ("step_in_map", "variable_in_map"):
            found["input"] = "dataset"
    if made["start"] != "nothing" and made["average"] in ("variables", "swapped"):
        found["average"] = "loss"  # the first averages are those of before or after the start
    if made["hook_fetch"] == "input" and made["input"] in (*QUEUES, *ENDLESS):
        found["hook_fetch"] = "several"
    return found


def _of_models(made: Choices) -> Choices:
    found = {}
    if made["optimizer"] == "two":
        found["gradients"] = "minimize"
    if made["optimizer"] == "two" and made["model"] == "partitioned":
        found["optimizer"] = "Adam"
        found["after"] = "nothing"
    elif made["after"] == "names" and made["v2"] == "on":  # only ref variables have these names
        found["after"] = "copy"
    if made["start"] != "nothing" and made["save_checkpoints"] == "none":
        found["save_checkpoints"] = "2"
    if made["model"] == "partitioned" and made["start"] != "nothing":
        found["start"] = "nothing"
    if made["hook_feed"] != "no":
        found["rate"] = "fed"
    if made["estimator"] == "Estimator":
        found["host_call"] = "none"
    return found


def _of_seeds(made: Choices) -> Choices:
    """Ops that have no seed draw by that of the graph.

    Those of layers, and with v2 behaviour, by Python's generator: see "reaches Keras initializers"
    in differences.md.
    """
    found = {}
    if made["v2"] == "on" and made["model"] not in ("linear", "map_fn"):
        found["initial"] = "seeded" if made["initial"] == "drawn" else made["initial"]
    drawing = "drawn" in (found.get("initial", made["initial"]), made["dropout"], made["noise"])
    if made["seed"] == "none" and drawing:
        found["seed"] = "1"
    return found


RULES = (_of_inputs, _of_races, _of_models, _of_seeds)


def told(given: Choices) -> Choices:
    """What is not the simplest of a program."""
    return {name: value for name, value in given.items() if simplest()[name] != value}
