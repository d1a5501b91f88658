"""Served names: `tf.contrib.estimator.replicate_model_fn`."""

from support.proofs.contrib import towers as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
