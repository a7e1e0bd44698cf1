"""Reports: what is on the page, and bad input."""

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import optsched
from optsched.cli.main import app
from optsched.documents.faults import InstanceError
from optsched.explanation.explain import instance_of
from optsched.reports.report import report
from optsched.reports.simulations import MOST_MOMENTS, timeline
from optsched.reports.sources import gather
from optsched.results.result import versions
from tests.support.builders.report_outcomes import ALL, Page, data_of, frontier, write_outcomes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("outcomes")
    write_outcomes(place)
    return place


@pytest.fixture(scope="module")
def page(folder):
    return report([folder / name for name in ALL], title="What & <why>")


# --- contents ---------------------------------------------------------------------------------


def test_one_file_that_refers_to_nothing_outside(page):
    shown = Page(page)
    assert shown.addresses
    assert all(address.startswith(("data:", "#s")) for address in shown.addresses)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest", page)
    assert "What &amp; &lt;why&gt;" in page


def test_a_section_for_everything(page):
    titles = "".join(Page(page).titles)
    for title in (
        "Results", "boa/hand, method exact", "pal/tiny, method exact", "Rollouts", "Made with",
        "Frontier of boa/hand over budget_gpus", "Timeline: fifo on philly-small, seed 0",
    ):  # fmt: skip
        assert title in titles


def test_figures_of_results(page, folder):
    result = optsched.read_result(folder / "boa.json")
    assert f"{result.objective:.6f} s" in page
    assert "optimal: proven optimal to the gap asked for" in page
    assert "infeasible: proven that there is no plan" in page
    assert "name it with --instance" not in page  # none.json says how boa/cbd-85 was changed
    assert page.count("<figure class='picture'>") == 5


def test_what_repeats_it(page, folder):
    for name, version in versions().items():
        assert f"<th scope='row'>{name}</th><td>{version}</td>" in page
    assert "optsched solve boa-hand.json --method exact --seed 0 --gap 1e-06" in page
    assert "optsched rollout philly-small.json --policy fifo --seed 0" in page
    assert "--values 1,2,3,4,5 --seed 0 --method exact --method same-k" in page
    summary = json.loads((folder / "fifo" / "summary.json").read_text())
    assert summary["trace"]["sha256"] in page


def test_instances_can_be_saved_from_the_page(folder, tmp_path):
    import base64

    page = report([folder / "pal.json"])
    data = re.search(r"download='pal-tiny.json' href='data:application/json;base64,([^']+)'", page)
    (tmp_path / "again.json").write_bytes(base64.b64decode(data[1]))
    assert optsched.read(tmp_path / "again.json") == optsched.read("pal/tiny")


def test_equal_bytes(folder):
    sources = [folder / name for name in ("pal.json", "frontier.json", "fifo")]
    assert report(sources) == report(sources)


def test_data_of_a_frontier(page):
    shown = data_of(page)["frontiers"][0]
    assert shown["name"] == "budget (GPUs)"
    assert shown["values"] == [1, 2, 3, 4, 5]
    assert shown["knee"] in shown["values"]
    first = shown["methods"][0]["points"][0]
    assert first[:5] == [1, None, None, None, "infeasible"]
    assert "below the least possible cost of" in first[5]
    assert shown["methods"][0]["points"][1][4] == "optimal"


def test_data_of_a_timeline_with_intervals(folder):
    source = gather([folder / "fifo"])[0]
    shown = timeline(source)
    lanes, counts, starts, ends, jobs = shown["bars"]
    held = pd.read_csv(folder / "fifo" / "intervals.csv")
    gpus = held["gpus"].astype(str).str.split().str.len()
    seconds = (gpus * (held["to_s"] - held["from_s"])).sum()
    drawn = sum(n * (b - a) for n, a, b in zip(counts, starts, ends, strict=True))
    assert drawn == pytest.approx(seconds, rel=1e-4)
    assert shown["lane"] == "GPU"
    assert max(a + n for a, n in zip(lanes, counts, strict=True)) == shown["lanes"] <= 64
    assert set(jobs) <= set(range(40))
    assert shown["series"][0]["name"] == "GPUs with a job"


def test_bars_without_intervals_do_not_overlap(folder):
    shown = timeline(gather([folder / "las"])[0])
    lanes, counts, starts, ends, _ = shown["bars"]
    assert set(counts) == {1}
    assert len(lanes) == 40
    by_lane = {}
    for lane, start, end in sorted(zip(lanes, starts, ends, strict=True)):
        assert by_lane.get(lane, 0) <= start + 0.011
        by_lane[lane] = end


