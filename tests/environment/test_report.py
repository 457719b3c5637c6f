"""The report: the table, the conclusion, the exit status, the JSON and the stories."""

from __future__ import annotations

import json

import pytest

from eagleops.engines import engine
from eagleops.engines.workers import ExpectedWorkers, expected
from eagleops.environment import Engine, EnvReport, judge
from eagleops.errors import UsageError
from eagleops.remote.redact import REDACTED
from eagleops.view import cell_text
from environment.readings import SALT, blind, initial, live, log, process, result

SGLANG = Engine("SGLang", role=engine("sglang").role)
MAIN = "/opt/bin/python3 -m sglang.launch_server --model-path /m --tp-size 2"
TRACKER = "/opt/bin/python3 -B -c from multiprocessing.resource_tracker import main;main(29)"
ASKED = {"NCCL_ALGO": "Ring", "NCCL_PROTO": "LL"}


def server(workers: dict[str, dict[str, str]], **changes: object) -> dict[str, object]:
    """A main process that was started as asked, and workers with overwritten blocks."""
    main = process(10, MAIN, initial=initial(ASKED), live=live(ASKED))
    tracker = process(11, TRACKER, ppid=10, initial=initial(ASKED), live=live(ASKED))
    others = [
        process(
            20 + at,
            title,
            ppid=10,
            initial=initial({}, "overwritten", 600),
            live=live(variables),
        )
        for at, (title, variables) in enumerate(workers.items())
    ]
    return result(main, tracker, *others, **changes)


def two_workers(**changed: str | None) -> dict[str, object]:
    """Two schedulers; the second with changed variables."""
    other = {name: value for name, value in {**ASKED, **changed}.items() if value is not None}
    return server({"sglang::scheduler_TP0": ASKED, "sglang::scheduler_TP1": other})


def rows(report: EnvReport) -> list[list[str]]:
    """The table as words."""
    return [[cell_text(cell) for cell in row] for row in report.table().rows]


def test_all_well_is_one_line_that_says_what_was_looked_at() -> None:
    """The overwritten witness is named, and that it was not used."""
    report = judge(two_workers(), ASKED, host="box", engine=SGLANG)

    assert (report.ok, report.exit_status) == (True, 0)
    assert report.conclusion == (
        "2 of 2 variables in effect in 3 of 3 processes; "
        "/proc/PID/environ is overwritten in 2 of them, so it was not used"
    )
    assert report.view().conclusion.text == f"box: baseline: {report.conclusion}"
    assert [note.text for note in report.view().notes] == [
        (
            "NCCL's own log proves 0 of 6 verdicts on its variables; the others rest on the live "
            "environment (NCCL is not loaded in it)"
        )
    ]


def test_the_table_has_a_verdict_for_each_worker_and_variable() -> None:
    """Workers stand across while they are few; a wrong value is shown."""
    report = judge(two_workers(NCCL_ALGO="Tree", NCCL_PROTO=None), ASKED, engine=SGLANG)

    assert [column.heading for column in report.table().columns] == [
        "variable",
        "expected",
        "server",
        "resource_tracker",
        "TP0",
        "TP1",
    ]
    assert rows(report) == [
        ["PID", "", "10", "11", "20", "21"],
        ["/proc/PID/environ", "", "whole", "whole", "overwritten", "overwritten"],
        ["NCCL_ALGO", "Ring", "ok", "ok", "ok", "wrong: Tree"],
        ["NCCL_PROTO", "LL", "ok", "ok", "ok", "missing"],
    ]


