"""Lines of waiting jobs are those of the jobs put in order, whatever is passed over."""

from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.policies.sharing.kept.groups import Member
from optsched.rollout.policies.sharing.kept.waiting_by_kind import WaitingByKind
from tests.support.strategies.common import law

KINDS = "abc"


@st.composite
def lines(draw):
    """Draw jobs, and their ranks at present by kind; None: each has one of its own."""
    kinds = draw(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 3)), max_size=12))
    some = st.sampled_from([0.0, 1.0, 2.0])
    has_own = draw(st.booleans())
    of_type = {kind: draw(some) for kind in KINDS}
    at_present = {(kind, gang): draw(some) for kind in KINDS for gang in (1, 2, 3)}
    members = [
        Member(draw(some) if has_own else of_type[kind], job, kind, gang, (kind,))
        for job, (kind, gang) in enumerate(kinds)
    ]
    return members, None if has_own else lambda each: at_present[each.type, each.gang]


def ordered(members, rank):
    return sorted(members, key=lambda each: (each.rank if rank is None else rank(each), each.job))


@law(300)
@given(st.data(), lines())
def test_parts_of_a_line_are_those_of_the_jobs_in_order(data, line):
    members, rank = line
    jobs = WaitingByKind(data.draw(st.permutations(members)))
    row = ordered(members, rank)
    count = data.draw(st.integers(0, len(row)))
    assert list(jobs.line(rank)) == row
    assert list(jobs.first(count, rank).line(rank)) == row[:count]
    sizes = data.draw(st.sets(st.integers(1, 3)))
    inside = [member for member in row if member.gang in sizes]
    assert list(jobs.line(rank).fitting(sizes.__contains__)) == inside
    first = next((n for n, member in enumerate(row) if member.gang not in sizes), len(row))
    line = jobs.line(rank).held_up(sizes.__contains__)
    assert list(line) == row[:first]
    came = data.draw(st.lists(st.sampled_from(row[:first]), unique=True)) if first else []
    rest, everyone = line.apart(came)
    assert list(rest) == [member for member in row[:first] if member not in came]
    assert list(everyone) == row[:first]
    if first:
        member = data.draw(st.sampled_from(row[:first]))
        behind = row[row.index(member) : first]
        assert list(line.since(member)) == behind
        utilisation = data.draw(st.tuples(*[st.sampled_from([0.1, 0.2])] * 3))

        def by_type(each):
            return utilisation[KINDS.index(each.type)]

        assert list(line.since(member).by(by_type)) == sorted(behind, key=by_type)
    for gone in came:
        jobs.remove(gone)
    assert list(jobs.line(rank)) == [member for member in row if member not in came]


@law(300)
@given(st.data(), lines())
def test_jobs_that_are_passed_over_are_those_a_look_at_each_would_pass_over(data, line):
    """A rule marks kinds for which there is nothing, and now and then something changes."""
    members, rank = line
    acts = data.draw(st.lists(st.sampled_from(["vain", "changed", ""]), min_size=12, max_size=12))

    def looked_at(jobs_of):
        vain, version, seen = {}, [0], []
        for member in jobs_of(
            lambda m: vain.get((m.type, m.gang)) == version[0], lambda: version[0]
        ):
            seen.append(member)
            act = acts[member.job]
            if act == "vain":
                vain[member.type, member.gang] = version[0]
            version[0] += act == "changed"
        return seen

    def one_by_one(is_vain, _):
        return (member for member in ordered(members, rank) if not is_vain(member))

    assert looked_at(WaitingByKind(members).line(rank).passing) == looked_at(one_by_one)
