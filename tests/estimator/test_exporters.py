import pytest
from support.legacy_models import make_estimator, train_input_fn

from tpu_estimator_compat import estimator as namespace

BestExporter = namespace.BestExporter


class Exports:
    """Stands for an estimator: its exports are empty directories named by the second."""

    def __init__(self, model_dir):
        self.model_dir = model_dir
        self.asked = []

    def export_saved_model(self, export_dir_base, receiver_fn, **arguments):
        self.asked.append((export_dir_base, receiver_fn, arguments))
        path = export_dir_base / str(1_700_000_000 + len(self.asked))
        path.mkdir(parents=True)
        return str(path)


def receiver_fn():
    return None


def call(exporter, exports, loss=1.0, final=False, checkpoint="model.ckpt-1"):
    path = exports.model_dir / "export" / exporter.name
    return exporter.export(
        estimator=exports,
        export_path=path,
        checkpoint_path=checkpoint,
        eval_result={"loss": loss, "global_step": 1},
        is_the_final_export=final,
    )


@pytest.fixture
def exports(tmp_path):
    return Exports(tmp_path)


def kept(exports, name):
    return sorted(path.name for path in (exports.model_dir / "export" / name).iterdir())


def test_arguments_reach_export_saved_model(exports):
    exporter = namespace.LatestExporter("latest", receiver_fn, {"a.txt": "/b.txt"}, as_text=True)
    assert call(exporter, exports).endswith("/export/latest/1700000001")
    [(base, function, arguments)] = exports.asked
    assert base == exports.model_dir / "export" / "latest"
    assert function is receiver_fn
    assert arguments == {
        "assets_extra": {"a.txt": "/b.txt"},
        "as_text": True,
        "checkpoint_path": "model.ckpt-1",
    }


def test_latest_exports_always_and_keeps_the_newest(exports):
    exporter = namespace.LatestExporter("latest", receiver_fn, exports_to_keep=2)
    other = exports.model_dir / "export" / "latest" / "notes"
    other.mkdir(parents=True)
    assert all(call(exporter, exports) for _ in range(4))
    assert kept(exports, "latest") == ["1700000003", "1700000004", "notes"]


def test_none_keeps_all_exports(exports):
    exporter = namespace.LatestExporter("latest", receiver_fn, exports_to_keep=None)
    for _ in range(7):
        call(exporter, exports)
    assert len(kept(exports, "latest")) == 7


def test_best_exports_the_first_and_what_is_better(exports):
    exporter = BestExporter(serving_input_receiver_fn=receiver_fn, exports_to_keep=2)
    made = [bool(call(exporter, exports, loss)) for loss in (3.0, 4.0, 2.0, 2.0, 1.0)]
    assert made == [True, False, True, False, True]
    assert kept(exports, "best_exporter") == ["1700000002", "1700000003"]


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


@pytest.mark.parametrize("results", [{}, {"accuracy": 1.0}])
def test_best_needs_a_loss_to_compare(exports, results):
    exporter = BestExporter("best", receiver_fn)
    call(exporter, exports)
    with pytest.raises(ValueError, match="no loss is found in it"):
        exporter.export(exports, exports.model_dir / "export", "c", results, False)


def test_a_base_exporter_has_no_name_and_says_what_is_missing():
    exporter = namespace.Exporter()
    assert exporter.name is None
    with pytest.raises(NotImplementedError, match="Exporter must define export"):
        exporter.export(None, "", "", {}, False)
