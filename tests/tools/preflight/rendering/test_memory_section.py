import dataclasses

from tpu_estimator_compat.tools.preflight.rendering import bars
from tpu_estimator_compat.tools.preflight.report import Layer
from tpu_estimator_compat.tools.reports import numbers

from ..reports import FAILS, FITS, UNKNOWN, not_captured, over_the_line
from ..showing import page


def test_without_a_compiler_only_variables_and_input_are_drawn_and_that_is_said():
    assert [segment.name for segment in bars.by_kind(UNKNOWN)] == ["variables", "input"]
    assert "variables and one replica's input only" in page(UNKNOWN).text
    assert "variables and one replica's input only" not in page(FITS).text
    assert not page(not_captured()).of_class("bar")


def test_the_page_says_in_words_how_the_memory_compares():
    assert "2.97 GiB of 15.75 GiB, 19%" in page(FITS).text
    assert "12.78 GiB are left" in page(FITS).text
    # Variables alone can be too much.
    assert "more than 7.48 GiB" in page(FAILS).text
    assert "The two alone are 737.3 MiB more than the device has" in page(FAILS).text
    assert "2.55 GiB more than the device has" in page(over_the_line()).text
    assert "memory not known (of 95.73 GiB)" in page(UNKNOWN).text
    assert "the step could not be captured" in page(not_captured()).text


def test_very_many_layers_are_summed_up():
    layers = [Layer(f"layer_{i}", 4 * i + 4, 0) for i in range(100)]
    seen = page(dataclasses.replace(FITS, layers=layers))
    assert "100 layers" in seen.text
    assert "70 smaller layers" in seen.text
    assert "layer_99" in seen.text
    assert numbers.size(sum(layer.variables for layer in layers[:70])) in seen.text
    assert len(seen.of_class("layer")) == 31
