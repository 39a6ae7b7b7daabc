"""Text of 20 Newsgroups, counted from its bytes: scikit-learn's rule is scikit-learn's, count for count."""

import tarfile

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

from tallybayes.kernels.text.text_counts import TokenRule, WordIndex, count_texts, score_texts, text_rows
from tests.shared import DATA, needs

pytestmark = needs("20newsgroups")


@pytest.fixture(scope="module")
def posts():
    """Every tenth post, and the number of its group."""
    texts, groups = [], []
    with tarfile.open(DATA / "20newsgroups" / "20news-bydate.tar.xz") as archive:
        for k, member in enumerate(member for member in archive if member.isfile()):
            if k % 10 == 0:
                texts.append(archive.extractfile(member).read().decode("latin-1"))
                groups.append(member.name.split("/")[-2])
    return texts, np.unique(groups, return_inverse=True)[1]


def strings(texts):
    parts = [text.encode() for text in texts]
    return np.cumsum([0, *map(len, parts)]), np.frombuffer(b"".join(parts), np.uint8), None, 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "part"),
    [
        (TokenRule("sklearn"), slice(None)),
        (TokenRule("sklearn", lowercase=False), slice(0, 300)),
        (TokenRule("sklearn", ngram_range=(1, 2)), slice(0, 300)),
        (TokenRule("sklearn", characters=True, ngram_range=(1, 3)), slice(0, 100)),
    ],
    ids=str,
)
def test_rows_are_those_of_scikit_learn(posts, rule, part):
    texts = posts[0][part]
    analyzer = "char" if rule.characters else "word"
    peer = CountVectorizer(lowercase=rule.lowercase, ngram_range=rule.ngram_range, analyzer=analyzer)
    expected = peer.fit_transform(texts)
    rows = text_rows(*strings(texts), rule)
    words = WordIndex(rows.data, rows.offsets).words()
    assert sorted(words) == peer.get_feature_names_out().tolist()
    place = np.array([peer.vocabulary_[word] for word in words])
    assert rows.indptr.tolist() == expected.indptr.tolist()
    for row in range(len(texts)):
        span = slice(rows.indptr[row], rows.indptr[row + 1])
        order = np.argsort(place[rows.indices[span]])
        assert place[rows.indices[span]][order].tolist() == np.sort(expected.indices[span]).tolist()
        assert rows.counts[span][order].tolist() == expected[row].sorted_indices().data.tolist()


@pytest.mark.slow
def test_counts_and_scores_are_scikit_learn_s_naive_bayes(posts):
    texts, groups = posts
    rule = TokenRule("sklearn")
    found = count_texts(*strings(texts), rule, groups, 20)
    words = WordIndex(found.data, found.offsets)
    peer = CountVectorizer(vocabulary=words.words())
    model = MultinomialNB().fit(peer.transform(texts), groups)
    assert found.total.tolist() == model.feature_count_.tolist()
    terms = np.ascontiguousarray(model.feature_log_prob_.T)
    scores = score_texts(*strings(texts), rule, terms, vocabulary=words) + model.class_log_prior_
    np.testing.assert_allclose(scores, model.predict_joint_log_proba(peer.transform(texts)), rtol=1e-12)
