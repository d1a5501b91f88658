def test_names_that_python_dropped(run):
    done = run("""
        import collections, inspect, time
        from collections import Mapping, OrderedDict
        assert isinstance({}, Mapping) and collections.Mapping is Mapping
        assert inspect.getargspec(lambda a, b=1, *c: 0) == (["a", "b"], "c", None, (1,))
        assert time.clock() <= time.clock()
        """)
    assert done.returncode == 0, done.stderr


def test_modules_of_pythons_that_tensorflow_had_imported(run):
    done = run("""
        import tensorflow as tf
        import distutils
        assert distutils.version.LooseVersion("1.15.5") < distutils.version.LooseVersion("2.0.0")
        """)
    assert done.returncode == 0, done.stderr
