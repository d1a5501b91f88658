"""Served names: the optimizer that keeps averages."""

from support.proofs.contrib.opt import moving_average as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
