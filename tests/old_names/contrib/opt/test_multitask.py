"""Served names: the optimizer of several tasks."""

from support.proofs.contrib.opt import multitask as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
