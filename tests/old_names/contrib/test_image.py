"""Served names: `tf.contrib.image`."""

from support.proofs.contrib import image as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
