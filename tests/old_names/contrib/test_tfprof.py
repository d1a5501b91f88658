"""Served names: `tf.contrib.tfprof`."""

from support.proofs.contrib import tfprof as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
