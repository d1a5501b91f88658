"""Proofs of `tf.contrib.learn.ExportStrategy`."""

from support.proofs import answers

LEARN = "tf.contrib.learn"

answers(
    {
        f"{LEARN}.ExportStrategy": (lambda strategy: strategy("mine", list).name, "mine"),
        f"{LEARN}.make_export_strategy": (lambda make: make(list).name, "Servo"),
    }
)
