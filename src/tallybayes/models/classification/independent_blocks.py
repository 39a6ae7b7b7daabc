"""IndependentBlocksMixin: methods of models with independent blocks of columns given the class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.models.classification.joint import n_parameters_joint
from tallybayes.models.classification.methods.linear_form import to_linear
from tallybayes.models.classification.methods.uncertainty import predict_proba_interval
from tallybayes.models.inputs.input_format import open_rows
from tallybayes.models.inspection.gaussian_parameters import covariances, means
from tallybayes.models.inspection.labeled_parameters import posteriors_by_column

if TYPE_CHECKING:
    import numpy as np

    from tallybayes.distributions.parameter_distribution import Interval
    from tallybayes.estimation.distribution_fit import DescriptionLength
    from tallybayes.models.classification.class_conditional import ClassConditionalModel as Base
    from tallybayes.models.classification.methods.linear_form import LinearForm
    from tallybayes.models.inspection.parameter_table import Posteriors
    from tallybayes.typing import RandomState, Rows
else:
    from tallybayes.models.estimator import Estimator as Base


class IndependentBlocksMixin(Base):
    """Methods of models p(class) Π p(block | class), whose factors have separate conjugate priors.

    The marginal likelihood and the posterior distribution of such a model are products over its factors.
    """

    def predict_proba_interval(
        self, X: Rows, mass: float = 0.95, *, n_draws: int = 400, random_state: RandomState = 0
    ) -> Interval:
        """Return credible intervals of the predicted probabilities: their uncertainty given the training rows.

        If the model is true with parameters θ, p(class | row, θ) lies in the interval with probability `mass`. The
        parameters of each factor are drawn from their posterior distribution, that of ``estimate="bayes"`` whatever the
        estimate of the model. Estimated class probabilities are drawn, too: under a `Dirichlet` given as
        ``class_prior``, else under ``Dirichlet(1)`` (with "frequency", over the classes with rows). Fixed probabilities
        are certain. The uncertainty from shrinkage and from EM is ignored.

        Parameters
        ----------
        X : as for `fit`, without the target
        mass : float, default 0.95
            The posterior probability of each interval.
        n_draws : int, default 400
            The number of draws of the parameters; at least 2/(1 − mass) − 1.
        random_state : int, Generator or None, default 0
            The same seed gives the same intervals, whatever the batches of rows.

        Returns
        -------
        Interval
            ``low`` and ``high``, each of shape (n, classes), separately for each class.

        Examples
        --------
        >>> import numpy as np, tallybayes as tb
        >>> rows, labels = [[0], [0], [1], [1], [1]], ["no", "no", "no", "yes", "yes"]
        >>> model = tb.NaiveBayes(tb.Bernoulli(), prior=1).fit(rows, labels)
        >>> model.predict_proba([[1]])[0].round(2)
        array([0.42, 0.58])
        >>> low, high = model.predict_proba_interval([[1]])
        >>> bool(low[0, 1] < 0.2), bool(high[0, 1] > 0.8)           # wide, because there are five rows
        (True, True)
        """
        check_is_fitted(self, "tally_")
        self._require_counts("how sure a probability is")
        estimates = self._estimated_classifier.integrated
        return predict_proba_interval(estimates, open_rows(self, X), mass, n_draws, random_state)

    def to_linear(self) -> LinearForm:
        """Return the linear form: P(classes_[1] | x) = σ(coef · x + intercept), or the coefficients of all classes.

        It exists for `Bernoulli` and `Multinomial` columns under every estimate, and for `Poisson` and `TiedGaussian`
        columns under ``"mle"``, ``"unbiased"`` and ``"map"``. Otherwise `NotLinearError` names the columns.

        Returns
        -------
        LinearForm
            It prints the coefficients by column; ``compare`` shows those of a logistic regression beside them.

        Examples
        --------
        >>> import tallybayes as tb
        >>> mails = {"card": [1, 1, 0, 0], "winner": [1, 1, 1, 0]}
        >>> tb.NaiveBayes(tb.Bernoulli(), estimate="map").fit(mails, ["spam", "spam", "ham", "ham"]).to_linear()
        P(spam | x) = 1 / (1 + exp(−(intercept + w · x))): spam where intercept + w · x > 0, else ham
          column       weight
          (intercept)  -1.792
          card          2.197
          winner        1.099
        """
        return to_linear(self._estimated_classifier, getattr(self, "feature_names_in_", ()))

    @property
    def n_parameters_joint_(self) -> int | None:
        """The number of parameters of the full joint table; None unless every column is categorical or binary."""
        return n_parameters_joint(self._estimated_classifier)

    def log_evidence(self) -> float:
        """Return the log marginal likelihood (log evidence) of the counted rows in nats, parameters integrated out.

        By the chain rule it is the sum of the log predictive probability of each row, including its label or state,
        given the rows before. The parameters are integrated under ``prior_``, whatever the ``estimate`` (``"map"`` has
        default priors of its own). Class probabilities are integrated under ``class_prior`` if it is a `Dirichlet`,
        else under ``Dirichlet(1)`` (for ``"map"``, ``Dirichlet(2)``); fixed class probabilities stay fixed. The levels
        of a column, and the data dependence of default priors, are treated as given. Constant columns have no finite
        density and are excluded. A missing cell removes its row from the factors that need it. `tb.compare` computes
        Bayes factors.

        Returns
        -------
        float

        Examples
        --------
        >>> import numpy as np, tallybayes as tb
        >>> model = tb.NaiveBayes(tb.Bernoulli(), prior=1).fit([[1], [1], [0]], ["a", "a", "b"])
        >>> labels, cells = 2 / 4 / 3 / 2, [1 / 3, 1 / 2]             # under Dirichlet(1) and Beta(1, 1)
        >>> bool(np.isclose(model.log_evidence(), np.log(labels * cells[0] * cells[1])))
        True
        """
        return self._likelihood_measures("evidence").evidence().log_evidence

    def description_length(self) -> DescriptionLength:
        """Return the description lengths of the rows: data given the MAP parameters, parameters, and by the evidence.

        Returns
        -------
        DescriptionLength
            In bits. The density term may be negative, because a density may exceed 1.
        """
        return self._likelihood_measures("code length").description_length()

    @property
    def bic_(self) -> float:
        """The Bayesian information criterion, −2 log p(rows) + parameters · log(weight): lower is better.

        The likelihood is that of the maximum likelihood estimate, or of the last iteration of EM.
        """
        return self._likelihood_measures("BIC").bic

    @property
    def aic_(self) -> float:
        """Akaike's information criterion, −2 log p(rows) + 2 · parameters: lower is better; see ``bic_``."""
        return self._likelihood_measures("AIC").aic

    @property
    def posterior_(self) -> Posteriors:
        """The posterior distributions of the parameters by column, with `mean`, `interval` and `sample`.

        The leading axes of their arrays are the groups, in the order of the tables. They are ``prior_`` updated by the
        counts, whatever the ``estimate``; after EM, by the expected counts. For a variance tied over groups, the arrays
        keep an axis of one column.
        """
        self._require_counts("a posterior")
        return posteriors_by_column(type(self).__name__, self._labeled_factors())

    @property
    def means_(self) -> np.ndarray:
        """The means of all Gaussian columns in every class or state, shape (groups, columns), in the order of X.

        If states are mixtures, shape (states, components, columns).
        """
        return means(self._labeled_factors(), getattr(self, "feature_names_in_", ()), type(self).__name__)

    @property
    def covariances_(self) -> np.ndarray:
        """The covariances of all Gaussian columns in every class or state, shape (groups, columns, columns).

        They follow the estimate, ``covariance=`` and ``shrinkage=`` in use; under ``"bayes"`` they are posterior means.
        Columns that the model assumes independent have covariance 0. A tied covariance is repeated for each group.
        """
        return covariances(self._labeled_factors(), getattr(self, "feature_names_in_", ()), type(self).__name__)
