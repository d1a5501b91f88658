"""TF1 checkpoints as files: finds, reads, diagnoses and writes them."""