def test_long_rollouts_are_shortened_but_keep_their_peaks(folder):
    source = gather([folder / "fifo"])[0]
    rows = 5 * MOST_MOMENTS
    epochs = pd.concat([source.epochs] * (rows // len(source.epochs) + 1), ignore_index=True)
    epochs["now_s"] = range(len(epochs))
    epochs.loc[rows // 2 + 1, "busy_gpus"] = 999
    shown = timeline(type(source)(**{**source.__dict__, "epochs": epochs}))
    assert len(shown["times"]) <= MOST_MOMENTS + 2
    assert max(shown["series"][0]["values"]) == 999
    assert f"of {len(epochs):,} decisions are shown" in shown["note"]


# --- bad input --------------------------------------------------------------------------------


def refused(*sources):
    with pytest.raises(InstanceError) as error:
        report(sources)
    return str(error.value)


def test_nothing_to_show():
    assert "no result, frontier, comparison or folder of a rollout is named" in refused()


def test_every_source_that_cannot_be_read_is_named(folder, tmp_path):
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "cut.json").write_text('{"schema": ')
    (tmp_path / "empty").mkdir()
    text = refused(
        tmp_path / "none.json", tmp_path / "list.json", tmp_path / "cut.json", tmp_path / "empty",
        folder, Path(optsched.__file__).parent / "instances" / "boa" / "hand.json",
    )  # fmt: skip
    assert "6 faults" in text
    assert "none.json: no such file" in text
    kinds = "a result, a frontier, a comparison or the folder of a rollout"
    assert f"list.json: expected {kinds}" in text
    assert "is it truncated?" in text
    assert "empty: no folder of a rollout: summary.json is missing" in text
    assert "it holds some: name fifo, las in it" in text
    assert 'found schema "optsched/boa/1"' in text


def copied(folder, tmp_path):
    for path in (folder / "fifo").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@pytest.mark.parametrize(
    ("name", "row", "fault"),
    [
        ("jobs.csv", "0", "jobs.csv: column submit_s: a row has no value"),
        ("jobs.csv", ",5", "jobs.csv: column job: a row has no value"),
        ("epochs.csv", "1e999", "epochs.csv: column now_s: expected finite numbers"),
    ],
)
def test_a_cut_row_or_an_infinite_number_was_a_traceback_as_the_page_was_written(
    folder, tmp_path, name, row, fault
):
    path = copied(folder, tmp_path) / name
    first = path.read_text().splitlines()[1]
    cells = [*row.split(","), *([""] if name == "jobs.csv" else first.split(",")[1:])]
    path.write_text(path.read_text() + ",".join(cells) + "\n")
    assert fault in refused(tmp_path)


@pytest.mark.parametrize(
    ("name", "old", "new", "fault"),
    [
        ("jobs.csv", "jct_s", "jct", "jobs.csv: column jct_s is missing"),
        ("epochs.csv", "busy_gpus", "busy", "epochs.csv: column busy_gpus is missing"),
        ("summary.json", "optsched/rollout/1", "optsched/rollout/2", "summary.json: schema"),
        ("summary.json", '"metrics"', '"metric"', "summary.json: metrics: missing"),
    ],
)
def test_folders_that_are_not_of_a_rollout(folder, tmp_path, name, old, new, fault):
    path = copied(folder, tmp_path) / name
    path.write_text(path.read_text().replace(old, new, 1))
    assert fault in refused(tmp_path)


def test_tables_that_are_none(folder, tmp_path):
    copied(folder, tmp_path)
    (tmp_path / "jobs.csv").write_text("")
    assert "jobs.csv: no table of a rollout" in refused(tmp_path)
    copied(folder, tmp_path)
    text = (tmp_path / "epochs.csv").read_text().replace("\n0.0,", "\nsoon,", 1)
    (tmp_path / "epochs.csv").write_text(text)
    assert "epochs.csv: column now_s: expected numbers" in refused(tmp_path)
    copied(folder, tmp_path)
    (tmp_path / "intervals.csv").write_text("job,from_s,to_s,gpus\n0,0,1,zero\nx,0,1,0\n")
    text = refused(tmp_path)
    assert 'gpus: expected numbers, found "zero"' in text
    assert 'jobs.csv has no job "x"' in text
    (tmp_path / "jobs.csv").unlink()
    assert "jobs.csv is missing" in refused(tmp_path)


def test_a_rollout_that_has_not_ended(tmp_path):
    (tmp_path / "checkpoint.json").write_bytes(b"")
    assert "go on with `optsched rollout --resume`" in refused(tmp_path)


def test_mixed_versions(folder, tmp_path):
    other = frontier(versions=versions() | {"highspy": "1.14.0"})
    optsched.write(other, tmp_path / "old.json")
    text = refused(folder / "boa.json", tmp_path / "old.json")
    assert "different versions of highspy" in text
    assert "1.14.0 in old.json" in text


def test_text_from_files_is_escaped(folder, tmp_path):
    instance = optsched.read("pal/tiny")
    names = {"name": "</script><b>", f"jobs.{instance.jobs[0].id}.id": "<img src=x>"}
    changed = instance.changed(names)
    optsched.write(optsched.solve(changed), tmp_path / "odd.json")
    optsched.write(frontier(instance="</script><b>"), tmp_path / "frontier.json")
    page = report([tmp_path / "odd.json", tmp_path / "frontier.json"], instances=[changed])
    Page(page)
    assert "<b>" not in page
    assert "<img src=x>" not in page


# --- command line -----------------------------------------------------------------------------


def run(*arguments):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, [str(a) for a in arguments])


def test_command(folder, tmp_path):
    target = tmp_path / "page.html"
    done = run("report", folder / "boa.json", "-o", target, "--title", "Mine")
    assert done.exit_code == 0
    assert "open it in a browser" in done.stdout
    assert "<title>Mine</title>" in target.read_text()


def test_command_refuses(tmp_path):
    done = run("report", tmp_path / "none.json", "-o", tmp_path / "page.html")
    assert done.exit_code == 2
    assert "none.json: no such file" in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_instances_of_results_are_given_with_their_changes(folder, tmp_path):
    target = tmp_path / "page.html"
    run("report", folder / "none.json", "-o", target, "--instance", "boa/cbd-85",
        "--set", "budget_gpus=5")  # fmt: skip
    assert "name it with --instance" not in target.read_text()


def test_command_explain(folder):
    done = run("explain", folder / "none.json", "--set", "budget_gpus=5")
    assert done.exit_code == 0
    assert "the budget of 5 GPUs on average" in done.stdout
    assert run("explain", folder / "none.json").stdout == done.stdout
    assert "1 more GPU in the budget" in run("explain", folder / "boa.json").stdout


def test_explain_said_it_of_the_bundled_instance_whatever_was_set(folder):
    """`--set` and `--instance` that are not the result's were dropped without a word."""
    for given in (["--set", "budget_gpus=6"], ["--instance", "boa/hand"]):
        done = run("explain", folder / "none.json", *given)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "it was solved with other data than those given" in done.stderr


def test_explain_and_report_called_a_forged_bound_proven(tmp_path):
    """A greedy result, its bound raised to its objective, 8 % above the optimum."""
    result = optsched.solve(optsched.read("pal/tiny"), "packed-sticky")
    forged = json.loads(result.to_json())
    forged |= {"bound": forged["objective"], "gap": 0.0, "status": "optimal"}
    forged["certificate"]["bound"] = forged["objective"]
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(forged))
    for command in (["report", path, "-o", tmp_path / "p.html"], ["explain", path]):
        done = run(*command)
        assert done.exit_code == 2
        assert re.search(r"\[bound\].* only 3.05, 3.2 is stated", done.stderr)
        assert "optimal" not in done.stdout + done.stderr
    assert not (tmp_path / "p.html").exists()


