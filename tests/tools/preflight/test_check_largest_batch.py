import pytest

from tpu_estimator_compat.tools.preflight.report import Verdict

from .asking import input_fn

pytestmark = pytest.mark.slow


def test_the_largest_batch_fits_and_a_little_more_does_not(wide):
    found = wide(2**10, largest_batch=True)
    searched = found.largest_batch
    # 15.75 GiB hold fewer than 4032 activations of 4 MiB.
    assert 2**11 < searched.fits < searched.fails <= 2**12
    assert searched.fails - searched.fits <= searched.fits / 16
    assert wide(searched.fits).verdict is Verdict.FITS
    assert wide(searched.fails).verdict is Verdict.FAILS


def test_a_batch_that_input_fn_ignores_is_not_searched_for(wide):
    found = wide(256, lambda params: input_fn({"batch_size": 256}), largest_batch=True)
    assert found.largest_batch.tried == (256, 512)
    assert found.largest_batch.fails is None
    assert any("does not batch by params['batch_size']" in note for note in found.notes)
