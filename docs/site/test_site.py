"""The site hangs together: its navigation, the reference, and what pages say of names that can be imported."""

import inspect
import re

import api
import command
import docstrings
import pages
import pytest
import subjects

import tallybayes as tb

REFERENCE = [page for every in subjects.pages().values() for page in every]
NAMES = [(page, name) for page in REFERENCE for name in page.names]
WRITTEN = pages.origins()
NAVIGATION = re.findall(r"^ *- (?:.*: )?([\w/.-]+\.md)$", (pages.HERE / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
ANCHORS = api.every_anchor()


def test_the_navigation_names_every_page_once_and_no_other():
    assert sorted(NAVIGATION) == sorted([*WRITTEN, "reference/index.md", command.FILE])


def test_every_public_name_is_told_of_once():
    told = [name for page, name in NAMES if page.prefix == "tb."]
    results = {f"results.{name}" for name in set(tb.results.__all__) - set(tb._PUBLIC)}
    assert set(told) == {*tb._PUBLIC, *results}
    assert len(told) == len(set(told))


def test_no_two_pages_have_one_name_where_capitals_do_not_count():
    files = [page.file.lower() for page in REFERENCE]
    assert len(files) == len(set(files))


@pytest.mark.parametrize(("page", "name"), NAMES, ids=[page.prefix + name for page, name in NAMES])
def test_every_public_name_says_what_it_is_and_shows_it(page, name):
    thing = page.names[name]
    text = inspect.getdoc(thing)
    assert text
    is_error = isinstance(thing, type) and issubclass(thing, Exception)
    assert is_error or page.prefix == "tallybayes.testing." or ">>>" in text


@pytest.mark.parametrize("page", REFERENCE, ids=lambda page: page.file)
def test_pages_of_the_reference_have_every_name_with_its_anchor(page):
    text = api.page_text(page, subjects.anchors())
    for name, thing in page.names.items():
        whole = page.prefix + name
        assert f" {{ #{whole} }}\n" in text
        if isinstance(thing, type):
            for each in (*api.members(thing), *api.attributes(thing)):
                assert not each.startswith("_")
                assert f"#{whole}.{each} .method }}" in text or f"<a id='{whole}.{each}'>" in text


def test_functions_that_models_bind_are_shown_as_methods():
    text = api.reference()["reference/NaiveBayes.md"]
    assert "\n.forget(X, y, sample_weight=None, *, receipt=False)\n" in text
    assert "\ntb.NaiveBayes.from_parameters(" in text
    assert not re.search(r"^\.\w+\((model|self)\b", text, flags=re.MULTILINE)
    assert "get_metadata_routing" not in text


def test_what_a_public_class_above_has_is_told_there():
    assert "log_prob" not in api.members(tb.Poisson)
    assert ANCHORS["tb.Poisson.log_prob"] == "reference/Family.md#tb.Family.log_prob"


@pytest.mark.parametrize("place", [place for place in WRITTEN if place not in pages.OUTSIDE])
def test_names_in_the_text_can_be_imported(place):
    text = "".join(pages.FENCE.split(WRITTEN[place].read_text(encoding="utf-8"))[::2])
    unknown = [match[1] for match in pages.NAMED.finditer(text) if match[1] not in ANCHORS]
    assert not unknown


@pytest.mark.parametrize("place", WRITTEN)
def test_every_picture_says_in_words_what_it_shows(place):
    assert not re.findall(r"!\[\s*\]\(", WRITTEN[place].read_text(encoding="utf-8"))


def test_names_become_links_in_text_alone():
    text = "# `tb.Beta`\n\nA `tb.Beta(1, 1)`, `tb.Beta.mean` and `tb.nothing`.\n\n```pycon\n>>> `tb.Beta`\n```\n"
    shown = pages.linked(text, ANCHORS)
    assert "A [`tb.Beta(1, 1)`](reference/Beta.md#tb.Beta), [`tb.Beta.mean`](reference/Beta.md#tb.Beta.mean)" in shown
    assert shown.startswith("# `tb.Beta`\n")
    assert ">>> `tb.Beta`\n" in shown
    assert "`tb.nothing`." in shown


def test_links_lead_to_where_pages_are_on_the_site():
    places = {"CHANGELOG.md": "changelog.md", "docs/bernoulli-model.md": "bernoulli-model.md"}
    text = "[a](../CHANGELOG.md#top) [b](bernoulli-model.md) ![c](figures/bags.png) [d](#here)"
    shown = pages.moved(text, pages.DOCS / "README.md", places)
    assert shown == "[a](changelog.md#top) [b](bernoulli-model.md) ![c](figures/bags.png) [d](#here)"


def test_docstrings_become_tables_and_examples():
    text = (
        "One line, of (*given, columns) and (*given, 1), is *meant*.\n\nParameters\n----------\nx, y : int | None\n"
        "    What `Beta` takes.\n\n    - 1: one.\n    - None:\n      no value.\n\n"
        "Returns\n-------\nself, or Beta\n\nExamples\n--------\n>>> 1\n1\n"
    )
    shown = docstrings.markdown(text, {"Beta": "Beta.md"}.get)
    assert shown.split("\n\n") == [
        "One line, of (\\*given, columns) and (\\*given, 1), is *meant*.",
        "| parameter | description |\n|---|---|\n"
        "| `x`, `y` | *int \\| None*<br>What [`Beta`](Beta.md) takes.<br>• 1: one.<br>• None: no value. |",
        "**Returns** self, or [Beta](Beta.md)",
        "```pycon\n>>> 1\n1\n```",
    ]


def test_links_from_folders_lead_up():
    places = {"benchmarks/RESULTS.md": "benchmarks.md"}
    origin = pages.ROOT / "benchmarks/results/em.md"
    assert pages.moved("[a](../RESULTS.md#top)", origin, places, "results/em.md") == "[a](../benchmarks.md#top)"


def test_indented_blocks_are_formulas_and_items_of_lists_are_not():
    text = "So\n\n    θ = a/b\n\nwith n_k of `x_j`.\n\n- An item.\n\n    More of it.\n"
    shown = pages.linked(text, {})
    assert "<mfrac><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></mfrac>" in shown
    assert "with <i>n</i><sub>k</sub> of `x_j`." in shown
    assert "\n    More of it.\n" in shown


def test_the_help_of_every_subcommand_is_in_the_reference():
    text = command.page()
    for name in (*command.COMMANDS, *(f"spam {name}" for name in command.SPAM_COMMANDS)):
        assert f"\n## tally {name} {{ #{name.replace(' ', '-')} .method }}\n" in text
        assert f"\nUsage: tally {name}" in text


def test_columns_without_a_name_have_one_for_screen_readers():
    shown = pages.linked("| | x |\n|---|---|\n| | 1 |\n", {})
    assert shown == "| <span class='read-aloud'>entry</span> | x |\n|---|---|\n| | 1 |\n"
