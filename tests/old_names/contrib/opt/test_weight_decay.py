"""Served names: optimizers with decoupled weight decay."""

from support.proofs.contrib.opt import weight_decay as proofs
from support.proofs.proving import each_proof_of

test_served_names = each_proof_of(proofs)
