"""The main job in a terminal: learn, estimate, predict, merge and forget. ``make demo`` runs it."""

from __future__ import annotations

import sys
import time

import numpy as np


def main() -> None:
    """Show what counting gives, on coins and on Fisher's irises."""
    start = time.perf_counter()
    import tallybayes as tb
    from tallybayes.errors import StatisticsError

    show = sys.stdout.write
    show("Tallybayes: count once; add, subtract and re-estimate for ever.\n\n")
    show("A coin fell on heads twice. How far is it biased?\n")
    coin, prior = tb.learn([1, 1], tb.Bernoulli()), tb.Beta(2, 2)
    posterior = coin.posterior(prior)
    low, high = posterior.interval(0.95)
    show(f"  maximum likelihood       {coin.estimate('mle'):.3f}\n")
    show(f"  MAP under Beta(2, 2)     {coin.estimate('map', prior=prior):.3f}\n")
    show(f"  posterior mean           {posterior.mean():.3f}, 95 % between {low:.3f} and {high:.3f}\n")
    show(f"  evidence                 {coin.bits(prior).evidence:.3f} bits for two tosses (a fair coin: 2)\n")

    rng = np.random.default_rng(0)
    n = 1_000_000
    group = rng.choice(np.array(["ham", "spam"]), n)
    size = rng.normal(np.where(group == "spam", 9.0, 6.0), 1.5)
    words = rng.poisson(np.where(group == "spam", 4.0, 1.0))
    factors = [
        tb.Factor("folder", (), tb.Categorical()),
        tb.Factor("size", "folder", tb.Gaussian()),
        tb.Factor("exclamations", "folder", tb.Poisson()),
    ]
    table = {"folder": group, "size": size, "exclamations": words}
    clock = time.perf_counter()
    whole = tb.count(table, factors)
    show(f"\n{n:,} mails counted in {time.perf_counter() - clock:.2f} s: all that a classifier needs of them.\n")
    show("  " + repr(whole).replace("\n", "\n  ") + "\n")
    halves = [
        tb.count({k: v[part] for k, v in table.items()}, factors) for part in (slice(0, n // 2), slice(n // 2, n))
    ]
    show(f"\n  two halves added are the whole:       {(halves[0] + halves[1]).isclose(whole)}\n")
    show(f"  the second half taken out again:      {(whole - halves[1]).isclose(halves[0])}\n")
    try:
        halves[0] - whole
    except StatisticsError as error:
        show("  more taken out than was put in:       " + str(error).splitlines()[0] + "\n")
    show(f"\nDone in {time.perf_counter() - start:.1f} s. The handbook in docs/ goes on from here.\n")


if __name__ == "__main__":
    main()
