"""`tally spam`: what a person types, and what comes of it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tallybayes as tb
from tallybayes.apps.cli.app import make_app
from tallybayes.apps.cli.commands.spam import COMMANDS
from tallybayes.apps.cli.fast_spam import parse_simple_options, read_paths
from tallybayes.apps.spam.check_mail import CheckOptions
from tallybayes.apps.spam.spam_score import Thresholds
from tallybayes.apps.spam.store.maintenance import check_integrity
from tallybayes.apps.spam.store.spam_store import Store
from tests.unit.apps.spam.conftest import make_mail

HERE = {**os.environ, "PYTHONPATH": str(Path(tb.__file__).parents[1]), "COLUMNS": "80"}


def told(words, done):
    return json.loads(done(f"{words} --json"))


def test_learning_and_judging(learned, done, tally):
    assert told("spam stats", done)["messages"] == 80
    for kind, code in (("ham", 0), ("spam", 1)):
        found = tally("spam check", stdin=make_mail(kind, 50))
        assert (found.code, found.err) == (code, "")
        assert re.fullmatch(rf"{kind} +[01]\.\d{{6}}\n", found.out)
    assert tally("spam check test/ham").code == 0
    assert tally("spam check test/ham test/spam").code == 1
    lines = tally("spam check test/ham test/spam --json").out.splitlines()
    verdicts = [json.loads(line) for line in lines]
    assert [one["verdict"] for one in verdicts] == ["ham"] * 20 + ["spam"] * 20
    assert verdicts[0]["file"] == "test/ham/40.eml"


def test_nothing_to_learn_is_said(mails, done):
    (mails / "empty").mkdir()
    assert done("spam learn --ham empty --store x.sqlite").startswith("no mail in these paths\n")


def test_twice_is_said_and_changes_nothing(learned, done, tally):
    before = told("spam stats", done)
    found = tally("spam learn --ham train/ham")
    assert found.out.startswith("learned 0 mails as ham; 40 mails already learned\n")
    assert told("spam stats", done) == before
    found = tally("spam learn --spam train/ham/00.eml train/spam")
    assert found.code == 0
    assert "already learned as ham, unchanged: train/ham/00.eml\n" in found.err
    assert "'tally spam relearn --as spam PATH'" in found.err
    assert told("spam stats", done) == before


def test_a_correction_moves_a_mail(learned, done, tally):
    found = told("spam relearn --as spam train/ham/00.eml train/spam/00.eml test/spam/50.eml", done)
    assert {name: found[name] for name in ("relearned", "learned", "known")} == {
        "relearned": 1, "learned": 1, "known": 1,
    }  # fmt: skip
    assert found["total"] == {"ham": 39, "spam": 42}
    assert done("spam relearn --as ham", stdin=make_mail("ham", 0)).startswith("1 mail moved to ham\n")
    assert done("spam relearn --as ham", stdin=make_mail("ham", 0)).startswith("1 mail already learned as ham\n")
    assert "consistent      yes" in done("spam stats --check")


def test_forgetting_by_mail_and_by_id(learned, done, tally):
    why = told("spam explain train/spam/03.eml", done)
    assert why["learned_as"] == "spam"
    assert done("spam forget", "--id", why["id"][:8]).startswith("forgot 1 mail\n")
    assert told("spam explain train/spam/03.eml", done)["learned_as"] is None
    found = told("spam forget train/spam", done)
    assert (found["forgotten"], found["unknown"]) == (39, 1)
    assert found["total"] == {"ham": 40, "spam": 0}
    # With one class alone nothing can be told.
    assert tally("spam check test/spam/50.eml").code == 2
    assert done("spam forget train/ham").endswith("now has 0 ham and 0 spam, 0 words\n")


def test_an_explanation_adds_up(learned, done):
    why = told("spam explain test/spam/50.eml", done)
    assert why["verdict"] == "spam"
    assert sum(one["weight"] for one in why["words"]) + why["before_any_word"] == pytest.approx(
        why["log_odds"], abs=1e-9
    )
    weights = [abs(one["weight"]) for one in why["words"]]
    assert weights == sorted(weights, reverse=True)
    shown = done("spam explain test/spam/50.eml --most 3")
    assert shown.startswith("spam, p(spam) = ")
    assert (
        len(re.findall(r"^\S.* [+-]\d+\.\d{3}", shown.partition("\n\n")[2], flags=re.MULTILINE)) == 5
    )  # three, the rest, and the start


@pytest.mark.slow
def test_an_explanation_as_a_picture(learned, done):
    pytest.importorskip("matplotlib")
    assert "wrote why.svg" in done("spam explain test/spam/50.eml --plot why.svg")
    assert (learned / "why.svg").read_text().count("<path") > 5


def test_words_have_their_probabilities(learned, done):
    found = {one["word"]: one for one in told("spam words --most 1000", done)}
    assert found["viagra"]["weight"] > 1
    assert found["meeting"]["weight"] < -1
    assert found["viagra"]["ham"] == 0
    value, low, high = found["viagra"]["theta_spam"].values()
    assert low < value < high
    shown = done("spam words --most 5")
    assert len([line for line in shown.splitlines() if re.match(r"\S+ +[+-]\d", line)]) == 5
    assert all(len(line) <= 80 for line in shown.splitlines())
    some = told("spam words viagra nothing", done)
    assert [one["word"] for one in some] == ["viagra", "nothing"]
    assert (some[1]["ham"], some[1]["spam"]) == (0, 0)


def test_measuring_leaves_the_store_alone(learned, done):
    before = told("spam stats", done)
    found = told("spam evaluate --ham test/ham --spam test/spam", done)
    assert (found["ham"], found["spam"], found["false_positives"], found["false_negatives"]) == (20, 20, 0, 0)
    assert found["one_minus_auc_percent"] == 0
    assert found["log_loss"] < 0.1
    wrong = told("spam evaluate --ham test/spam --spam test/ham", done)
    assert wrong["false_positive_rate"] == wrong["false_negative_rate"] == 1
    assert wrong["one_minus_auc_percent"] == 100
    assert told("spam stats", done) == before
    assert "false positives" in done("spam evaluate --ham test/ham --spam test/spam")


def test_area_under_the_curve_is_scikit_learns():
    import numpy as np
    from sklearn.metrics import roc_auc_score

    from tallybayes.apps.spam.spam_metrics import compute_metrics
    from tallybayes.apps.spam.verdicts import Verdict

    chance = np.random.default_rng(1)
    for scores in (chance.normal(size=200), chance.integers(0, 9, 200)):
        is_spam = chance.random(200) < 0.3
        verdicts = [[Verdict("unsure", 0.5, float(x), 1) for x in scores[is_spam == kind]] for kind in (False, True)]
        expected = 100 * (1 - roc_auc_score(is_spam, scores))
        assert compute_metrics(*verdicts)["one_minus_auc_percent"] == pytest.approx(expected, abs=1e-10)


def test_counts_travel(learned, done, tally):
    assert done("spam export counts.tally").startswith("wrote counts.tally: 40 ham and 40 spam")
    assert tb.load("counts.tally")["class"].table.tolist() == [40, 40]
    assert tally("spam export counts.tally").code == 3
    shown = done("spam import counts.tally --store new.sqlite")
    assert shown.startswith("added counts.tally: 40 ham and 40 spam")
    assert "was imported before; nothing was changed" in done("spam import counts.tally --store new.sqlite")
    assert told("spam stats --check --store new.sqlite", done)["imported_ham"] == 40
    assert "imported, which cannot be forgotten by mail" in done("spam stats --store new.sqlite")
    assert tally("spam check test/spam/50.eml --store new.sqlite").code == 1


def test_expiry_says_what_it_did(learned, done):
    assert done("spam expire").startswith("removed 0 words")
    found = told("spam expire --days 0 --most 50", done)
    assert found["words_left"] == 50
    assert found["bytes_after"] <= found["bytes_before"]
    assert "consistent      yes" in done("spam stats --check")
    assert "30 mails remain counted" in done("spam expire --mails 50")
    assert done("spam forget train/ham train/spam").startswith("forgot 50 mails; 30 were not learned before\n")


@pytest.mark.slow
def test_many_mails_take_several_processes(learned, done, tally, monkeypatch):
    # The same verdicts and counts, by processes of their own: in a process of its own, as this one may have threads.
    many = learned / "many"
    for kind in ("ham", "spam"):
        (many / kind).mkdir(parents=True)
        for number in range(100, 400):
            (many / kind / f"{number}.eml").write_bytes(make_mail(kind, number))

    def run(*words):
        command = [sys.executable, "-m", "tallybayes", "spam", *words]
        return subprocess.run(command, capture_output=True, text=True, env={**HERE, "TALLY_SPAM_STORE": "many.sqlite"})

    ran = run("learn", "--ham", "many/ham", "--spam", "many/spam")
    assert ran.stdout.startswith("learned 300 mails as ham\nlearned 300 mails as spam\n"), ran
    ran = run("check", "many/ham", "nowhere", "many/spam")
    assert ran.returncode == 3
    assert ran.stderr == "error: nowhere: no such file or directory.\n"
    lines = ran.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["ham"] * 300 + ["spam"] * 300
    assert lines[0].endswith("many/ham/100.eml")
    with Store("many.sqlite") as store:
        assert store.state().ham == 300


@pytest.mark.slow
def test_a_process_that_is_killed_is_told(learned):
    code = (
        "import os, signal, sys; from tallybayes.apps.spam.tokens import message_tokens as mail, parallel as several\n"
        "several.FEW = several._MAILS = 5\n"
        "parent, real = os.getpid(), mail.tokens_of\n"
        "def tokens_of(raw):\n"
        "    if b'number20' in raw and os.getpid() != parent: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return real(raw)\n"
        "mail.tokens_of = tokens_of\n"
        "from tallybayes.apps.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "spam", "learn", "--ham", "train/ham", "--store", "killed.sqlite"]
    ran = subprocess.run(command, env=HERE, capture_output=True, text=True)
    if os.cpu_count() == 1:
        pytest.skip("one core takes one process")
    assert ran.returncode == 3
    assert ran.stderr.startswith("error: a process that parsed mails was killed")


@pytest.mark.slow
def test_killed_while_it_learns_in_bulk(learned, monkeypatch):
    # What was written is whole mails, once each; what is left is learned by the same command again.
    folder = learned / "bulk"
    folder.mkdir()
    for number in range(1000, 1600):
        (folder / f"{number}.eml").write_bytes(make_mail("ham", number))
    code = (
        "import sys; from tallybayes.apps.spam import train; train._AT_ONCE = 50\n"
        "from tallybayes.apps.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "spam", "learn", "--ham", "bulk", "--store", "bulk.sqlite"]
    for _ in range(5):
        with subprocess.Popen(command, env=HERE, stdout=subprocess.PIPE, start_new_session=True) as ran:
            time.sleep(0.5)
            os.killpg(ran.pid, signal.SIGKILL)
    ran = subprocess.run(command, env=HERE, capture_output=True, text=True, check=True)
    with Store("bulk.sqlite") as store:
        assert store.state().ham == 600
        assert check_integrity(store) == []
    numbers = re.search(r"learned ([\d,]+) mails as ham(?:; ([\d,]+) mails? already learned)?", ran.stdout)
    assert sum(int(found or 0) for found in numbers.groups()) == 600


@pytest.mark.slow
def test_a_server_serves_as_a_store(mails, done, tally, empty_server):
    done("spam learn --ham train/ham --spam train/spam", "--store", empty_server)
    assert tally("spam check test/spam/50.eml", "--store", empty_server).code == 1
    assert "consistent      yes" in done("spam stats --check", "--store", empty_server)
    assert told(f"spam expire --days 0 --store {empty_server}", done)["words"] > 0
    assert tally("spam relearn --as ham test/spam/50.eml", "--store", empty_server).code == 0
    assert done("spam words viagra", "--store", empty_server)


# ---- With a header ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("first", [b"", b"From me@x Thu Aug 22 13:17:22 2002"], ids=["plain", "mbox"])
def test_the_mail_passes_with_one_header_more(end, first, learned, tally, capfdbinary):
    mail = make_mail("spam", 50).replace(b"\n", end) + b"\xff\x00 bytes of any kind" + end
    raw = first + end + mail if first else mail
    code, out = passed(tally, capfdbinary, raw)
    assert code == 1
    start = first + end if first else b""
    assert out.startswith(start + b"X-Tally: spam; probability=")
    header = out[len(start) : len(out) - len(mail)]
    assert out == start + header + mail
    assert header.endswith(end)
    assert header.count(b"\n") == 1


def passed(tally, capfdbinary, raw, words="spam check --header"):
    """What comes out, as bytes."""
    import io

    from tallybayes.apps.cli.main import main

    old, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(raw))
    try:
        code = main(words.split())
    finally:
        sys.stdin = old
    sys.stdout.flush()
    return code, capfdbinary.readouterr()[0]


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    "words",
    [
        "spam check --header --store none.sqlite",
        "spam check --header --store text",
        "spam check --header --nonsense",
        "spam check --header --thresholds 3,4",
        "spam check --header --thresholds",
        "spam check --header --store postgresql://nobody@127.0.0.1:1/x",
    ],
)
def test_whatever_fails_the_mail_passes(words, learned, tally, capfdbinary):
    Path("text").write_text("no database" * 100)
    mail = make_mail("spam", 50).replace(b"\n", b"\r\n")
    code, out = passed(tally, capfdbinary, mail, words)
    assert code >= 3
    assert out == mail


def test_a_fault_of_ours_lets_the_mail_pass(learned, tally, capfdbinary, monkeypatch):
    from tallybayes.apps.spam import check_mail

    monkeypatch.setattr(check_mail, "classify_mail", lambda *given: 1 // 0)
    assert passed(tally, capfdbinary, b"Subject: x\n\ny") == (70, b"Subject: x\n\ny")


@pytest.mark.parametrize("raw", [b"", b"\n", b"no header at all", b"From nobody"])
def test_odd_mail_passes_too(raw, learned, tally, capfdbinary):
    code, out = passed(tally, capfdbinary, raw)
    assert code in (0, 1, 2)
    assert b"X-Tally: " in out
    assert len(out) > len(raw)


def test_a_long_mail_passes_whole(learned, tally, capfdbinary, monkeypatch):
    from tallybayes.apps.spam import header_pass_through

    monkeypatch.setattr(header_pass_through, "_MOST", 1000)
    mail = make_mail("spam", 50) + b"more of it\n" * 1000
    code, out = passed(tally, capfdbinary, mail)
    assert code == 1
    assert out.endswith(mail)


# ---- What goes wrong --------------------------------------------------------------------------------------------


def test_help_is_no_verdict_unless_it_was_asked_for(tally):
    bare, asked = tally("spam"), tally("spam --help")
    assert bare.code == 64
    assert asked.code == tally("spam check --help").code == 0
    assert bare.out == asked.out
    assert bare.out.startswith("Usage: tally spam COMMAND")


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("spam check --store none.sqlite test/ham/40.eml", 3, "store 'none.sqlite' does not exist"),
        ("spam check nowhere.eml", 3, "nowhere.eml: no such file or directory"),
        ("spam check empty", 3, "empty contains no mail"),
        ("spam check --nonsense", 64, "See 'tally spam check --help'"),
        ("spam check --thresholds 1", 64, "expected 2 numbers: HAM,SPAM"),
        ("spam check --thresholds 0.9,0.2", 64, "HAM at most SPAM"),
        ("spam check --costs 1,2", 64, "expected 3 numbers"),
        ("spam check --costs 0,1,1", 64, "expected positive numbers"),
        ("spam check --costs 1,1,1 --thresholds 0,1", 64, "exclude each other; pass one of them"),
        ("spam check --header a b", 64, "--header passes one mail through; found 2 files"),
        ("spam check --store text test/ham/40.eml", 3, "not the store of a spam filter, or it is corrupted"),
        ("spam check --store .", 3, "is a folder"),
        ("spam nonsense", 64, "nonsense"),
        ("spam learn", 64, "pass --ham PATH, --spam PATH or both"),
        ("spam learn --ham nowhere", 3, "file 'nowhere' does not exist"),
        ("spam learn --ham train/ham --store text", 3, "not the store of a spam filter"),
        ("spam learn --ham - --spam -", 64, "standard input is passed twice"),
        ("spam relearn test/ham/40.eml", 64, "--as"),
        ("spam relearn --as ham --id 12345678", 3, "no learned mail has an id that starts with 12345678"),
        ("spam relearn --as ham --id xyz", 3, "is not an id"),
        ("spam forget train/ham/00.eml --id 1234", 64, "exclude each other; pass one of them"),
        ("spam forget --store none.sqlite train/ham/00.eml", 3, "store 'none.sqlite' does not exist"),
        ("spam explain nowhere", 3, "file 'nowhere' does not exist"),
        ("spam explain test/ham/40.eml --most 0", 64, "--most is 0"),
        ("spam words --mass 2", 64, "--mass is 2"),
        ("spam evaluate --ham test/ham", 64, "--spam"),
        ("spam evaluate --ham test/ham --spam empty", 3, "--spam empty has no mail"),
        ("spam expire --days -1", 64, "--days"),
        ("spam expire --mails -1", 64, "--mails"),
        ("spam export nowhere/x.tally", 3, "folder 'nowhere' of nowhere/x.tally does not exist"),
        ("spam import text", 3, "not a Tallybayes file"),
        ("spam import other.tally", 3, "expected a tally written by 'tally spam export'"),
        ("spam import", 64, "missing argument FILE"),
        ("spam stats --store none.sqlite", 3, "store 'none.sqlite' does not exist"),
    ],
)
def test_what_is_no_verdict_is_told_and_three_or_more(words, code, said, learned, tally):
    Path("text").write_text("no database" * 100)
    Path("empty").mkdir()
    tb.count({"x": ["a"]}, [tb.Factor("x", (), tb.Categorical())]).save("other.tally")
    before = sorted(path for path in Path().rglob("*"))
    found = tally(words)
    assert found.code == code, found
    assert said in found.err
    assert found.err.startswith("error: ")
    assert found.out == ""
    assert "Traceback" not in found.err
    assert sorted(path for path in Path().rglob("*")) == before


def test_a_store_that_does_not_add_up_is_told(learned, tally):
    with Store("spam.sqlite") as store, store.database.writing():
        store.database.execute("UPDATE words SET spam = spam + 1 WHERE word = 'viagra'")
    found = tally("spam stats --check")
    assert found.code == 3
    assert "are inconsistent:\n    word 'viagra':" in found.err


def test_a_fault_is_no_verdict(learned, tally, monkeypatch):
    from tallybayes.apps.spam import check_mail

    monkeypatch.setattr(check_mail, "classify_mail", lambda *given: 1 // 0)
    assert tally("spam check test/ham/40.eml").code == 70


def test_without_libraries_it_is_no_verdict():
    code = (
        "import sys; sys.modules['cyclopts'] = None\n"
        "from tallybayes.apps.cli.main import main\nsys.exit(main(['spam', 'learn']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, env=HERE, text=True)
    assert ran.returncode == 3
    assert "pip install cyclopts rich" in ran.stderr


# ---- Quickly ----------------------------------------------------------------------------------------------------


def test_a_mail_is_judged_without_what_takes_long_to_import(learned):
    code = (
        "import sys; from tallybayes.apps.cli.main import main\n"
        "code = main(['spam', 'check', 'test/spam/50.eml'])\nprint(code, *sys.modules)"
    )
    environment = {**HERE, "TALLY_SPAM_STORE": "spam.sqlite"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, text=True, check=True)
    code, *loaded = ran.stdout.splitlines()[-1].split()
    assert code == "1"
    heavy = {"scipy", "sklearn", "pyarrow", "pandas", "narwhals", "cyclopts", "rich", "multiprocessing", "psycopg"}
    assert not heavy & {name.partition(".")[0] for name in loaded}
    assert not [name for name in loaded if name.startswith(("tallybayes.models", "tallybayes.families"))]


@pytest.mark.slow_after(6)
@pytest.mark.parametrize(
    "words",
    [
        "", "-", "a b", "a - b", "--json", "--header", "--json a --header", "--store x", "--store=x a", "a --store x b",
        "--thresholds 0.1,0.9 a", "--costs 1,2,3", "--costs=1,2,3 --store y --json a b c", "--store a=b c",
    ],
)  # fmt: skip
def test_both_ways_to_read_the_options_agree(words, monkeypatch):
    from tallybayes.apps.cli.commands.spam import check as command

    asked = []
    monkeypatch.setattr(command, "check_mails", lambda found: asked.append(found) or 0)
    words = words.split()
    typed = ["spam", "check", *("stdin:" if word == "-" else word for word in words)]
    function, bound, *_ = make_app("spam", typed).parse_args(typed, exit_on_error=False, print_error=False)
    function(*bound.args, **bound.kwargs)
    assert asked == [parse_simple_options(words)]


@pytest.mark.parametrize(
    "words",
    ["--ham a", "--spam=b --ham a", "--json --spam a --store s", "--ham a=b --store=s", "--ham a --json --spam b"],
)
def test_both_ways_to_read_what_is_learned_agree(words):
    typed = ["spam", "learn", *words.split()]
    _, bound, *_ = make_app("spam", typed).parse_args(typed, exit_on_error=False, print_error=False)
    assert bound.arguments == read_paths(words.split())


@pytest.mark.parametrize(
    "words",
    ["", "--json", "--ham", "--ham -", "--ham a b", "--ham a --ham b", "a", "--help", "--ham a --no-json", "-x"],
)
def test_what_is_odd_to_learn_is_left_to_those_who_know_better(words):
    assert read_paths(words.split()) is None


def test_mails_are_learned_without_what_reads_options(learned):
    code = (
        "import sys; from tallybayes.apps.cli.main import main\n"
        "code = main(['spam', 'learn', '--ham', 'train/ham', '--store', 'quick.sqlite'])\nprint(code, *sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, env=HERE, text=True, check=True)
    *_, told, last = ran.stdout.splitlines()
    assert told.startswith("no spam yet")
    assert last.split()[0] == "0"
    assert not {"scipy", "sklearn", "cyclopts", "rich"} & {name.partition(".")[0] for name in last.split()}


def test_every_option_is_known_to_both():
    shown = make_app("spam", ["spam", "check"])["spam"]["check"]
    options = {name.removeprefix("--") for one in shown.assemble_argument_collection() for name in one.names}
    assert {name for name in options if not name.startswith("no-")} == {*CheckOptions._fields, "FILES"} - {"files"}


@pytest.mark.parametrize(
    "words", ["--help", "--json=1", "-x", "--store", "--store --json", "--json --json", "--", "--no"]
)
def test_what_is_odd_is_left_to_those_who_know_better(words):
    assert parse_simple_options(words.split()) is None


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_filter_has_help_with_examples(name, done):
    shown = done(f"spam {name} --help")
    lines = shown.splitlines()
    assert lines[0].startswith(f"Usage: tally spam {name}")
    assert len([line for line in lines if re.match(rf"  .*tally spam {name}", line)]) >= 2
    assert all(len(line) <= 80 for line in lines)
    options = re.findall(r"^│ \*? *(--?[a-z-]+)(?: -\w)?(?: [A-Z.]+)?  +(\S?)", shown, flags=re.MULTILINE)
    assert options
    assert all(said for _, said in options)


def test_the_filter_lists_its_commands(done):
    shown = done("spam --help")
    for name, (_, line) in COMMANDS.items():
        assert re.search(rf"│ {name} +{re.escape(line[:20])}", shown)


def test_help_names_the_thresholds_that_are_meant(done):
    limits = Thresholds()
    for name in ("check", "evaluate", "watch"):
        shown = re.sub(r"[\s│]+", " ", done(f"spam {name} --help"))
        assert f"by default {limits.ham:g},{limits.spam:g}" in shown


@pytest.mark.parametrize("command", ["learn --ham", "relearn --as ham", "forget", "check"])
def test_what_is_not_mail_is_an_error_or_skipped(command, tally, tmp_path, monkeypatch):
    monkeypatch.setenv("TALLY_SPAM_STORE", str(tmp_path / "store.sqlite"))
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "1").write_bytes(make_mail("ham", 1))
    (tmp_path / "box" / "a.bin").write_bytes(bytes(range(256)) * 40)
    assert tally("spam learn --spam", str(tmp_path / "box" / "1")).code == 0
    alone = tally(f"spam {command}", str(tmp_path / "box" / "a.bin"))
    assert alone.code == 3
    assert f"error: {tmp_path / 'box' / 'a.bin'}: is binary, not mail." in alone.err
    folder = tally(f"spam {command}", str(tmp_path / "box"))
    assert folder.code in (0, 2)
    assert f"skipped 1 file without mail: {tmp_path / 'box' / 'a.bin'} is binary, not mail\n" in folder.err
