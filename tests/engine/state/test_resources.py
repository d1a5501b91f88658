import tensorflow.compat.v1 as tf


def test_tables_and_their_initializers(graph, session):
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["a"], [7]), default_value=-1
    )
    found = table.lookup(tf.constant(["a", "b"]))
    session.run(tf.tables_initializer())
    assert session.run(found).tolist() == [7, -1]
