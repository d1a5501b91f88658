"""The `keras.Model` behind an estimator: its modes, variables and metrics.

`ModelFnModel` owns the steps and the variables of a model (`engine/modes/model_modes.py`). Users
get one from `Estimator.keras_model()`; a callback among an estimator's hooks finds it as
`self.model`. Only `estimator/` imports this door. Begin with `model.py`.
"""
