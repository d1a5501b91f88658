"""An exporter that exports nothing."""

from tpu_estimator_compat import estimator as namespace


class Exporter(namespace.Exporter):
    def __init__(self, name="mine"):
        self._name = name
        self.asked = []

    @property
    def name(self):
        return self._name

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        self.asked.append((export_path, checkpoint_path, eval_result, is_the_final_export))
        return f"export {len(self.asked)}"
