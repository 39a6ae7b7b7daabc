"""Drop-ins for the models of hmmlearn: the same names, constructors, attributes and answers; our kernels count.

``from tallybayes.hmmlearn import GaussianHMM`` instead of ``from hmmlearn.hmm import GaussianHMM``: nothing else
changes. What is gained is missing steps, ``fit(X, lengths, states=…)``, `forget`, ``+`` and ``model_``.
"""

try:
    import hmmlearn as _hmmlearn  # noqa: F401
except ImportError as error:
    raise ImportError(
        "hmmlearn is not installed; expected it, since these stand in for its models.\n"
        "    pip install 'tallybayes[hmmlearn]', or use tb.HiddenMarkovModel, which needs nothing of it."
    ) from error

from tallybayes.hmmlearn.hmm import GMMHMM, CategoricalHMM, GaussianHMM, MultinomialHMM, PoissonHMM

__all__ = ["GMMHMM", "CategoricalHMM", "GaussianHMM", "MultinomialHMM", "PoissonHMM"]
