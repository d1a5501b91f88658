"""Training, evaluation and prediction: the step of each mode, and the outer loop around it."""
