from tpu_estimator_compat.old_names.legacy import table

ROWS = table.load().rows


def test_the_table_is_loaded_in_order_and_says_what_to_do():
    for row in ROWS.values():
        assert row.since in ("2.0", "2.3", "2.16"), row
        if row.advice:
            assert row.advice[0].isupper() or row.advice.startswith("`tf."), row
            assert row.advice.endswith("."), row
        if row.move_to:
            assert row.move_to.startswith("tf"), row
