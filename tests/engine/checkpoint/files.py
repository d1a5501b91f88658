"""The files of a checkpoint, and damage that a disk or a killed process does to them."""

import os

KINDS = ("cut", "flipped", "no data", "no index")


def damage(model_dir, step, kind):
    data = model_dir / f"model.ckpt-{step}.data-00000-of-00001"
    if kind == "cut":
        data.write_bytes(data.read_bytes()[:20])
    elif kind == "flipped":
        data.write_bytes(bytes(b ^ 255 for b in data.read_bytes()))
    elif kind == "no data":
        data.unlink()
    else:
        (model_dir / f"model.ckpt-{step}.index").unlink()


def checkpoint_steps(model_dir) -> list[int]:
    names = [n for n in os.listdir(model_dir) if n.endswith(".index")]
    return sorted(int(n.split("-")[1].split(".")[0]) for n in names)
