from tpu_estimator_compat.tools.reports.markup import Html, element


def test_text_is_escaped_and_markup_is_not():
    inner = element("b", "1 < 2")
    assert element("p", inner, "&", title='"') == ('<p title="&quot;"><b>1 &lt; 2</b>&amp;</p>')
    assert isinstance(inner, Html)
