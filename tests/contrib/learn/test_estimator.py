"""Served names: `tf.contrib.learn.Estimator`, and its bases and wrappers."""

from support.proofs.contrib.learn import estimator as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
