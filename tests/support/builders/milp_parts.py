"""What tests of formulations share: a solver that lies, another program that reads files."""

import highspy

from optsched.mip import highs


def lying(monkeypatch, **lies):
    """Let HiGHS' figures be changed by functions of the true outcome."""
    solve = highs.solve

    def changed(*args, **kwargs):
        outcome = solve(*args, **kwargs)
        return outcome._replace(**{name: lie(outcome) for name, lie in lies.items()})

    monkeypatch.setattr(highs, "solve", changed)


def solved_from_file(path):
    """Return the optimum of a model file; None if it is infeasible."""
    solver = highspy.Highs()
    solver.silent()
    assert solver.readModel(str(path)) == highspy.HighsStatus.kOk
    solver.run()
    if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        return None
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return solver.getInfo().objective_function_value
