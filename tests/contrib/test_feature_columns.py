"""Served names: the feature columns of `tf.contrib.layers`."""

from support.proofs.contrib import feature_columns as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
