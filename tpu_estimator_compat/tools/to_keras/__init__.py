"""Writes a legacy model as Keras 3 code, with its weights.

The steps, each a module or a room: `sources` (a SavedModel or a script) gives TensorFlow graphs,
`reading` makes them a `graph.Program`, `simplify` shortens it, `layers` recognizes Keras' layers,
`training` adds the loss, the optimizer and the metrics, `classes` divides the program into classes,
`text` writes them, by the table `operations`, and `check` runs both models.
"""
