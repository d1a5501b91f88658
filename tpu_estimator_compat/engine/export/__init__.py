"""Export: SavedModels as the original wrote them, a plain TF1 graph with signatures for servers."""
