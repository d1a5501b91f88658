"""Served names: `tf.contrib.gan`."""

from support.proofs.contrib import gan as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