def test_workers_that_are_alike_share_a_column() -> None:
    """Of 64 workers the one that is not as the others stands by itself."""
    workers = {f"sglang::scheduler_TP{rank}": ASKED for rank in range(64)}
    workers["sglang::scheduler_TP5"] = {**ASKED, "NCCL_ALGO": "Tree"}

    report = judge(server(workers), ASKED, engine=SGLANG)

    assert [column.heading for column in report.table().columns] == [
        "variable",
        "expected",
        "server",
        "resource_tracker",
        "TP0 to TP4",
        "TP5",
        "TP6 to TP63",
    ]
    assert rows(report)[0][4:] == ["5 PIDs", "25", "58 PIDs"]
    assert rows(report)[2][4:] == ["ok", "wrong: Tree", "ok"]
    assert report.conclusion.startswith("1 of 2 variables in effect in 65 of 65 processes")


def test_many_groups_stand_below_one_another() -> None:
    """A dozen columns would be no table."""
    algorithms = ("Ring", "Tree")
    workers = {
        f"sglang::scheduler_TP{rank}": {**ASKED, "NCCL_ALGO": algorithms[rank % 2]}
        for rank in range(12)
    }

    report = judge(server(workers), ASKED, engine=SGLANG)

    assert [column.heading for column in report.table().columns] == [
        "PID",
        "process",
        "/proc/PID/environ",
        "NCCL_ALGO",
        "NCCL_PROTO",
    ]
    assert rows(report)[-1] == ["31", "scheduler TP11", "overwritten", "wrong: Tree", "ok"]


def test_what_is_not_ok_is_said_once_with_why_and_what_to_do() -> None:
    """The same thing in several processes is one line with their PIDs."""
    reading = server({f"sglang::scheduler_TP{rank}": {"NCCL_ALGO": "Tree"} for rank in range(3)})

    report = judge(reading, ASKED, engine=SGLANG)

    assert report.exit_status == 1
    assert report.conclusion == (
        "0 of 2 variables in effect in 4 of 4 processes; NCCL_ALGO wrong in 3 of 4; "
        "NCCL_PROTO missing in 3 of 4; "
        "/proc/PID/environ is overwritten in 3 of them, so it was not used"
    )
    assert [note.text for note in report.view().notes[:-1]] == [
        (
            "NCCL_ALGO wrong: it is Tree; changed after start: PID 10 above it was started with "
            "Ring (PID 20, 21, 22)\n  Set it in the profile's env, so that each process starts "
            "with it, and launch again."
        ),
        (
            "NCCL_PROTO missing: its environment does not have it (PID 20, 21, 22)\n  Set it in "
            "the profile's env, so that each process starts with it, and launch again."
        ),
    ]


def test_a_blind_witness_gives_exit_status_3() -> None:
    """Unknown is neither yes nor no, and the remedy is told."""
    reading = two_workers()
    reading["processes"][3]["live"] = blind("the process belongs to uid 0", "enter as root")

    report = judge(reading, ASKED, engine=SGLANG)

    assert (report.ok, report.exit_status) == (False, 3)
    assert report.counts == {"ok": 4, "wrong": 0, "missing": 0, "unknown": 2}
    assert report.view().notes[0].text == (
        "NCCL_ALGO unknown: the process belongs to uid 0; PID 10 above it was started with Ring "
        "(PID 21)\n  enter as root"
    )


def test_something_wrong_outweighs_something_unknown() -> None:
    """A failed check is certain, whatever else cannot be told."""
    reading = two_workers(NCCL_ALGO="Tree")
    reading["processes"][2]["live"] = blind("no")

    assert judge(reading, ASKED, engine=SGLANG).exit_status == 1


def test_a_worker_that_is_not_there_is_a_failure_of_its_own() -> None:
    """All that live may be right, and the server is not."""
    wanted = ExpectedWorkers(
        tuple(expected("scheduler", "sglang::scheduler", {"TP": rank}) for rank in range(3))
    )
    facts = Engine("SGLang", role=SGLANG.role, missing=wanted.missing)

    report = judge(two_workers(), ASKED, engine=facts)

    assert (report.ok, report.exit_status) == (False, 1)
    assert "1 expected worker not there: sglang::scheduler_TP2" in report.conclusion
    assert report.to_dict()["missing_workers"] == [
        {"role": "scheduler", "rank": "TP2", "title": "sglang::scheduler_TP2"}
    ]


