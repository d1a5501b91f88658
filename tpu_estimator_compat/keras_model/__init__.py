"""The `keras.Model` behind an estimator: its modes, variables and metrics.

`ModelFnModel` owns the steps and the variables of a model (`engine/modes/model_modes.py`). Users
get one from `Estimator.keras_model()`, and callbacks among an estimator's hooks find one as
`self.model`. The callbacks that it brings itself stand here too. Estimators come in, nobody else.
Begin with `model.py`.
"""
