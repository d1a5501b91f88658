"""Served names: what `tf.contrib.estimator` alone had."""

from support.proofs.contrib import estimator as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
