"""Training, evaluation and prediction: what a step of each is, and the outer loop around it."""
