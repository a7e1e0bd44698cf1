"""Forged certificates of PAL with extreme figures: none is accepted; see `forgers.pal`."""

from tests.support.forgers import pal


def test_no_forged_certificate_is_accepted():
    tried, accepted, proven = pal.run(600, seed=1)
    assert accepted == []
    assert tried >= 600
    assert proven > 10
