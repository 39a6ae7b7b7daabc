"""Synthetic data for examples: a table of mixed columns with missing values, and e-mails."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from os import PathLike

Columns = dict[str, Any]


def make_penguins(n: int, seed: int = 0) -> Columns:
    """Return a synthetic table of penguins: categorical, continuous and count columns, with 5% missing cells.

    Parameters
    ----------
    n : int
    seed : int, default 0

    Returns
    -------
    dict from column to array
    """
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, n, p=[0.44, 0.2, 0.36])
    male = rng.random(n) < 0.5
    share = np.array([[0.29, 0.37, 0.34], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])[kind]
    island = np.array(["Biscoe", "Dream", "Torgersen"], dtype=object)[(rng.random((n, 1)) > share.cumsum(1)).sum(1)]
    bill = rng.normal(np.array([38.8, 48.8, 47.5])[kind] + np.where(male, 1.6, -1.6), 2.4)
    mass = rng.normal(np.array([3700, 3730, 5080])[kind] + np.where(male, 330, -330), 300)
    sex = np.where(male, "male", "female").astype(object)
    for column in (island, sex):
        column[rng.random(n) < 0.05] = None
    for column in (bill, mass):
        column[rng.random(n) < 0.05] = np.nan
    return {
        "island": island,
        "bill_mm": bill.round(1),
        "mass_g": mass.round(),
        "sex": sex,
        "eggs": rng.poisson(np.array([1.9, 1.6, 1.8])[kind]),
        "species": np.array(["Adelie", "Chinstrap", "Gentoo"])[kind],
    }


_TALK = """minutes of the meeting are attached
could you look at the draft before noon
lunch on friday with the team
the build is green again
thanks for the slides, click below for mine
train leaves at nine from platform two
notes from the review
I moved our call to tuesday
mum says hello and asks about the garden
the invoice for march is in the folder"""
_SALE = """click here to win a prize
you are a winner, claim your money now
cheap pills, no prescription
limited offer, act now and save
your account will be closed, verify the folder
free gift card for you and mum
lose weight fast or money back
work from home and earn cash
refinance today at the lowest rates
hot deals, click below"""


def make_mail_folders(folder: str | PathLike[str], n: int = 200, seed: int = 0) -> None:
    """Write synthetic e-mails, half of them spam, as files into ``folder/ham`` and ``folder/spam``.

    Parameters
    ----------
    folder : str or path-like
    n : int, default 200
    seed : int, default 0
    """
    rng, lines = np.random.default_rng(seed), {"ham": _TALK.splitlines(), "spam": _SALE.splitlines()}
    for kind, own_lines in lines.items():
        subfolder = Path(folder) / kind
        subfolder.mkdir(parents=True, exist_ok=True)
        for number in range(n // 2):
            other_lines = lines["ham" if kind == "spam" else "spam"]
            parts = [own_lines if rng.random() < 0.93 else other_lines for _ in range(rng.integers(3, 8))]
            sentences = [part[rng.integers(10)] for part in parts]
            sender = f"user{rng.integers(50)}@mail{rng.integers(4)}.example"
            header = f"From: {sender}\nTo: you@home.example\nSubject: {sentences[0]}"
            body = ".\n".join(sentences[1:])
            text = f"{header}\nMessage-ID: <{rng.integers(2**40):x}@example>\n\n{body}.\n"
            (subfolder / f"{number:04}.eml").write_text(text, encoding="utf-8")
