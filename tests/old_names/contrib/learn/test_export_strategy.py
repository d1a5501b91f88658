"""Served names: `tf.contrib.learn.ExportStrategy`."""

from support.proofs.contrib.learn import export_strategy as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
