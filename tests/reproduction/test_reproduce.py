"""reproduce(): rows against the metrics that they come from, the same bytes, files of authors."""

import json
import math
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

import optsched
from optsched.bounds.bound import bound_of
from optsched.bounds.schedules import Schedules
from optsched.cli.main import app
from optsched.reproduction.claims import boa, boa_rollouts, pal, philly
from optsched.reproduction.registry import STUDIES, SYSTEMS, claims_of
from optsched.reproduction.studies import Level
from optsched.reproduction.verdicts import Verdict
from optsched.rollout.trace_source import jobs_of
from optsched.traces.trace import US
from tests.support.builders.pal_workloads import workloads_csv

FEW = ["eaco-set-*", "eaco-28-energy-kwh-fifo-exclusive", "eaco-28-run-time"]


@pytest.fixture(scope="module")
def found():
    return optsched.reproduce("eaco", level="quick", only=FEW)


def geometric(ratios):
    return 100 * (math.prod(ratios) ** (1 / len(ratios)) - 1)


def test_rows_are_the_metrics_of_rollouts(found):
    """The same policies by `compare`, on the same traces."""
    scenario = optsched.read_scenario("eaco-28").changed({"trace.jobs": 80})
    compared = optsched.compare(scenario, ["fifo-exclusive", "eaco-greedy"], seeds=2)
    base, ours = (compared.values[name]["energy_kwh"] for name in compared.rollouts)
    rows = found.frame()
    row = rows.loc["eaco-28-energy-kwh-fifo-exclusive"]
    assert row.ours == pytest.approx(geometric(ours / base))
    assert row.low <= row.ours <= row.high
    assert row.seeds == 2
    bounds = [
        bound_of(scenario, jobs_of(scenario, None, seed), Schedules()).energy_kwh for seed in (0, 1)
    ]
    assert row.bound == pytest.approx(geometric(bounds / base))
    assert row.bound < row.ours
    longer = [
        (run.record.jobs.running_us / run.record.trace.run_us).mean() - 1
        for run in compared.rollouts["eaco-greedy"]
    ]
    assert rows.loc["eaco-28-run-time"].ours == pytest.approx(50 * sum(longer))


def test_sets_of_the_tables_by_hand(found):
    """J1&J3: 50.93 of 24.73 + 47.87 kWh; J1&J2&J3: 59.01 of 106.29; all four: 93.66 of 161.67.

    The tables' energies are means over jobs of slightly other lengths, hence the tolerance.
    """
    rows = found.frame()
    assert rows.loc["eaco-set-least"].ours == pytest.approx(100 * (1 - 50.93 / 72.60), abs=0.1)
    assert rows.loc["eaco-set-most"].ours == pytest.approx(100 * (1 - 59.01 / 106.29), abs=0.1)
    assert rows.loc["eaco-set-most"].exact == pytest.approx(100 * (1 - 93.66 / 161.67), abs=0.1)


def test_only_what_rows_need_is_measured(found):
    cells = {study: set(seeds[0]) for study, seeds in found.measured.draws.items()}
    assert cells == {
        "eaco-tables": {"sets", "eaco"},
        "eaco-28": {"fifo-exclusive", "eaco-greedy", "bound"},
    }


def test_the_same_seed_gives_the_same_bytes_wherever_it_is_run(found):
    with ThreadPoolExecutor(2) as executor:
        again = optsched.reproduce("eaco", level="quick", only=FEW, executor=executor)
    assert again.content() == found.content()
    assert again.digest == found.digest
    assert again.draws() == found.draws()
    assert again.page() == found.page()
    said, told = found.document(), again.document()
    assert said.pop("timings_cpu_s").keys() == told.pop("timings_cpu_s").keys()
    assert said.pop("timings_of_decisions") == told.pop("timings_of_decisions") == {}
    assert said == told


def test_claims_of_pal_are_read_off_its_policies():
    study = STUDIES["pal"]
    draws = []
    for seed in (0, 1):
        tasks = [t for t in study.tasks(Level.QUICK, seed, None) if t.seed == seed]
        chosen = [t for t in tasks if t.cell in (pal.BASE, pal.GREEDY, pal.BOUND)]
        draws.append({task.cell: study.measure(task) for task in chosen})
    compared = optsched.compare("pal-64", [pal.BASE, pal.GREEDY], seeds=2)
    claims = {claim.key: claim for claim in pal.claims()}
    metrics = {"jct": "jct_mean_s", "makespan": "makespan_s", "utilization": "utilization"}
    for key, metric in metrics.items():
        base, ours = (compared.values[name][metric] for name in (pal.BASE, pal.GREEDY))
        read = [claims[f"pal-{key}"].ours.of_draw(draw) for draw in draws]
        assert read == pytest.approx([math.log(a / b) for a, b in zip(ours, base, strict=True)])
    for draw in draws:
        assert claims["pal-jct"].bound.of_draw(draw) < claims["pal-jct"].ours.of_draw(draw)


