"""Served names: the functions that make logits."""

from support.proofs.canned import logit_fns as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
