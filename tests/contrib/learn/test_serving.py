"""Served names: inputs of exported models."""

from support.proofs.contrib.learn import serving as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
