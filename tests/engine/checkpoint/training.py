import os


def checkpoint_steps(model_dir) -> list[int]:
    names = [n for n in os.listdir(model_dir) if n.endswith(".index")]
    return sorted(int(n.split("-")[1].split(".")[0]) for n in names)
