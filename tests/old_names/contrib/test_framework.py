"""Served names: `tf.contrib.framework`."""

from support.proofs.contrib import framework as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
