"""Downloads of `tf.contrib.learn.datasets`: a file is there as a whole, or it is not there."""

import gzip
import http.server
import os
import threading

import pytest
import tensorflow as tf

from tpu_estimator_compat.old_names.contrib.learn import datasets

WHOLE = gzip.compress(b"whole" * 100)
WRONG = {
    "empty": b"",
    "page": b"\n<!DOCTYPE html><html>Sign in to this network",
    "cut": WHOLE[:-9],
    "flipped": WHOLE[:20] + bytes([WHOLE[20] ^ 255]) + WHOLE[21:],
    "of_other_bytes": b"x" * 100,
}


@pytest.fixture
def url():
    """An address of a file of 100 bytes, one that breaks off after 10, and those of `WRONG`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            content = WRONG.get(self.path[1:])
            if content is None:
                self.send_header("Content-Length", "100")
            self.end_headers()
            if content is None:
                content = b"x" * (10 if "short" in self.path else 100)
            self.wfile.write(content)

        def log_message(self, *unused_arguments):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_file_is_downloaded(url, tmp_path):
    path = datasets.maybe_download("a", str(tmp_path), url)
    assert os.stat(path).st_size == 100
    assert os.listdir(tmp_path) == ["a"]


def test_a_download_that_breaks_off_leaves_nothing(url, tmp_path):
    with pytest.raises(OSError, match="retrieval incomplete"):
        datasets.maybe_download("a", str(tmp_path), url + "short")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("what", WRONG)
def test_what_is_not_the_file_leaves_nothing(url, tmp_path, what):
    with pytest.raises(OSError, match=r"is not a\.gz: "):
        datasets.maybe_download("a.gz", str(tmp_path), url + what)
    assert os.listdir(tmp_path) == []


def test_a_damaged_file_that_was_there_is_named(tmp_path):
    """It is not removed: it may be the user's own."""
    file = tmp_path / "train-images-idx3-ubyte.gz"
    for content in WRONG.values():
        file.write_bytes(content)
        with pytest.raises(OSError, match=f"{file} is not {file.name}: .* Remove it"):
            datasets.read_data_sets(str(tmp_path))
        assert file.read_bytes() == content


@pytest.mark.parametrize("step", ["copy", "rename"])
def test_a_disk_that_is_full_leaves_nothing(url, tmp_path, monkeypatch, step):
    def fill(source, target, overwrite=False):
        del source, overwrite
        if step == "copy":
            with open(target, "w") as file:
                file.write("half")
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    monkeypatch.setattr(tf.io.gfile, step, fill)
    with pytest.raises(tf.errors.ResourceExhaustedError):
        datasets.maybe_download("a", str(tmp_path), url)
    assert os.listdir(tmp_path) == []
