"""Served names: heads: what `tf.estimator`, `tf.contrib.estimator` and their deep modules had."""

from support.proofs.canned import heads as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