def test_bystanders_do_not_count() -> None:
    """The resource tracker's environment says nothing about the model's."""
    reading = two_workers()
    reading["processes"][1]["live"] = live({})

    report = judge(reading, ASKED, engine=SGLANG)

    assert report.ok is True
    assert [one.pid for one in report.processes if not one.counted] == [11]


def test_a_process_that_nobody_knows_does_not_count_and_is_not_hidden() -> None:
    """A compiler that the engine runs may have any environment; a person should see it."""
    reading = two_workers()
    reading["processes"].append(process(30, "ninja -v", ppid=10))

    report = judge(reading, ASKED, engine=SGLANG)

    assert report.ok is True
    assert report.view().notes[0].text == (
        "not counted, for it is no worker that is known (PID 30): without NCCL_ALGO, NCCL_PROTO"
    )


def test_without_an_engine_every_process_counts() -> None:
    """Nothing is known of the titles, so none is left out but Python's own helpers."""
    reading = result(
        process(10, "serve", initial=initial(ASKED), live=live(ASKED)),
        process(11, "worker", ppid=10),
    )

    report = judge(reading, ASKED)

    assert [one.counted for one in report.processes] == [True, True]
    assert report.exit_status == 1


def test_a_child_without_a_title_counts_beside_the_command() -> None:
    """Of a server without an adapter Python's own children are known, and so is the rest."""
    facts = Engine("command", role=engine("command").role)
    spawned = "/usr/bin/python3 -c from multiprocessing.spawn import spawn_main; x"
    reading = result(process(10, "serve"), process(11, spawned, ppid=10))

    assert [one.counted for one in judge(reading, ASKED, engine=facts).processes] == [True, True]


def test_no_process_that_counts_is_no_success() -> None:
    """Nothing was seen, so nothing is known."""
    report = judge(result(process(11, TRACKER)), ASKED, engine=SGLANG)

    assert (report.ok, report.exit_status) == (False, 3)
    assert report.conclusion == "no process whose environment counts was found"


def test_nothing_expected_is_said() -> None:
    """A profile without variables is no error."""
    report = judge(two_workers(), {}, engine=SGLANG)

    assert (report.ok, report.conclusion.partition(";")[0]) == (True, "no variable is expected")


def test_the_json_has_the_keys_that_stay() -> None:
    """As the commands' page promises them."""
    reading = two_workers(NCCL_ALGO="Tree")
    reading["processes"][2]["nccl"] = log("before-spawn", 1006)

    document = judge(reading, ASKED, host="box", engine=SGLANG).to_dict()

    json.dumps(document)
    assert set(document) >= {"ok", "host", "server", "expected", "processes", "counts"}
    assert (document["host"], document["server"]) == ("box", "baseline")
    assert document["expected"] == ASKED
    assert document["counts"] == {"ok": 5, "wrong": 1, "missing": 0, "unknown": 0}
    worker = document["processes"][2]
    assert {name: worker[name] for name in ("pid", "role", "rank", "title", "initial")} == {
        "pid": 20,
        "role": "scheduler",
        "rank": "TP0",
        "title": "sglang::scheduler_TP0",
        "initial": "overwritten",
    }
    assert worker["variables"]["NCCL_ALGO"] == {
        "verdict": "ok",
        "initial": None,
        "live": "Ring",
        "effective": "Ring",
        "notes": [],
        "why": "",
        "way_out": "",
        "proved": True,
    }
    assert document["processes"][3]["variables"]["NCCL_ALGO"]["verdict"] == "wrong"


