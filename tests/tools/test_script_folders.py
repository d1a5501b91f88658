from tpu_estimator_compat.tools import script_folders


def test_words_of_flags_that_name_folders_are_replaced():
    asked: list[str] = []

    def own(folder: str) -> str:
        asked.append(folder)
        return f"/own/{folder}"

    words = ["--model_dir=a", "--job-dir", "b", "model_dir=c", "--steps=3", "--output_dir"]
    found = script_folders.replaced(words, script_folders.FLAGS, own)
    assert found[:4] == ["--model_dir=/own/a", "--job-dir=/own/b", "model_dir=c", "--steps=3"]
    assert asked[:2] == ["a", "b"]
