"""Copies of documents: verified by their own data, not by what was derived from those copied."""

import copy
import importlib
import pickle
import pkgutil
from functools import cached_property

import pytest

import optsched
from optsched.instance import Document, Instance, NamedDocument, find, names
from optsched.registry import PROBLEMS, problem
from optsched.rollout.scenario_files import read_scenario


def all_documents():
    """Every class of documents of the package."""
    for module in pkgutil.walk_packages(optsched.__path__, "optsched."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    classes, left = set(), [Document]
    while left:
        classes |= set(left)
        left = [child for cls in left for child in cls.__subclasses__() if child not in classes]
    return classes


def derived(cls):
    """Names of all that a class keeps beside its fields."""
    members = (vars(base) for base in cls.__mro__)
    return {n for names in members for n, m in names.items() if isinstance(m, cached_property)}


def parts(value):
    """A document and all documents in it."""
    if isinstance(value, Document):
        yield value
        value = [getattr(value, name) for name in type(value).model_fields]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from parts(inner)


EXAMPLES = {entry: optsched.read(problem(entry).instance.example) for entry in PROBLEMS}
OTHERS = [*map(optsched.read, ("boa/hand", "boa/three-types")), read_scenario("pal-64")]


def examples():
    seen = {}
    for whole in (*EXAMPLES.values(), *OTHERS):
        for part in parts(whole):
            if derived(type(part)):
                seen.setdefault(type(part), part)
    return seen


def test_every_document_that_keeps_what_it_derives_is_tried():
    bases = {NamedDocument, Instance}  # of which there are no documents
    assert {cls for cls in all_documents() if derived(cls)} - bases == set(examples())


@pytest.mark.parametrize("cls", list(examples()), ids=lambda cls: cls.__name__)
def test_a_copy_keeps_nothing_that_was_derived(cls):
    one = examples()[cls]
    for name in derived(cls):
        getattr(one, name)
    assert derived(cls) <= set(one.__dict__)
    copies = [copy.copy(one), copy.deepcopy(one), one.model_copy(), one.model_copy(deep=True)]
    for name in cls.model_fields:
        copies.append(one.model_copy(update={name: getattr(one, name)}))
    for other in copies:
        assert other == one
        assert not derived(cls) & set(other.__dict__)
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize("problem_name", list(PROBLEMS))
def test_verify_takes_a_copy_by_its_own_data(problem_name):
    """Each field that can be is replaced by that of another instance of the problem."""
    one = EXAMPLES[problem_name]
    result = optsched.solve(one)
    optsched.verify(one, result)
    smallest = sorted(names(problem_name), key=lambda name: find(name).stat().st_size)
    others = [optsched.read(name) for name in smallest[:3]]
    tried = 0
    for name in type(one).model_fields:
        for other in others:
            copied = one.model_copy(update={name: getattr(other, name)})
            document = copied.model_dump(mode="json", by_alias=True, exclude_none=True)
            try:
                anew = type(one).from_document(document)
            except optsched.InstanceError:
                continue
            tried += 1
            assert verdict(copied, result) == verdict(anew, result)
    assert tried > len(type(one).model_fields)


def verdict(instance, result):
    try:
        optsched.verify(instance, result)
    except optsched.Violation as violation:
        return violation.broken
    return []


def test_cached_penalties_do_not_prove_a_bound_of_other_penalties():
    tiny = optsched.read("pal/tiny")
    result = optsched.solve(tiny)
    flat = tiny.model_copy(update={"locality": {m: (1.0, 1.0) for m in tiny.locality}})
    best = optsched.solve(flat)
    assert best.objective < result.bound
    assert "bound" in {rule for rule, _ in verdict(flat, result)}
