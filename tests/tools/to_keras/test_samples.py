import numpy as np
import pytest
import tensorflow as tf

from tpu_estimator_compat.tools.to_keras import samples

from .running import program_of


def test_ids_are_of_the_smallest_table_and_lengths_of_the_sequence():
    def build(ids, mask, length, x, image):
        table = tf.compat.v1.get_variable("table", [20, 2])
        small = tf.compat.v1.get_variable("small", [4, 2])
        wide = tf.cast(tf.reshape(ids, [-1]), tf.int64)
        rows = tf.gather(table, wide) + tf.gather(small, wide)
        kinds = tf.one_hot(tf.cast(x > 0, tf.int32), 2)
        parts = [rows, kinds, tf.cast(mask, tf.float32), tf.sequence_mask(length), image]
        return tf.add_n([tf.reduce_sum(tf.cast(part, tf.float32)) for part in parts])

    specs = {
        "ids": ("int32", (None, 7)),
        "mask": ("int32", (None, 7)),
        "length": ("int32", (None,)),
        "x": ("float32", (None, 200)),
        "image": ("float32", (None, None, None, 3)),
    }
    program, *_ = program_of(build, specs)
    found = samples.drawn(program)
    assert {name: array.shape for name, array in found.items()} == {
        "ids": (4, 7),
        "mask": (4, 7),
        "length": (4,),
        "x": (4, 200),
        "image": (4, 64, 64, 3),
    }
    assert set(np.unique(found["ids"])) == {0, 1, 2, 3}
    assert set(np.unique(found["mask"])) == {0, 1}
    assert found["length"].min() >= 1
    assert found["length"].max() > 1
    assert abs(found["x"].std() - 1) < 0.1
    assert all(found[name].dtype == specs[name][0] for name in specs)


@pytest.mark.parametrize(
    ("dtype", "shape", "said"),
    [("variant", [None], "No data can be drawn for the input 'a'"), ("float32", None, "rank")],
)
def test_what_cannot_be_drawn_is_named(dtype, shape, said):
    from tpu_estimator_compat.tools.to_keras import graph as g

    node = g.Node(g.INPUT, "a", attrs={"key": "a"})
    value = node.output(shape and tuple(shape), dtype)
    with pytest.raises(ValueError, match=said):
        samples.drawn(g.Program({"a": value}, {"b": value}))
