"""Served names: `tf.contrib.metrics`."""

from support.proofs.contrib import metrics as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
