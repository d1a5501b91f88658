"""What shares the memory of a read sees a write; a session of TensorFlow judges what does."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from support import judged

from tpu_estimator_compat.engine.refs import aliases

raw = tf.raw_ops


def _rows_of(x, first, count):
    """A slice of some rows, as `tf.slice` takes it."""
    others = len(x.shape) - 1
    return tf.slice(x, [first] + [0] * others, [count] + [-1] * others)


WHOLE = {
    "x[:]": lambda x: x[:],
    "x[...]": lambda x: x[...],
    "x[None]": lambda x: x[None],
    "x[..., None]": lambda x: x[..., None],
    "x[:, :]": lambda x: x[:, :],
    "slice": lambda x: tf.slice(x, [0] * len(x.shape), [-1] * len(x.shape)),
    "split into 1": lambda x: tf.split(x, 1)[0],
    "split into sizes": lambda x: tf.split(x, [x.shape.as_list()[1]], axis=1)[0],
    "stack": lambda x: tf.stack([x], 1),
    "add_n": lambda x: raw.AddN(inputs=[x]),
    "transpose": lambda x: tf.transpose(x, list(range(len(x.shape)))),
    "transpose of 1": lambda x: tf.transpose(x[None], [*range(1, len(x.shape) + 1), 0]),
    "tile": lambda x: tf.tile(x, [1] * len(x.shape)),
    "broadcast_to": lambda x: tf.broadcast_to(x, x.shape),
    "pad": lambda x: tf.pad(x, [[0, 0]] * len(x.shape)),
    "reduce_sum": lambda x: tf.reduce_sum(x, []),
    "reduce_max": lambda x: tf.reduce_max(x[None], 0),
    "identity_n": lambda x: tf.identity_n([x[0], x])[1],
    "print": lambda x: raw.Print(input=x, data=[x], message="", first_n=0),
    "grad_pass_through": lambda x: tf.grad_pass_through(tf.identity)(x),
}
ROWS = {
    "x[0]": lambda x: x[0],
    "x[1:]": lambda x: x[1:],
    "x[-1]": lambda x: x[-1],
    "x[:-1]": lambda x: x[:-1],
    "x[None, 1]": lambda x: x[None, 1],
    "x[1, ...]": lambda x: x[1, ...],
    "x[0:1, :]": lambda x: x[0:1, :],
    "slice of the first": lambda x: _rows_of(x, 0, 1),
    "slice of the last": lambda x: _rows_of(x, 1, -1),
    "split, first": lambda x: tf.split(x, 2)[0],
    "split, last": lambda x: tf.split(x, 2)[1],
    "split into sizes, first": lambda x: tf.split(x, [1, -1])[0],
    "split into sizes, last": lambda x: tf.split(x, [1, -1])[1],
    "unstack, first": lambda x: tf.unstack(x)[0],
    "unstack, last": lambda x: tf.unstack(x)[-1],
    "unstack by a negative axis": lambda x: tf.unstack(x, axis=-len(x.shape))[1],
    "a row of an identity": lambda x: tf.identity(x)[0],
    "a row among several": lambda x: tf.identity_n([x[0], x])[0],
    "a row of rows": lambda x: tf.split(x, 2)[1][-1],
}
COPIES = {
    "x[::2]": lambda x: x[::2],
    "x[::-1]": lambda x: x[::-1],
    "x[1:, 0:1]": lambda x: x[1:, 0:1],
    "x[..., 0]": lambda x: x[..., 0],
    "split of columns": lambda x: tf.split(x, 2, axis=1)[0],
    "unstack of columns": lambda x: tf.unstack(x, axis=-1)[0],
    "transpose": tf.transpose,
    "tile": lambda x: tf.tile(x, [2] + [1] * (len(x.shape) - 1)),
    "broadcast_to": lambda x: tf.broadcast_to(x, [1, *x.shape.as_list()]),
    "pad": lambda x: tf.pad(x, [[1, 0]] * len(x.shape)),
    "add_n": lambda x: raw.AddN(inputs=[x, tf.zeros_like(x)]) - 0.0,
    "snapshot": lambda x: raw.Snapshot(input=x),
}
SINGLE = {
    "x[:16]": (True, lambda x: x[:16]),
    "x[16:32]": (True, lambda x: x[16:32]),
    "x[16:]": (False, lambda x: x[16:]),  # the end of 40 elements is no multiple
    "x[8:16]": (False, lambda x: x[8:16]),
    "x[0]": (False, lambda x: x[0]),
    "slice": (True, lambda x: tf.slice(x, [16], [16])),
    "slice to an odd end": (False, lambda x: tf.slice(x, [16], [8])),
    "split": (False, lambda x: tf.split(x[:32], 2)[0]),
    "split into sizes": (True, lambda x: tf.split(x[:32], [16, 16])[1]),
    "split into odd sizes": (False, lambda x: tf.split(x, [16, 24])[0]),
    "unstack": (False, lambda x: tf.unstack(x)[0]),
    "transpose": (True, tf.transpose),
}


def _shared(programs, shape, dtype=np.float32):
    """Names of programs whose results see a write, to the judge; ours do the same."""

    def build():
        starts, seen = [], []
        for i, program in enumerate(programs.values()):
            ref, start = judged.variable(f"v{i}", np.ones(shape, dtype))
            result = program(tf.identity(ref))
            with tf.control_dependencies([result]):
                written = raw.AssignAdd(ref=ref, value=np.ones(shape, dtype))
            with tf.control_dependencies([written.op]):
                starts.append(start)
                seen.append(tf.reduce_max(result * 1))
        return starts, seen

    [judge], [ours] = judged.in_sessions(build, steps=1)
    shared = [
        [name for name, value in zip(programs, values, strict=True) if value == 2]
        for values in (judge, ours)
    ]
    assert shared[0] == shared[1]
    return shared[0]


@pytest.mark.parametrize(
    ("shape", "dtype", "aligned"),
    [
        ((4, 16), np.float32, True),
        ((4, 8), np.float32, False),
        ((4, 8), np.float64, True),
        ((2, 8, 2), np.float32, True),
    ],
)
def test_the_whole_is_shared_and_rows_are_if_they_are_aligned(shape, dtype, aligned):
    programs = {
        (kind, name): program
        for kind, of_kind in (("whole", WHOLE), ("rows", ROWS), ("copies", COPIES))
        for name, program in of_kind.items()
    }
    kinds = {"whole", "rows"} if aligned else {"whole"}
    shared = _shared(programs, shape, dtype)
    assert shared == [each for each in programs if each[0] in kinds]


def test_elements_are_shared_if_both_ends_are_aligned():
    programs = {name: program for name, (_, program) in SINGLE.items()}
    assert _shared(programs, [40]) == [name for name, (shared, _) in SINGLE.items() if shared]


def test_a_scalar_in_another_shape_is_shared():
    programs = {
        "x[None]": lambda x: x[None],
        "a row of it": lambda x: x[None][0],
        "reduce_sum": lambda x: tf.reduce_sum(x[None]),
    }
    assert _shared(programs, []) == list(programs)


def test_nothing_unknown_is_shared():
    with tf.Graph().as_default() as graph:
        tf.placeholder(tf.float32, [4, 16])[1:]
    [node] = [node for node in graph.as_graph_def().node if node.op == "StridedSlice"]
    arguments = [None, np.array([1]), np.array([0]), np.array([1])]
    assert aliases.begins(node, (4, 16), [(3, 16)], arguments) == [16]
    assert aliases.begins(node, None, [(3, 16)], arguments) == []
    assert aliases.begins(node, (4, 16), [None], arguments) == []
    assert aliases.begins(node, (4, 16), [], arguments) == []
    assert aliases.begins(node, (4, 16), [(3, 16)], [None, None, *arguments[2:]]) == []


def test_an_operation_with_an_effect_runs_once():
    """A look after a write goes by it: no second message, and no check of what was written."""

    def build():
        ref, start = judged.variable("v", np.float32(1.0))
        read = tf.check_numerics(tf.identity(ref), "not finite")
        read = raw.Print(input=read, data=[read], message="", first_n=0)
        with tf.control_dependencies([read]):
            written = raw.Assign(ref=ref, value=np.float32(np.inf))
        with tf.control_dependencies([written.op]):
            return [start], [read * 2.0]

    assert judged.in_sessions(build, steps=1) == ([[np.inf]], [[np.inf]])


def test_outputs_of_one_operation_are_read_from_one_copy():
    with tf.Graph().as_default() as graph:
        ref, _ = judged.variable("v", np.ones([4, 16], np.float32))
        parts = tf.split(tf.identity(ref), 2)
        with tf.control_dependencies([raw.AssignAdd(ref=ref, value=np.ones([4, 16], "f4")).op]):
            _ = [part * 2.0 for part in parts]
    types = [op.type for op in judged.on_resources(graph).graph.get_operations()]
    assert types.count("Split") == 2


def _in_branch(taken, write):
    return tf.cond(tf.random.uniform([]) >= 0.0, write, lambda: (taken(), taken()))


def _in_inner_branch(taken, write):
    return _in_branch(taken, lambda: _in_branch(taken, write))


def _in_loop(taken, write):
    def body(i, total):
        before, after = write()
        return i + 1, total + tf.reduce_sum(before) * 100.0 + tf.reduce_sum(after)

    return tf.while_loop(lambda i, t: i < 2, body, [0, 0.0], parallel_iterations=1)


PARTS = {
    "all": ([4, 16], tf.identity),
    "each of several": ([4, 16], lambda x: tf.identity_n([x])[0]),
    "a row": ([4, 16], lambda x: x[1]),
    "a row of a row": ([4, 4, 16], lambda x: x[2][1]),
    "rows in another shape": ([4, 16], lambda x: tf.unstack(tf.reshape(x, [2, 2, 16]))[1]),
    "several rows": ([4, 16], lambda x: tf.split(x, [1, 3])[1]),
    "elements": ([64], lambda x: x[16:32]),
    "a scalar": ([], lambda x: x[None]),
    "a row that is not aligned": ([4, 4], lambda x: x[1]),
}


@pytest.mark.parametrize(
    ("runs", "taken_within"),
    [(_in_branch, True), (_in_branch, False), (_in_inner_branch, False), (_in_loop, False)],
)
def test_a_part_in_a_function_that_writes(runs, taken_within):

    def build():
        starts, results = [], []
        for i, (shape, part) in enumerate(PARTS.values()):
            values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            v = tf.get_variable(f"v{i}", initializer=values)
            read = tf.identity(v)
            outside = part(read)
            taken = (lambda p=part, r=read: p(r)) if taken_within else (lambda o=outside: o)

            def write(v=v, taken=taken):
                seen = taken()
                before = seen * 1.0
                with tf.control_dependencies([before]):
                    written = tf.assign_add(v, tf.ones_like(v) * 100.0)
                with tf.control_dependencies([written]):
                    return before, seen * 1.0

            starts.append(v.initializer)
            results += runs(taken, write)
        return starts, results

    judge, ours = judged.in_sessions(build)
    for of_judge, of_ours in zip(judge, ours, strict=True):
        for expected, found in zip(of_judge, of_ours, strict=True):
            np.testing.assert_array_equal(found, expected)