def test_the_budget_that_a_result_was_solved_with_is_the_one_on_its_page(tmp_path):
    """boa/cbd-85 at 22 GPUs was shown as proven for the bundled budget of 24."""
    changed = optsched.read("boa/cbd-85").changed({"budget_gpus": 22})
    optsched.write(optsched.solve(changed), tmp_path / "r22.json")
    page = report([tmp_path / "r22.json"])
    assert "budget_gpus=22" in page
    assert "24 GPUs" not in page
    assert "the budget of 22 GPUs" in run("explain", tmp_path / "r22.json").stdout


def test_a_result_of_version_1_is_not_taken_for_one_of_the_bundled_instance(tmp_path):
    """At 22 GPUs it was explained as if the budget of the bundled instance, 24, did bind."""
    changed = optsched.read("boa/cbd-85").changed({"budget_gpus": 22})
    document = json.loads(optsched.solve(changed).to_json()) | {"schema": "optsched/result/1"}
    for key in ("instance_sha256", "changes", "verification_s"):
        del document[key]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(document))
    assert instance_of(optsched.read_result(path)) is None
    assert run("explain", path).exit_code == 2
    page = report([path])
    assert "nothing of it was verified" in page
    assert "24 GPUs" not in page


def test_a_frontier_that_nothing_proves_has_no_bounds_on_its_page(tmp_path):
    optsched.write(frontier(), tmp_path / "frontier.json")
    page = report([tmp_path / "frontier.json"])
    points = [p for m in data_of(page)["frontiers"][0]["methods"] for p in m["points"]]
    assert {point[4] for point in points} == {"unverified", "error"}
    assert {(point[2], point[3]) for point in points} == {(None, None)}