def test_no_secret_stands_in_a_report() -> None:
    """Neither the expected one, nor those that the processes have."""
    mark = {"sha256": "3b1b7b0f"}
    reading = result(process(10, MAIN, initial=initial({"HF_TOKEN": mark}), live=live({})))

    report = judge(reading, {"HF_TOKEN": "hf_secret_value"}, engine=SGLANG)
    told = json.dumps(report.to_dict()) + report.view().to_html() + repr(report)
    told += report.explain("HF_TOKEN").text

    assert "hf_secret_value" not in told
    assert report.to_dict()["expected"] == {"HF_TOKEN": REDACTED}
    assert report.exit_status == 1


def test_a_secret_off_the_record_is_compared_with_what_the_server_was_started_with() -> None:
    """The main process's own block holds it, as the launch gave it."""
    from eagleops.environment.values import Secret

    right = {"sha256": Secret.of(SALT, "hf_x").sha256}
    other = {"sha256": Secret.of(SALT, "hf_y").sha256}
    main = process(10, MAIN, initial=initial({"HF_TOKEN": right}), live=live({"HF_TOKEN": right}))
    over = initial({}, "overwritten")
    good = process(20, "sglang::scheduler_TP0", initial=over, live=live({"HF_TOKEN": right}))
    bad = process(21, "sglang::scheduler_TP1", initial=over, live=live({"HF_TOKEN": other}))

    report = judge(result(main, good, bad), {"HF_TOKEN": REDACTED}, engine=SGLANG)

    assert [one.verdict.kind for _, _, one in report.judged()] == ["ok", "ok", "wrong"]


def test_remarks_on_what_is_ok_are_not_lost() -> None:
    """A number with a suffix is in effect, and not as anyone meant it."""
    reading = two_workers()
    for each in reading["processes"]:
        each["live"] = live({"NCCL_NTHREADS": "4M"})
    reading["processes"][2]["nccl"] = {
        "path": "/s/nccl.20.log",
        "why": "",
        "cut": False,
        "facts": {
            "versions": ["2.28.9"],
            "read": {"NCCL_NTHREADS": {"values": ["4"], "number": True}},
            "refused": {},
            "comms_started": [2],
            "comms_complete": [2],
            "env_logged": True,
        },
    }

    report = judge(reading, {"NCCL_NTHREADS": "4M"}, engine=SGLANG)

    assert "NCCL_NTHREADS ok, but NCCL reads 4M as 4 (PID 20)" in [
        note.text for note in report.view().notes
    ]


def test_the_story_tells_what_each_witness_saw() -> None:
    """For one variable in one process, from exec to NCCL."""
    reading = two_workers()
    reading["processes"][2]["nccl"] = log("before-spawn", 1006)

    story = judge(reading, ASKED, engine=SGLANG).explain("NCCL_ALGO", 20)

    assert story.text.splitlines() == [
        "NCCL_ALGO in TP0, PID 20, expected Ring: ok",
        (
            "  initial    all 600 bytes of /proc/20/environ were written over, as setproctitle "
            "does: that says nothing"
        ),
        "  live       the environment that getenv searches (environ in libc.so.6) has Ring",
        "  effective  NCCL took Ring (in /s/nccl.1006.log)",
        "  NCCL reads it anew for each communicator of two or more ranks",
    ]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (initial({"NCCL_ALGO": "Ring"}), "is whole: it was started with Ring"),
        (initial({}), "is whole: it was started without it"),
        (
            initial({}, "partly_overwritten", 500),
            (
                "the first 500 of 600 bytes of /proc/10/environ were written over, as setproctitle "
                "does; what is left does not show it, which says nothing"
            ),
        ),
        (
            initial({"NCCL_ALGO": "Tree"}, "partly_overwritten", 500),
            "what is left shows Tree",
        ),
        (initial({}, "empty", 0, 0), "/proc/10/environ is empty: it has no memory of its own"),
        ({**initial({}, "unreadable"), "why": "Yama"}, "/proc/10/environ cannot be read: Yama"),
    ],
)
def test_the_story_tells_of_the_first_witness_in_each_state(state, said: str) -> None:
    """What it shows, and how far it can be believed."""
    report = judge(result(process(10, MAIN, initial=state, live=live(ASKED))), ASKED)

    assert said in report.explain("NCCL_ALGO").text


