"""Served names: variants of Adam."""

from support.proofs.contrib.opt import adam_variants as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
