"""Drop-in replacements for the models of hmmlearn: the same names, constructors, attributes and predictions.

Replace ``from hmmlearn.hmm import GaussianHMM`` by ``from tallybayes.hmmlearn import GaussianHMM``. The E-step runs in
the kernels of this package. The models add missing time steps, ``fit(X, lengths, states=…)``, `forget`, ``+`` and
``model_``.
"""

try:
    import hmmlearn as _hmmlearn  # noqa: F401
except ImportError as error:
    raise ImportError(
        "hmmlearn is not installed; tallybayes.hmmlearn derives its models from it.\n"
        "    pip install hmmlearn, or use tb.HiddenMarkovModel, which does not need it."
    ) from error

from tallybayes.hmmlearn.hmm import GMMHMM, CategoricalHMM, GaussianHMM, MultinomialHMM, PoissonHMM

__all__ = ["GMMHMM", "CategoricalHMM", "GaussianHMM", "MultinomialHMM", "PoissonHMM"]
