"""Old against new: runs a training on two sides, and judges whether it is still the same."""
