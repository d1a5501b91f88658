"""Served names: `tf.contrib.layers` and its deep modules."""

from support.proofs.contrib import layers as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
