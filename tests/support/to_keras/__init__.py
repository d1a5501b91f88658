"""Trains legacy programs, leads them out to Keras, and compares both.

    python -m support.to_keras.harness FOLDER mlp rnn:cell=gru

`run.py` is the script of the programs' authors, `prepare.py` trains and exports, `own.py` runs the
written files where there is nothing but Keras, and `harness` calls all of them.
"""
