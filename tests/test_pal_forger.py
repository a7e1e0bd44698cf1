"""Forged certificates of PAL with extreme figures: none is accepted; see `pal_forger`."""

import pal_forger


def test_no_forged_certificate_is_accepted():
    tried, accepted, proven = pal_forger.run(600, seed=1)
    assert accepted == []
    assert tried >= 600
    assert proven > 10
