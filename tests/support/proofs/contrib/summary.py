import tensorflow.compat.v1 as tf

from support.proofs import graph, proves


@proves("tf.contrib.summary")
def summarizes(summary, tmp_path):
    with graph(), tf.Session() as session:
        step = tf.train.create_global_step()
        writer = summary.create_file_writer(str(tmp_path), flush_millis=1000)
        with writer.as_default(), summary.record_summaries_every_n_global_steps(2):
            summary.scalar("loss", 2.0)
            summary.scalar("named", 3.0, family="family", step=step)
            summary.histogram("histogram", [1.0, 2.0])
            summary.image("image", tf.zeros([1, 2, 2, 3]))
            summary.audio("audio", tf.zeros([1, 4, 1]), 4.0, 1)
            summary.generic("generic", tf.constant([1, 2]), "")
            written = tf.group(summary.all_summary_ops())
        session.run(tf.global_variables_initializer())
        with writer.as_default():
            summary.initialize(graph=tf.get_default_graph(), session=session)
        for _ in range(3):
            session.run(written)
            session.run(step.assign_add(1))
        session.run(summary.flush(writer._resource))
        session.run(writer.close())
    [path] = tmp_path.glob("*tfevents*")
    tags = [(v.tag, e.step) for e in tf.train.summary_iterator(str(path)) for v in e.summary.value]
    assert {tag for tag, _ in tags} >= {"loss", "family/family/named", "histogram", "generic"}, tags
    assert {step for _, step in tags} == {0, 2}, tags
