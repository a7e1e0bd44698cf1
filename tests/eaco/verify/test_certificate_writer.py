"""What the exact methods write down by their own figures, before `solve` has it verified."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.eaco.exact import large_scale, solver
from optsched.eaco.settings import SETTINGS
from optsched.eaco.verify import certificate as proof
from optsched.search import Infeasible, Search
from tests.support.strategies.common import law
from tests.support.strategies.eaco import eaco_instances

METHODS = {
    "exact": solver.exact,
    "root": solver.certify,
    "columns": large_scale.columns,
}


@pytest.mark.parametrize("name", METHODS)
@law(200, is_costly=True)
@given(eaco_instances(max_jobs=5, max_nodes=3), st.sampled_from([0.0, 1e-6, 0.05]))
def test_the_verifier_accepts_every_certificate_as_it_is_written(name, instance, gap):
    search = Search(instance, gap=gap)
    try:
        certificate = METHODS[name](instance, search)
    except Infeasible as error:
        certificate = error.certificate
    assert proof.prove(instance, certificate) == []


@law(100)
@given(eaco_instances(max_jobs=5, max_nodes=3))
def test_a_tree_that_is_cut_short_proves_what_it_states(instance):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(vars(SETTINGS), "most_nodes", 2)
        search = Search(instance, gap=0.0)
        try:
            certificate = solver.exact(instance, search)
        except Infeasible as error:
            certificate = error.certificate
    assert proof.prove(instance, certificate) == []
