import tensorflow.compat.v1 as tf

from support.proofs import graph, proves


@proves("tf.contrib.tfprof.model_analyzer")
def analyses_models(module, tmp_path):
    path = tmp_path / "found"
    options = {**module.TRAINABLE_VARS_PARAMS_STAT_OPTIONS, "output": f"file:outfile={path}"}
    with graph() as new:
        tf.get_variable("weights", [3, 4], initializer=tf.zeros_initializer())
        found = module.print_model_analysis(new, tfprof_options=options)
        tf.matmul(tf.ones([2, 3]), tf.ones([3, 4]))
        costs = module.print_model_analysis(new, tfprof_options=module.FLOAT_OPS_OPTIONS)
    assert found.total_parameters == 12
    assert costs.total_float_ops == 2 * 2 * 3 * 4
    assert "weights (3x4, 12/12 params)" in path.read_text()
