"""Proofs of `tf.contrib.learn.ExportStrategy`."""

from support.proofs import below, proves

CONTRIB = "tf.contrib"
LEARN = f"{CONTRIB}.learn"


@proves(
    *below(LEARN, "ExportStrategy make_export_strategy"),
    *below(f"{LEARN}.python.learn", "export_strategy utils.saved_model_export_utils"),
    f"{LEARN}.utils.saved_model_export_utils",
)
def exports(module):
    strategy = getattr(module, "make_export_strategy", module)
    made = strategy("mine", list) if strategy.__name__ == "ExportStrategy" else strategy(list)
    assert made.name in ("mine", "Servo")
