"""Served names: the wide and deep models."""

from support.proofs.canned import dnn_linear_combined as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
