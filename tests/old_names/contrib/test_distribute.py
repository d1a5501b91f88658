"""Served names: `tf.contrib.distribute`."""

from support.proofs.contrib import distribute as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
