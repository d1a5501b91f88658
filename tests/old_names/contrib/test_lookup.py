"""Served names: `tf.contrib.lookup`."""

from support.proofs.contrib import lookup as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
