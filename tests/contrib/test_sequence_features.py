"""Served names: `tf.contrib.feature_column.sequence_input_layer`."""

from support.proofs.contrib import sequence_features as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