@pytest.mark.parametrize(
    ("name", "log_name", "said"),
    [
        ("SGLANG_X", "before-spawn", "NCCL does not read it"),
        ("NCCL_NET", "before-spawn", "made: 1 of two or more ranks"),
        ("NCCL_NTHREADS", "invalid", "NCCL took 500; NCCL said: Invalid NCCL_NTHREADS 500"),
        ("NCCL_NET", "one-rank", "made: none of two or more ranks"),
        ("NCCL_DEBUG", "one-rank", "NCCL reads it once, at its first call, and does not name it"),
        ("NCCL_NET", "one-rank", "NCCL reads it once, where it first needs it"),
    ],
)
def test_the_story_tells_of_nccls_log_and_of_its_silence(name, log_name, said) -> None:
    """What NCCL took, what it refused, and when it would have read what it does not name."""
    pid = {"before-spawn": 1006, "invalid": 1409, "one-rank": 748}[log_name]
    reading = result(process(pid, MAIN, nccl=log(log_name, pid)))

    assert said in judge(reading, {name: "1"}).explain(name).text


def test_the_story_chooses_what_is_not_ok() -> None:
    """Without a PID the process that needs explaining is explained."""
    report = judge(two_workers(NCCL_ALGO="Tree"), ASKED, engine=SGLANG)

    story = report.explain("NCCL_ALGO")

    assert (story.pid, story.kind) == (21, "wrong")
    assert story.to_dict()["witnesses"]["live"].endswith("has Tree")
    assert story.view().conclusion.text == story.head


def test_a_story_of_nothing_is_refused_with_the_way_out() -> None:
    """The names and PIDs that there are."""
    report = judge(two_workers(), ASKED, host="box", engine=SGLANG)

    with pytest.raises(UsageError) as unknown:
        report.explain("NCCL_ALGOO")
    with pytest.raises(UsageError) as nobody:
        report.explain("NCCL_ALGO", 99)

    assert str(unknown.value) == (
        "box: nothing is expected of NCCL_ALGOO\n"
        "Expected are NCCL_ALGO, NCCL_PROTO. Give a value for it: --expect NCCL_ALGOO=VALUE."
    )
    assert str(nobody.value) == (
        "box: PID 99 is no process of this server\nIts processes: 10, 11, 20, 21."
    )


def test_a_report_shows_itself_in_a_notebook() -> None:
    """As HTML, with what came from processes escaped."""
    reading = result(process(10, "<script>", live=live({"A": "<b>"})))

    shown = judge(reading, {"A": "1"})._repr_html_()

    odd = judge(result(process(10, "x", live=live({"A": "\x1b[31m\udcff"}))), {"A": "1"})

    assert cell_text(odd.table().rows[2][2]) == r"wrong: \x1b[31m\\xff"
    odd.view().to_html().encode("utf-8")
    assert "<b>" not in shown
    assert "wrong: &lt;b&gt;" in shown


def test_the_servers_circumstances_are_told() -> None:
    """Two NCCLs in a process, processes that ended, a conf file that cannot be read."""
    reading = two_workers()
    facts = log("before-spawn", 1006)
    facts["facts"]["versions"] = ["2.21.5", "2.28.9"]
    reading["processes"][2]["nccl"] = facts
    reading["processes"][2]["conf_files"] = [
        {"path": "/etc/nccl.conf", "variables": {}, "why": "Permission denied"}
    ]
    reading["gone"] = [40, 41]

    assert judge(reading, ASKED, engine=SGLANG).notes == (
        "/etc/nccl.conf cannot be read: Permission denied",
        "PID 20 runs more than one NCCL: 2.21.5, 2.28.9",
        "ended while being read: PID 40, 41",
    )
