"""Graphs for TPU, inspected op by op: they can be written without a TPU, not run."""

import keras
import pytest
import tensorflow as tf

import tpu_estimator_compat as tpu

from . import describe_saved_model as describe

TPU_TAGS = ("serve", "tpu")


@pytest.fixture
def written(trained, cases, tmp_path):
    """`written(name)`: meta graphs by tags."""

    def of(name, **arguments):
        path = cases.CASES[name].export(trained(name, **arguments), str(tmp_path / name))
        return describe.graphs(path.decode())

    return of


def by_type(nodes):
    found = {}
    for node in nodes:
        found.setdefault(node.op, []).append(node)
    return found


def in_cluster(function):
    """Nodes of a function that are compiled for the TPU, and those left outside."""
    inside = [n for n in function.node_def if "_tpu_replicate" in n.attr]
    outside = [n for n in inside if "_xla_outside_compilation" in n.attr]
    return [n for n in inside if "_xla_outside_compilation" not in n.attr], outside


def test_version_1_puts_the_model_behind_a_partitioned_call(written):
    graphs = written("tpu_1")
    assert set(graphs) == {("serve",), TPU_TAGS}
    graph = graphs[TPU_TAGS]
    ops = by_type(graph.graph_def.node)
    [call] = ops["TPUPartitionedCall"]
    [ordinal] = ops["TPUOrdinalSelector"]
    [fed] = ops["Placeholder"]
    inputs = list(call.input)
    assert inputs[-1] == ordinal.name
    assert fed.name in inputs
    assert {"tower/hidden", "tower/output"} < set(inputs)
    assert "MatMul" not in ops  # All of the model is in the function.
    [function] = graph.graph_def.library.function
    assert call.attr["f"].func.name == function.signature.name


def test_version_1_compiles_everything_but_what_is_left_outside(written):
    [function] = written("tpu_1")[TPU_TAGS].graph_def.library.function
    inside, outside = in_cluster(function)
    kinds = by_type(inside)
    assert len(kinds["MatMul"]) == 2
    assert {"ReadVariableOp", "Relu", "Softmax", "TPUReplicateMetadata"} <= set(kinds)
    assert {"AsString", "ArgMax"} <= set(by_type(outside))
    assert not {"AsString", "ArgMax"} & set(kinds)
    others = [n.op for n in function.node_def if "_tpu_replicate" not in n.attr]
    bookkeeping = {"TPUReplicatedInput", "TPUReplicatedOutput", "TPUCompilationResult"}
    assert set(others) <= {*bookkeeping, "Identity", "NoOp"}
    [metadata] = kinds["TPUReplicateMetadata"]
    assert metadata.attr["num_replicas"].i == 1


def test_signatures_equal_the_cpu_graphs_with_the_calls_outputs(written):
    graphs = written("tpu_1")
    cpu, on_tpu = (describe.signatures(graphs[tags]) for tags in (("serve",), TPU_TAGS))
    assert cpu.keys() == on_tpu.keys() == {"serving_default", "names"}
    for key, signature in on_tpu.items():
        assert signature["inputs"] == cpu[key]["inputs"]
        assert signature["method"] == cpu[key]["method"]
        for output, (name, dtype, _) in signature["outputs"].items():
            assert name.startswith("TPUPartitionedCall:")
            assert dtype == cpu[key]["outputs"][output][1]


def test_version_2_leaves_it_to_the_model_fn(written):
    graphs = written("tpu_2")
    assert "TPUPartitionedCall" not in by_type(graphs[("serve",)].graph_def.node)
    graph = graphs[TPU_TAGS]
    ops = by_type(graph.graph_def.node)
    [batch] = ops["BatchFunction"]
    sizes = {k: batch.attr[k].i for k in ("num_batch_threads", "max_batch_size")}
    assert sizes == {"num_batch_threads": 1, "max_batch_size": 8}
    assert batch.attr["batch_timeout_micros"].i == 1000
    assert list(batch.attr["allowed_batch_sizes"].list.i) == [4, 8]
    assert "ArgMax" in ops  # What the model_fn does after it stays on the host.
    functions = {f.signature.name: f for f in graph.graph_def.library.function}
    batched = functions.pop(batch.attr["f"].func.name)
    [call] = by_type(batched.node_def)["TPUPartitionedCall"]
    [computation] = functions.values()
    assert call.attr["f"].func.name == computation.signature.name
    inside, outside = in_cluster(computation)
    assert len(by_type(inside)["MatMul"]) == 2
    assert not outside