def test_ratios_of_boa_are_at_equal_bills():
    """Between two points of each curve: 1,500 of 1,000 s at 35 GPUs, 1,250 of 1,000 s at 40."""

    def figures(bill, jct, unfinished=0):
        return {boa.BILL: bill, boa.JCT: jct, "unfinished": unfinished}

    sweeps = {boa.BOA: ["b1", "b2", "b3"], "other": ["o1", "o2"]}
    draw = {
        "b1": figures(30, 1000.0), "b2": figures(50, 1000.0), "b3": figures(30, 1.0, unfinished=1),
        "o1": figures(30, 1750.0), "o2": figures(40, 1250.0),
    }  # fmt: skip
    reading = boa.ratio(sweeps, "other", (35, 40))
    assert reading.told(reading.of_draw(draw)) == pytest.approx(math.sqrt(1.5 * 1.25))
    assert boa.ratio(sweeps, "other", (29, 40)).of_draw(draw) is None


def test_ratios_of_unlike_seeds_are_at_shares_of_the_bills_of_both():
    """BOA's curve is of 100 to 300 USD, the other's of 200 to 400: a quarter of the way is 225."""

    def figures(usd, jct):
        return {boa.BILL: 1.0, boa.USD: usd, boa.JCT: jct, "unfinished": 0}

    sweeps = {boa.BOA: ["b1", "b2"], "other": ["o1", "o2"], "dear": ["d"]}
    draw = {
        "b1": figures(100, 1200.0), "b2": figures(300, 400.0),
        "o1": figures(200, 2000.0), "o2": figures(400, 1200.0), "d": figures(500, 1.0),
    }  # fmt: skip
    reading = boa.ratio_within(sweeps, "other", (0.25, 0.5))
    quarter, half = 1900 / 700, 1800 / 600
    assert reading.told(reading.of_draw(draw)) == pytest.approx(math.sqrt(quarter * half))
    assert boa.ratio_within(sweeps, "dear", (0.5,)).of_draw(draw) is None


def test_errors_of_beliefs_are_set_beside_the_curve():
    cell = f"boa:budget=30{boa.BELIEVING}works 0.5"
    true = {"boa:budget=30": (30.0, 1000.0), "boa:budget=40": (40.0, 800.0), cell: (35.0, 1080.0)}
    draw = {
        name: {boa.BILL: bill, boa.JCT: jct, "unfinished": 0} for name, (bill, jct) in true.items()
    }
    loss, off = boa.loss(cell), boa.off_budget(cell)
    assert loss.told(loss.of_draw(draw)) == pytest.approx(20)
    assert off.told(off.of_draw(draw)) == pytest.approx(100 / 6)


def test_shares_of_philly_by_hand():
    """Core dumps and MPI errors come early: their medians are 0.85 and 1.62 minutes."""
    figures = {f"table 7, {name}, trials": 10.0 for name in (*philly.LATE, "Core dump")}
    figures |= {f"table 7, {name}, time x GPUs, %": 5.0 for name in (*philly.LATE, "Core dump")}
    figures |= {"table 6, % of jobs, passed": 69.3}
    draw = {philly.CELL: figures}
    claims = {claim.key: claim for claim in philly.claims()}
    told = {
        key: claims[f"philly-{key}"].ours.of_draw(draw)
        for key in ("not-passed", "early", "late-trials", "late-time")
    }
    assert told == pytest.approx(
        {"not-passed": 30.7, "early": 50.0, "late-trials": 75.0, "late-time": 15.0}
    )


def test_every_claim_is_whole():
    claims = claims_of(SYSTEMS)
    keys = [claim.key for claim in claims]
    assert len(set(keys)) == len(keys)
    for claim in claims:
        assert claim.where
        assert claim.setting
        assert claim.system in SYSTEMS
        assert (claim.study is None) == (claim.ours is None and not claim.timed)
        if claim.ours is None:
            assert claim.note, f"{claim.key} must say why nothing is measured"
        else:
            quick, *others = (set(STUDIES[claim.study].cells(level)) for level in Level)
            assert quick <= others[0] <= others[1]
            assert set(claim.ours.cells) <= others[0]
            assert claim.cells <= others[1]


# --- files of authors -------------------------------------------------------------------------


