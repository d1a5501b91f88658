"""Proofs of `tf.contrib.training.HParams`."""

from support.proofs import proves

TRAINING = "tf.contrib.training"


@proves(f"{TRAINING}.python.training.hparam", TRAINING)
def has_hyperparameters(module):
    hparams = module.HParams(rate=0.1, units=[1, 2], name="a", on=True, nothing=None)
    assert hparams.parse("rate=2,units=[3,4,5],name=b,on=false") is hparams
    assert hparams.values() == {
        "rate": 2.0,
        "units": [3, 4, 5],
        "name": "b",
        "on": False,
        "nothing": None,
    }
    assert module.HParams(x=1).to_json() == '{"x": 1}'
    assert module.HParams(x=1).parse_json('{"x": 2}').x == 2
    assert hparams.override_from_dict({"rate": 3}).rate == 3.0
    hparams.add_hparam("more", 5)
    assert "more" in hparams
    assert hparams.get("more", 0) == 5
    assert hparams.get("less", 0) == 0
    hparams.del_hparam("more")
    assert "more" not in hparams
    assert module.parse_values("a[1]=3,b=x", {"a": int}, ignore_unknown=True) == {"a": {1: 3}}
