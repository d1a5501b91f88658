import tensorflow.compat.v1 as tf

from support.proofs import evaluate, proves


@proves("tf.contrib.lookup")
def looks_up(lookup, tmp_path):
    (tmp_path / "words").write_text("a\nb\n")

    def build():
        from_file = lookup.index_table_from_file(str(tmp_path / "words"))
        initializer = lookup.KeyValueTensorInitializer(["x"], tf.constant([5], tf.int64))
        return (
            from_file.lookup(tf.constant(["b", "z"])),
            lookup.index_table_from_tensor(["a", "b"]).lookup(tf.constant(["b"])),
            lookup.index_to_string(tf.constant([1], tf.int64), ["a", "b"]),
            lookup.string_to_index(tf.constant(["a"]), ["a", "b"]),
            lookup.HashTable(initializer, -1).lookup(tf.constant(["x", "y"])),
        )

    results = [array.tolist() for array in evaluate(build)]
    assert results == [[1, -1], [1], [b"b"], [0], [5, -1]]
