"""Prequential evaluation of an empty filter, and reliability diagrams."""

import numpy as np
import pytest

from tallybayes.apps.cli.main import main
from tallybayes.apps.spam.spam_prequential import (
    InMemoryFilter,
    PrequentialResult,
    date_of,
    learning_curve,
    prequential_verdicts,
)
from tallybayes.apps.spam.spam_score import Thresholds
from tallybayes.apps.spam.store.spam_store import Store
from tallybayes.apps.spam.tokens.message_tokens import mails_in, tokens_of
from tallybayes.apps.spam.train import learn, recalibrate
from tallybayes.apps.spam.verdicts import classify_mail
from tallybayes.datasets import make_mail_folders


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("mails")
    make_mail_folders(place, 60)
    return place


def paths(folder):
    return {kind: [str(folder / kind)] for kind in ("ham", "spam")}


def test_it_judges_as_a_store_does(folder, tmp_path):
    counter = InMemoryFilter()
    for kind, place in paths(folder).items():
        for _, raw in mails_in(place):
            counter.learn(tokens_of(raw), is_spam=kind == "spam")
    with Store(str(tmp_path / "s.sqlite"), create=True) as store:
        list(learn(store, paths(folder)))
        recalibrate(store, always=True)
        from tallybayes.apps.spam.spam_calibration import calibrate

        counter.calibration = calibrate(counter.kept())
        for _, raw in mails_in(paths(folder)["spam"]):
            ours, its = counter.classify(tokens_of(raw), Thresholds()), classify_mail(store, raw, Thresholds())
            assert ours.verdict == its.verdict
            assert ours.log_odds == pytest.approx(its.log_odds, abs=1e-9)


def test_the_first_mail_is_unsure_and_later_ones_are_known(folder):
    judged = list(prequential_verdicts(paths(folder), Thresholds()))
    assert len(judged) == 60
    assert judged[0].verdict.verdict == "unsure"
    last = judged[30:]
    assert np.mean([(one.verdict.log_odds > 0) == one.is_spam for one in last]) > 0.8


def test_mails_come_as_they_were_written(tmp_path):
    for name, date in (("a", "Tue, 2 Jan 2024 10:00:00 +0000"), ("b", "Mon, 1 Jan 2024 10:00:00 +0000")):
        (tmp_path / "ham").mkdir(exist_ok=True)
        (tmp_path / "ham" / name).write_text(f"Date: {date}\nSubject: {name}\n\n{name}\n")
    (tmp_path / "spam").mkdir()
    (tmp_path / "spam" / "c").write_text("Subject: no date\n\nwin\n")
    assert [one.is_spam for one in prequential_verdicts(paths(tmp_path), Thresholds())] == [True, False, False]
    assert date_of(b"Date: nonsense\n\n") == date_of(b"") == date_of(b"Date: 1 Jan 99999 00:00 +0000\n\n") == 0.0


def test_the_curve_is_of_the_mails_in_between(folder):
    judged = list(prequential_verdicts(paths(folder), Thresholds()))
    ends, error, loss = learning_curve(judged)
    assert ends.tolist() == [10, 20, 60]
    wrong = [(one.verdict.log_odds > 0) != one.is_spam for one in judged]
    np.testing.assert_allclose(error, [np.mean(wrong[:10]), np.mean(wrong[10:20]), np.mean(wrong[20:])])
    assert np.isfinite(loss).all()
    assert len(learning_curve([PrequentialResult(False, judged[0].verdict)])[0]) == 1


def test_the_command_measures_from_nothing(folder, tmp_path, capsys):
    arguments = ["--ham", str(folder / "ham"), "--spam", str(folder / "spam"), "--learning"]
    assert main(["spam", "evaluate", *arguments, "--plot", str(tmp_path / "curve.svg")]) == 0
    assert "30 ham and 30 spam" in capsys.readouterr().out
    assert (tmp_path / "curve.svg").read_text().startswith("<?xml")


@pytest.mark.slow
def test_pictures_of_how_honest_it_is(folder, tmp_path, capsys):
    store = ["--store", str(tmp_path / "s.sqlite")]
    kinds = ["--ham", str(folder / "ham"), "--spam", str(folder / "spam")]
    assert main(["spam", "learn", *kinds, *store]) == 0
    assert main(["spam", "stats", *store, "--plot", str(tmp_path / "honest.svg")]) == 0
    assert main(["spam", "evaluate", *kinds, *store, "--plot", str(tmp_path / "given.svg")]) == 0
    assert capsys.readouterr().out.count("\nwrote ") == 2
    for name in ("honest.svg", "honest-before.svg", "given.svg"):
        assert (tmp_path / name).stat().st_size > 1000


def test_no_picture_without_both_classes(folder, tmp_path, capsys):
    store = ["--store", str(tmp_path / "s.sqlite")]
    main(["spam", "learn", "--ham", str(folder / "ham"), *store])
    assert main(["spam", "stats", *store, "--plot", str(tmp_path / "honest.svg")]) == 3
    assert "learned ham and learned spam" in capsys.readouterr().err
