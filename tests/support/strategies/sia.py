"""Small instances of Sia's round, made to reach the awkward corners, and all of their plans."""

import itertools
from fractions import Fraction

from optsched.sia import SiaInstance, SiaPlan
from optsched.testing.strategies import sia_rounds


def instances(most_jobs=4):
    """A round of few jobs, with or without a plan."""
    return sia_rounds(most_jobs).map(lambda document: SiaInstance.from_document(HEAD | document))


HEAD = {"schema": "optsched/sia/1", "name": "drawn"}


def plans(instance):
    """Every plan that keeps the GPUs of each type, with its exact cost."""
    for numbers in itertools.product(*(range(len(own)) for own in instance.options)):
        taken = [own[n] for own, n in zip(instance.options, numbers, strict=True)]
        used = {name: sum(o.gpus for o in taken if o.type == name) for name in instance.gpus}
        if all(used[name] <= gpus for name, gpus in instance.gpus.items()):
            yield SiaPlan.of(instance, numbers), sum(Fraction(o.cost) for o in taken)


def least(instance):
    """The least cost of all plans, in fractions; None if there is none."""
    return min((cost for _, cost in plans(instance)), default=None)
