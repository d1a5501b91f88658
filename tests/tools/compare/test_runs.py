import pytest

from tpu_estimator_compat.tools.compare import runs


def test_flags_that_name_folders_are_replaced(tmp_path):
    given = ("--model_dir=/m", "--output_dir", "/m", "-job_dir=/j", "--data_dir=/d", "train")
    assert runs.Script("x.py", given).arguments_in(tmp_path) == [
        f"--model_dir={tmp_path}/model_dir-0",
        f"--output_dir={tmp_path}/model_dir-0",
        f"-job_dir={tmp_path}/model_dir-1",
        "--data_dir=/d",
        "train",
    ]


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("tf", runs.Setting("tensorflow")),
        ("jax", runs.Setting("jax")),
        ("jit", runs.Setting(jit=True)),
        ("replicas=4", runs.Setting(replicas=4)),
    ],
)
def test_settings(text, setting):
    assert runs.Setting.parse(text) == setting
