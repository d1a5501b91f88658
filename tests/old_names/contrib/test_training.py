"""Served names: `tf.contrib.training`."""

from support.proofs.contrib import training as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
