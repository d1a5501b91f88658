"""From the device part of a step to StableHLO, which any XLA compiler reads."""