def test_workloads_of_a_file_take_the_place_of_seeds(tmp_path):
    """Run times of both jobs are 1,000 iterations of PAL's own seconds; alone on a GPU each."""
    path = tmp_path / "workloads.csv"
    path.write_text(workloads_csv(3))
    found = optsched.reproduce("pal", level="quick", only=["pal-jct"], data={"pal": path})
    assert len(found.measured.of("pal")) == 2  # of three: --quick takes two
    row = found.frame().loc["pal-jct"]
    assert row.data == "authors' file"
    assert row.verdict in (Verdict.REPRODUCED, Verdict.REFUTED, Verdict.SMALLER, Verdict.LARGER)
    whole = optsched.reproduce("pal", only=["pal-packed-non-sticky"], data={"pal": path})
    assert len(whole.measured.of("pal")) == 3
    trace = optsched.traces.import_trace(path, "pal", "b")
    jct = whole.measured.of("pal")[1]["packed-sticky"]["jct_mean_s"]
    assert jct >= trace.run_us.mean() / US
    assert len(whole.files["pal"]) == 64


def test_jobs_of_boas_authors_have_the_mean_work_of_their_class(tmp_path):
    path = tmp_path / "workload-1.csv"
    path.write_text(
        "name,time,application,num_replicas,batch_size\n"
        "a,60,cifar10,1,128\nb,120,imagenet,4,200\nc,180,bert,2,24\nd,400,cifar10,1,128\n"
    )
    trace = boa_rollouts.authors_jobs(str(path))
    classes = {each.id: each for each in optsched.read("boa/cbd-85").classes}
    works = [sum(p.work_gpu_s for p in classes[name].phases) for name in trace.model]
    assert list(trace.model) == ["cifar10", "bert", "cifar10"]
    assert (trace.submit_us / US).tolist() == [0, 120, 340]  # from the first on
    assert trace.gpus.tolist() == [1, 1, 1]
    assert (trace.run_us / US).tolist() == pytest.approx(works)
    keys = ["boa-bill-works-0.1"]
    found = optsched.reproduce("boa", level="quick", only=keys, data={"boa": path})
    (draw,) = found.measured.of("boa")
    assert found.frame().loc[keys[0], "data"] == "authors' file"
    assert all(figures["unfinished"] == 0 for figures in draw.values())
    path.write_text("name,time,application,num_replicas,batch_size\nb,120,imagenet,4,200\n")
    with pytest.raises(optsched.InstanceError, match="holds no job of cifar10"):
        boa_rollouts.authors_jobs(str(path))


HOSTILE = {
    "empty": b"",
    "no text": b"\xff\xfe\x00\x01" * 40,
    "other columns": b"a,b,c\n1,2,3\n",
    "no jobs": b"job_id,num_gpus,submit_time,iterations,model\n",
    "unknown model": b"job_id,num_gpus,submit_time,iterations,model\n1,1,0,10,<b>x</b>\n",
    "not a number": b"job_id,num_gpus,submit_time,iterations,model\n1,1,0,nan,vgg19\n",
    "too large a gang": b"job_id,num_gpus,submit_time,iterations,model\n1,65,0,10,vgg19\n",
    "a workload without a name": b"workload,job_id,num_gpus,submit_time,iterations,model\n,1\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_bad_file_is_refused_in_words(name, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_bytes(HOSTILE[name])
    words = ["reproduce", "pal", "--quick", "--only", "pal-packed-non-sticky", "--processes", "1"]
    told = CliRunner().invoke(app, [*words, "--data", str(path)])
    assert told.exit_code == 2, told.output
    assert "bad.csv" in told.output or "65" in told.output
    assert "Traceback" not in told.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nobody"], "no system named 'nobody'"),
        (["pal", "eaco", "--data", "x.csv"], "of which system"),
        (["eaco", "--data", "x.csv"], "takes no file"),
        (["eaco", "--data", "pal=x.csv"], "not asked for"),
        (["pal", "--data", "a", "--data", "pal=b"], "has a file already"),
        (["pal", "--data", "/no/such/file", "--quick"], "No such file"),
        (["pal", "--quick", "--full"], "expected one of them"),
        (["pal", "--only", "eaco-*"], "fits no key"),
    ],
)
def test_what_cannot_be_done_is_said(words, said):
    told = CliRunner().invoke(app, ["reproduce", *words, "--processes", "1"])
    assert told.exit_code == 2, told.output
    assert said in " ".join(told.output.split())


def test_the_command_writes_a_folder(tmp_path):
    words = ["reproduce", "eaco", "--only", "eaco-set-*", "-o", str(tmp_path / "out"), "--json"]
    told = CliRunner().invoke(app, [*words, "--processes", "1"])
    assert told.exit_code == 0, told.output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"index.html", "reproduction.json", "draws.json", "rows.csv", "rows.tex"}
    kept = (tmp_path / "out/reproduction.json").read_text()
    assert json.loads(told.output) == json.loads(kept)
    page = (tmp_path / "out/index.html").read_text()
    assert "reproduced" in page
    assert "<script src" not in page
    assert r"\begin{tabular}" in (tmp_path / "out/rows.tex").read_text()
    assert (tmp_path / "out/rows.csv").read_text().count("\n") == 3
