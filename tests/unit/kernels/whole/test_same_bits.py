"""Every tier, compiler and processor gives the same bits.

The digests were made once and hold everywhere. They change only with the arithmetic itself: then look at what changed,
and write down the new ones, which the failing test shows. The baseline of x86-64 has no fused multiply-add, so it
rounds some products once more than all others, and has digests of its own.
"""

from __future__ import annotations

import platform

import pytest

from tallybayes.kernels import active
from tests.unit.kernels.bits_cases import CASES, Draw, arrays_of, digest
from tests.unit.kernels.kernel_cases import TIERS

FUSED = {
    "counting": "cb156b5392b39c90",
    "dense sums": "ac05ec4944029ace",
    "sparse sums": "ebbfbac365b24132",
    "moments": "9f94f159d9f5024d",
    "scatter": "cba4eb3625f104ac",
    "scoring": "2aee4f7f01fc6675",
    "chains": "d91e99c76e8b6c89",
    "tempering": "b8e48a6764e7cb68",
    "wide chains": "5fabd6b3dee78ae2",
    "dirichlets": "6004280d998c771d",
    "chain paths": "abcb61e66900e4ea",
    "mixtures": "f7b84b379a73fd13",
}
PLAIN = {
    "counting": "cb156b5392b39c90",
    "dense sums": "091d8963073d84de",
    "sparse sums": "c8be75d0489a571a",
    "moments": "daa5b24487edeb47",
    "scatter": "2513303308cb34d2",
    "scoring": "4780c8ff55ef6483",
    "chains": "6409c67e39211f8a",
    "tempering": "d9904c7a344c6a56",
    "wide chains": "a95bab0ebb8cdb62",
    "dirichlets": "6004280d998c771d",
    "chain paths": "39e189e7ecf2a32f",
    "mixtures": "c6c2b0ea0c04b65b",
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", CASES)
def test_digest(tier: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tallybayes.kernels import _compiled

    monkeypatch.setattr(active, "module", _compiled)
    _compiled.use_tier(tier)
    try:
        found = digest(arrays_of(CASES[name](Draw(1 + list(CASES).index(name)))))
    finally:
        _compiled.use_tier(TIERS[-1])
    expected = PLAIN if tier == "baseline" and platform.machine() in ("x86_64", "AMD64") else FUSED
    assert found == expected[name]
