"""The `keras.Model` behind an estimator: its modes, variables and metrics.

`ModelFnModel` owns a `ModelModes` (`engine/modes/model_modes.py`): a model's steps and variables.
Users get one from `Estimator.keras_model()`; a callback among an estimator's hooks finds it as
`self.model`. Begin with `model.py`.
"""
