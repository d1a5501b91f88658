"""Takes one part of the packed package; unpacks it once all parts are there.

python3 unpack.py [FOLDER]    # FOLDER: /tmp/packed
"""

import pathlib
import shutil
import sys
import tarfile

HERE = pathlib.Path(__file__).resolve().parent


def main(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    [part] = HERE.glob("*.of.*")
    shutil.copy(part, folder)
    count = int(part.name.split(".")[-1])
    paths = [folder / f"{number}.of.{count}" for number in range(count)]
    if missing := [path.name for path in paths if not path.exists()]:
        print(f"Still to come: {', '.join(missing)}.")
        return
    whole = folder / "whole"
    with whole.open("wb") as file:
        for path in paths:
            with path.open("rb") as opened:
                shutil.copyfileobj(opened, file)
    with tarfile.open(whole, "r:xz") as tar:
        tar.extractall(folder, filter="data")
    for path in (whole, *paths):
        path.unlink()
    print(f"Unpacked. PYTHONPATH={folder / 'site'}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "/tmp/packed"))
