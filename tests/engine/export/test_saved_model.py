import os

import numpy as np
import pytest
import tensorflow as tf

from . import describe_saved_model, serving_probe


def test_assets_and_extra_assets_are_copied(trained, cases, tmp_path):
    est = trained("tables")
    path = cases.export_tables(est, str(tmp_path)).decode()
    files = describe_saved_model.files(path)
    assert {"assets/words.txt", "assets.extra/notes/words.txt"} < set(files)
    vocabulary = est.params["vocabulary"]
    os.rename(vocabulary, vocabulary + ".away")  # The SavedModel has its own.
    try:
        answers = serving_probe.answer_v1(path, cases.tables_requests())["serving_default"]
    finally:
        os.rename(vocabulary + ".away", vocabulary)
    assert answers["ids"].tolist() == [0, 3, len(cases.WORDS)]
    assert set(answers["name"]) <= {b"red", b"green", b"blue"}


def test_old_name_warns_and_keeps_default_attributes(trained, cases, tmp_path):
    new = trained("plain").export_saved_model(str(tmp_path / "new"), cases.raw_receiver)
    old = trained("plain").export_savedmodel(str(tmp_path / "old"), cases.raw_receiver)
    graphs = [describe_saved_model.graphs(p.decode())[("serve",)] for p in (new, old)]
    assert [g.meta_info_def.stripped_default_attrs for g in graphs] == [True, False]
    strip = [describe_saved_model.nodes(g)["tower/logits"]["attributes"] for g in graphs]
    assert "transpose_a" not in strip[0]
    assert "transpose_a" in strip[1]
    doc = type(trained("plain")).export_savedmodel.__doc__
    assert "use `export_saved_model` instead" in doc


def test_a_warm_start_is_exported_where_nothing_was_trained(trained, cases, tmp_path):
    source = trained("plain")
    for place in (source.model_dir, source.latest_checkpoint()):
        est = cases.make_estimator(
            cases.CASES["plain"], str(tmp_path / "empty"), warm_start_from=place
        )
        path = est.export_saved_model(str(tmp_path / "out"), cases.raw_receiver).decode()
        np.testing.assert_array_equal(
            describe_saved_model.variables(path)["tower/hidden"],
            source.get_variable_value("tower/hidden"),
        )


def test_variables_that_the_checkpoint_lacks(trained, cases, tmp_path):
    def more(features, labels, mode, params):
        tf.compat.v1.get_variable("more", [2])
        return cases.plain_model_fn(features, labels, mode, params)

    def wider(features, labels, mode, params):
        tf.compat.v1.get_variable("tower/output", [2])
        return cases.plain_model_fn(features, labels, mode, params)

    model_dir = trained("plain").model_dir
    est = cases.make_estimator(cases.Case(more, None, None, None), model_dir)
    with pytest.raises(ValueError, match="Could not load all requested variables") as caught:
        est.export_saved_model(str(tmp_path), cases.raw_receiver)
    assert "Variable 'more' is not in the checkpoint" in str(caught.value)
    with pytest.raises(ValueError, match="The passed save_path is not a valid checkpoint: nope"):
        trained("plain").export_saved_model(
            str(tmp_path), cases.raw_receiver, checkpoint_path="nope"
        )
    assert os.listdir(tmp_path) == []
