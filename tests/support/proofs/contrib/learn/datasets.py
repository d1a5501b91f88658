"""Proofs of `tf.contrib.learn.datasets`."""

import numpy as np

from support.proofs import proves


@proves("tf.contrib.learn.datasets")
def reads_tables(module, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("1,2,a\n3,4,5\n")
    assert module.load_csv_with_header(str(path), np.int32, np.float32).target.tolist() == [5]
    assert module.read_data_sets(str(tmp_path), fake_data=True).train.num_examples == 10000
