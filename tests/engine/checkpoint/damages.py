"""Damage that a disk or a killed process does to the files of a checkpoint."""

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
