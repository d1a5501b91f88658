"""From a replica's share of a step to StableHLO, which any XLA compiler reads."""
