"""Served names: `tf.contrib.distributions`."""

from support.proofs.contrib import distributions as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