def test_version_2_with_a_whole_model_fn(written):
    graph = written("tpu_2_nested")[TPU_TAGS]
    [batch] = by_type(graph.graph_def.node)["BatchFunction"]
    assert batch.attr["num_batch_threads"].i == 2
    assert batch.attr["max_enqueued_batches"].i in (0, 100)  # 0 where the default is left out
    assert set(describe.signatures(graph)["serving_default"]["outputs"]) == {
        "class",
        "probabilities",
    }


def test_version_2_without_batching(written):
    ops = by_type(written("tpu_2_unbatched")[TPU_TAGS].graph_def.node)
    assert "TPUPartitionedCall" in ops
    assert "BatchFunction" not in ops


def test_what_model_fn_is_told(trained, cases, tmp_path):
    told = []

    def model_fn(features, labels, mode, params):
        told.append((mode, params["use_tpu"], "batch_size" in params, labels))
        return cases.plain_model_fn(features, labels, mode, params)

    model_dir = trained("plain").model_dir
    for version in (1, 2):
        case = cases.Case(model_fn, None, None, None)
        arguments = {"export_to_tpu": True, "export_saved_model_api_version": version}
        est = cases.make_estimator(case, model_dir, use_tpu=True, **arguments)
        est.export_saved_model(str(tmp_path), cases.raw_receiver)
    cpu, on_tpu = ("infer", False, False, None), ("infer", True, False, None)
    assert told == [cpu, cpu, cpu, on_tpu]  # With version 1 the original says False twice, too.


def test_a_graph_for_tpu_alone(written):
    """Variables are written from it, though its ops cannot run here."""
    graphs = written("tpu_only")
    assert set(graphs) == {TPU_TAGS}
    assert "TPUPartitionedCall" in by_type(graphs[TPU_TAGS].graph_def.node)


def test_a_scaffolds_saver_is_outside_of_the_computation(written):
    graph = written("tpu_averaged")[TPU_TAGS]
    nodes = describe.nodes(graph)
    assert graph.saver_def.restore_op_name in nodes
    names = nodes["save/RestoreV2/tensor_names"]["attributes"]["value"]
    assert "tower/hidden/ExponentialMovingAverage" in names
    [function] = graph.graph_def.library.function
    assert "RestoreV2" not in by_type(function.node_def)


def test_other_modes_have_no_graph_for_tpu(trained, cases, tmp_path, caplog):
    est = trained("plain", export_to_tpu=True)
    receivers = {"eval": cases.unwrapped_receiver, "infer": cases.raw_receiver}
    path = est.experimental_export_all_saved_models(str(tmp_path / "a"), receivers)
    assert set(describe.graphs(path.decode())) == {("eval",), ("serve",), TPU_TAGS}
    alone = trained("plain", export_to_tpu=True, export_to_cpu=False)
    with pytest.raises(ValueError, match="only mode infer has a graph for TPU"):
        alone.export_saved_model(
            str(tmp_path / "b"), cases.unwrapped_receiver, experimental_mode="eval"
        )
    assert not (tmp_path / "b").exists()
    path = alone.experimental_export_all_saved_models(str(tmp_path / "c"), receivers)
    assert set(describe.graphs(path.decode())) == {TPU_TAGS}


def test_an_output_that_cannot_be_taken_apart(trained, cases, tmp_path):
    est = trained("heads", export_to_tpu=True)
    with pytest.raises(ValueError, match="`export_output` must be have type `Classification"):
        cases.CASES["heads"].export(est, str(tmp_path))


def test_graphs_of_a_plain_estimator(trained, cases, tmp_path):
    def model_fn(features, labels, mode, params):
        return cases.plain_model_fn(features, labels, mode, params).as_estimator_spec()

    case = cases.Case(model_fn, None, None, None, use_tpu_estimator=False)
    est = cases.make_estimator(case, trained("plain").model_dir)
    path = tpu.export_estimator_savedmodel(est, str(tmp_path), cases.raw_receiver)
    assert set(describe.graphs(path.decode())) == {("serve",), TPU_TAGS}


def test_a_graph_for_tpu_does_not_hinder_the_other_one(trained, cases, tmp_path):
    path = cases.export_plain(trained("tpu_1"), str(tmp_path)).decode()
    loaded = tf.saved_model.load(path, tags=["serve"])
    found = loaded.signatures["serving_default"](x=tf.constant(cases.points(2)))
    assert found["logits"].shape == (2, 3)
    with pytest.raises(ValueError, match="requires a `tags=` argument"):
        keras.layers.TFSMLayer(path, call_endpoint="serving_default")
