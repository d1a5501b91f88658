import configparser
import pathlib

from tpu_estimator_compat import environment

SETUP = pathlib.Path(__file__).parents[1] / "setup.cfg"


def test_a_line_for_pip_names_the_packages_of_an_extra_alone():
    """An extra of this package would bring tensorflow, beside tensorflow-tpu."""
    setup = configparser.ConfigParser()
    setup.read(SETUP)
    extras = setup["options.extras_require"]
    for extra, packages in environment.EXTRAS.items():
        lines = [line for line in extras[extra].split("\n") if line and not line.startswith("#")]
        assert lines == list(packages)
    assert environment.pip_line("notebook") == "pip install 'ipython>=8.12'"


def test_no_text_of_ours_asks_for_an_extra():
    folder = SETUP.parent
    texts = [*folder.glob("tpu_estimator_compat/**/*.py"), *folder.glob("migration_guide/**/*.md")]
    asking = "pip install 'tpu_estimator_compat["
    assert [path for path in (folder / "README.md", *texts) if asking in path.read_text()] == []


def test_a_backend_of_keras_that_is_not_installed(monkeypatch):
    error = ModuleNotFoundError("No module named 'torch'", name="torch")
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    assert "KERAS_BACKEND is 'torch'" in environment.explained(error)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert environment.explained(error) == ""
