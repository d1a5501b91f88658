"""Served names: `tf.contrib.predictor`."""

from support.proofs.contrib import predictor as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
