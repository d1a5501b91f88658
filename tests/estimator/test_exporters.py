import pytest
from support.legacy_models import make_estimator, train_input_fn

from tpu_estimator_compat import estimator as namespace

BestExporter = namespace.BestExporter


class Exports:
    """Stands for an estimator: its exports are empty directories named by the second."""

    def __init__(self, model_dir):
        self.model_dir = model_dir
        self.count = 0

    def export_saved_model(self, export_dir_base, receiver_fn, **arguments):
        self.count += 1
        path = export_dir_base / str(1_700_000_000 + self.count)
        path.mkdir(parents=True)
        return str(path)


def receiver_fn():
    return None


def call(exporter, exports, loss=1.0):
    path = exports.model_dir / "export" / exporter.name
    return exporter.export(exports, path, "model.ckpt-1", {"loss": loss, "global_step": 1}, False)


@pytest.fixture
def exports(tmp_path):
    return Exports(tmp_path)


def kept(exports, name):
    return sorted(path.name for path in (exports.model_dir / "export" / name).iterdir())


@pytest.mark.parametrize("kind", [namespace.LatestExporter, BestExporter])
def test_the_newest_exports_are_kept(exports, kind):
    exporter = kind("mine", receiver_fn, exports_to_keep=2)
    (exports.model_dir / "export" / "mine" / "notes").mkdir(parents=True)
    assert all(call(exporter, exports, loss) for loss in (4.0, 3.0, 2.0, 1.0))
    assert kept(exports, "mine") == ["1700000003", "1700000004", "notes"]


def test_none_keeps_all_exports(exports):
    exporter = namespace.LatestExporter("latest", receiver_fn, exports_to_keep=None)
    for _ in range(7):
        call(exporter, exports)
    assert len(kept(exports, "latest")) == 7


def test_best_knows_the_evaluations_before_a_restart(tmp_path):
    """As the original: the first is always exported, later ones only where better than all."""
    estimator = make_estimator(tmp_path)
    for steps in (1, 60):
        estimator.train(train_input_fn, max_steps=steps)
        results = estimator.evaluate(train_input_fn, steps=4)
    best = results["loss"]
    exports = Exports(tmp_path)
    exporter = BestExporter("best", receiver_fn)
    made = [bool(call(exporter, exports, loss)) for loss in (best + 1, best + 0.5, best + 2)]
    assert made == [True, True, False]


def test_a_base_exporter_has_no_name_and_says_what_is_missing():
    exporter = namespace.Exporter()
    assert exporter.name is None
    with pytest.raises(NotImplementedError, match="Exporter must define export"):
        exporter.export(None, "", "", {}, False)
