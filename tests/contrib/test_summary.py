"""Served names: `tf.contrib.summary`."""

from support.proofs.contrib import summary as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
