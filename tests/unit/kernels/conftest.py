import pytest

from tests.unit.kernels.kernel_cases import TIERS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `tier` once for every compiled build this processor can run."""
    if "tier" in metafunc.fixturenames:
        skipped = pytest.param(None, marks=pytest.mark.skip(reason="tallybayes was installed without compiled kernels"))
        metafunc.parametrize("tier", TIERS or [skipped])
