"""Served names: `tf.contrib.data` and its deep modules."""

from support.proofs.contrib import data as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