def test_a_result_whose_instance_is_not_at_hand_is_not_called_optimal(tmp_path):
    mine = optsched.read("boa/hand").model_copy(update={"name": "mine"})
    optsched.write(optsched.solve(mine), tmp_path / "mine.json")
    page = report([tmp_path / "mine.json"])
    assert "nothing of it was verified" in page
    assert "optimal" not in re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.S)
    assert "proven optimal to the gap asked for" in report(
        [tmp_path / "mine.json"], instances=[mine]
    )


# --- in notebooks -----------------------------------------------------------------------------


def test_results_from_files_show_what_they_can(folder):
    result = optsched.read_result(folder / "boa.json")
    alone = result._repr_html_()
    assert alone.count("<table") == 1
    assert f"{result.objective:.6f} s" in alone
    for name in ("status", "objective", "bound", "gap", "time"):
        assert f">{name}</th>" in alone
    assert result.of(optsched.read("boa/hand"))._repr_html_().count("<table") == 2


def test_comparisons_say_of_what(folder):
    scenario = optsched.read_scenario("philly-small").changed({"trace.jobs": 20})
    html = optsched.compare(scenario, ["fifo", "las"])._repr_html_()
    assert html.count("<table") == 2
    assert ">philly-small</td>" in html
    assert ">to fifo</td>" in html


def test_a_version_that_is_no_text_is_a_fault_and_no_traceback(folder, tmp_path):
    summary = json.loads((folder / "fifo" / "summary.json").read_text())
    changed = tmp_path / "summary.json"
    changed.write_text(json.dumps(summary | {"versions": {"numpy": [1]}}))
    with pytest.raises(InstanceError, match=r"versions.numpy: expected text, found a list of 1"):
        gather([tmp_path])


def test_a_schema_that_is_no_text_is_a_fault_and_no_traceback(tmp_path):
    (tmp_path / "frontier.json").write_text('{"schema": ["x"]}')
    with pytest.raises(InstanceError, match=r"expected a result, a frontier, .*, found schema"):
        gather([tmp_path / "frontier.json"])


@pytest.mark.parametrize(
    ("field", "value"),
    [("end_s", [1]), ("policy", 7), ("metrics", {"gpu_hours": 10**400}), ("metrics", {"a": "x"})],
)
def test_figures_of_a_summary_that_are_none_ended_in_a_traceback(folder, tmp_path, field, value):
    summary = json.loads((folder / "fifo" / "summary.json").read_text())
    (tmp_path / "summary.json").write_text(json.dumps(summary | {field: value}))
    with pytest.raises(InstanceError, match=rf"summary.json: {field}.*: expected "):
        gather([tmp_path])


def test_a_headline_says_what_a_result_is_worth_beside_greedy_rules(page):
    leads = re.findall(r"<p class='lead'>([^<]+)</p>", page)
    assert len(leads) == 3
    assert leads[0].startswith("Mean JCT 1.151316 s, proven optimal: ")
    assert all("greedy rules." in lead for lead in leads)
    assert "no plan" not in leads[0]


def test_ratios_of_rollouts_are_to_the_first(folder):
    assert "Relative to fifo on philly-small" in report([folder / "fifo", folder / "las"])
    assert "Relative to" not in report([folder / "fifo"])


def test_unfinished_jobs_are_told_wherever_there_are_any(folder, tmp_path):
    assert "Unfinished jobs" not in report([folder / "fifo"])
    copied = tmp_path / "cut"
    shutil.copytree(folder / "fifo", copied)
    summary = json.loads((copied / "summary.json").read_text())
    summary["metrics"] |= {"unfinished": 2, "jobs": 20}
    (copied / "summary.json").write_text(json.dumps(summary))
    for page in (report([copied]), report([folder / "las", copied])):
        assert re.search(r"Unfinished jobs, in no mean of times: fifo [^<]* 2 of 20\.", page)


def test_different_versions_are_shown_where_that_is_asked_for(folder, tmp_path):
    other = frontier(versions=versions() | {"highspy": "1.14.0"})
    optsched.write(other, tmp_path / "old.json")
    assert "--any-versions" in refused(folder / "boa.json", tmp_path / "old.json")
    page = report([folder / "boa.json", tmp_path / "old.json"], any_versions=True)
    assert "made with different versions of highspy" in page


def test_contents_lead_to_every_section(page):
    links = re.findall(r"<li><a href='#(s\d+)'>([^<]+)</a>", page)
    sections = re.findall(r"<section id='(s\d+)'><h2>([^<]+)</h2>", page)
    assert links == sections
    assert len(links) > 5
