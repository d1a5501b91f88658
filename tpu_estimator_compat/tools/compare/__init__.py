"""Old against new: runs a training twice, and says whether it is still the same."""
