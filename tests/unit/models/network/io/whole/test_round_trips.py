"""BIF files: reading files of other programs, and round trips."""

import gzip
import io
import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes.errors import DataError
from tallybayes.models.network.io.bif import read_bif, write_bif
from tallybayes.models.network.io.bif_scanner import quote_name
from tallybayes.models.network.io.network_tables import NetworkTables
from tests.examples import examples
from tests.shared import DATA, needs
from tests.unit.models.network.io.bif_examples import ROOT, START, WHOLE, read

# nodes, edges and free parameters, as www.bnlearn.com/bnrepository lists them
NETWORKS = {
    "asia": (8, 8, 18),
    "cancer": (5, 4, 10),
    "earthquake": (5, 4, 10),
    "survey": (6, 6, 21),
    "sachs": (11, 17, 178),
    "alarm": (37, 46, 509),
    "insurance": (27, 52, 1008),
    "hepar2": (70, 123, 1453),
    "water": (32, 66, 10083),
}


def with_rows(rows, header="A"):
    """A network whose node C, with levels c0 and c1, has a block with the header and rows given."""
    parents = f" | {header}" if header else ""
    return read(
        f"{WHOLE}variable C {{ type discrete [ 2 ] {{ c0, c1 }}; }}\nprobability ( C{parents} ) {{ {rows} }}"
    ).tables["C"]


# ---- What others write ------------------------------------------------------------------------------------------


@needs("networks")
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_the_bnlearn_repository(name, tmp_path):
    path = DATA / "networks" / f"{name}.bif.gz"
    network = read_bif(path)
    n_parameters = sum(table[..., 1:].size for table in network.tables.values())
    assert (len(network.parents), sum(map(len, network.parents.values())), n_parameters) == NETWORKS[name]
    write_bif(network, tmp_path / "again.bif")
    assert read_bif(tmp_path / "again.bif") == network

    # These files are regular enough to be read line by line, without a grammar.
    n_rows = 0
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        header = re.match(r"probability \( (\S+)(?: \| (.*))? \) \{", line)
        row = re.match(r"  (?:table|\((.*)\)) (.*);", line)
        if header:
            node, parents = header[1], header[2].split(", ") if header[2] else []
            assert network.parents[node] == tuple(parents)
        elif row:
            labels = row[1].split(", ") if row[1] else []
            at = tuple(network.levels[parent].index(label) for parent, label in zip(parents, labels, strict=True))
            numbers = np.array([float(number) for number in row[2].split(", ")])
            exact = abs(numbers.sum() - 1) <= 1e-6
            np.testing.assert_array_equal(network.tables[node][at], numbers if exact else numbers / numbers.sum())
            n_rows += 1
    assert n_rows == sum(table[..., 0].size for table in network.tables.values())


def test_javabayes():
    network = read("""// Bayesian Network in the Interchange Format
// Produced by hand, in the way of JavaBayes
network "Dog-Problem" { //3 variables and 3 probability distributions
\tproperty "credal-set constant-density-bounded 1.1; or so" ;
}
variable  "family-out" { //2 values
\ttype discrete[2] {  "true"  "false" };
\tproperty "position = (112, 69)" ;
}
variable  "bowel-problem" { //2 values
\ttype discrete[2] {  "true""false" };
}
variable  "dog-out" { //2 values
\ttype discrete[2] {  "true"  "false" };
}
probability (  "family-out" ) { //1 variable(s) and 2 values
\ttable 0.15 0.85 ;
}
probability (  "bowel-problem" ) {
\ttable 0.01 0.99 ;
}
probability (  "dog-out"  "bowel-problem"  "family-out" ) { //3 variable(s) and 8 values
\ttable 0.99 0.97 0.9 0.3 0.01 0.03 0.1 0.7 ;
}
""")
    assert network.parents["dog-out"] == ("bowel-problem", "family-out")
    assert network.levels["dog-out"] == ("true", "false")
    # the node changes slowest, the last parent fastest: out with both, without the family's leave, …
    np.testing.assert_array_equal(network.tables["dog-out"][..., 0], [[0.99, 0.97], [0.9, 0.3]])
    np.testing.assert_array_equal(network.tables["dog-out"][..., 1], [[0.01, 0.03], [0.1, 0.7]])


def test_a_table_of_all_rows_equals_its_rows():
    rows = "".join(f"(a{a}, b{b}) 0.{3 * a + b + 1}, 0.{9 - 3 * a - b};" for a, b in product(range(2), range(3)))
    table = "table " + ", ".join([f"0.{i}" for i in range(1, 7)] + [f"0.{i}" for i in range(9, 3, -1)]) + ";"
    assert with_rows(rows, "A, B").shape == (2, 3, 2)
    np.testing.assert_array_equal(with_rows(rows, "A, B"), with_rows(table, "A, B"))
    np.testing.assert_array_equal(with_rows(rows, "A, B")[1, 0], [0.4, 0.6])


def test_default_replaces_missing_rows():
    expected = [[0.5, 0.5], [0.125, 0.875]]
    np.testing.assert_array_equal(with_rows("(a1) 0.125, 0.875; default 0.5, 0.5;"), expected)
    np.testing.assert_array_equal(with_rows("default 0.5, 0.5; (a1) 0.125, 0.875;"), expected)
    np.testing.assert_array_equal(with_rows("default 0.5, 0.5;"), [[0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_array_equal(with_rows("(a0) 0.25, 0.75; (a1) 0, 1; default 1, 0;"), [[0.25, 0.75], [0, 1]])
    np.testing.assert_array_equal(with_rows("default 0.5, 0.5;", ""), [0.5, 0.5])


def test_rows_come_in_any_order():
    np.testing.assert_array_equal(
        with_rows("(b2) 0, 1; (b0) 1, 0; (b1) 0.25, 0.75;", "B"), [[1, 0], [0.25, 0.75], [0, 1]]
    )


@pytest.mark.parametrize(
    "header", ["( B | A )", "(B|A)", "( B A )", "( B, A )", '("B" "A")', "( B /* given */ | // its parent\n A )"]
)
def test_headers(header):
    assert read(WHOLE.replace("( B | A )", header)) == read(WHOLE)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text.replace(" ", "\t"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", " "),
        lambda text: text.replace(",", " , "),
        lambda text: text.replace(",", ""),
        lambda text: text.replace(";", "/* ; */;//}\n"),
        lambda text: text.replace("};", '}; property position = (1, 2) } http://x.y 5" ;'),
        lambda text: text.replace("{\n}", '{ property "a;b" ; property author = me; }'),
        lambda text: text.replace("network test", 'network "a test" of mine'),
        lambda text: text.replace("network test", "network"),
        lambda text: text.replace("0.25, 0.75;", "0.25, // a quarter\n 0.75 /* the rest */ ;"),
        lambda text: text.rstrip() + " // the end",
    ],
)
def test_layout_of_the_text_does_not_matter(change):
    assert change(WHOLE) != WHOLE
    assert read(change(WHOLE)) == read(WHOLE)
    assert read_bif(io.BytesIO(change(WHOLE).encode())) == read(WHOLE)


def test_numbers():
    found = with_rows("(a0) .5, 5.E-1; (a1) 1e-3, +0.999;")
    np.testing.assert_array_equal(found, [[0.5, 0.5], [0.001, 0.999]])
    np.testing.assert_array_equal(with_rows("(a0) 1, 0; (a1) 0E5, 10.0e-1;"), [[1, 0], [0, 1]])


def test_levels_of_published_files():
    levels = [
        "<5",
        "12+",
        "Asy/Patch",
        ">=10%",
        "0-6_days",
        "x[1]",
        "a\\b",
        "größe",
        "property",
        "'q'",
        "0.5",
        "-",
        "#",
    ]
    known = ", ".join(levels)
    rows = "".join(f"({level}) 1, 0;" for level in levels)
    network = read(f"""network n {{ }}
        variable table {{ type discrete [ {len(levels)} ] {{ {known} }}; }}
        variable default {{ type discrete [ 2 ] {{ network, probability }}; }}
        probability ( table ) {{ table 1 {"0 " * (len(levels) - 1)}; }}
        probability ( default | table ) {{ {rows} }}""")
    assert network.levels == {"table": tuple(levels), "default": ("network", "probability")}


def test_quotes_and_escapes():
    network = read(r"""network n { } variable "a b" { type discrete [ 5 ] { "", "\"", "\\n", "\n\r", "C:\temp" }; }
        probability ( "a b" ) { table 1 0 0 0 0; }""")
    assert network.levels == {"a b": ("", '"', "\\n", "\n\r", "C:\\temp")}


# ---- Sums -------------------------------------------------------------------------------------------------------


def test_rows_are_kept_exactly_or_normalized():
    assert np.sum([0.7, 0.2, 0.1]) != 1.0
    third = np.array([0.3333, 0.3333, 0.3333])
    table = read(START + ROOT + "probability ( B | A ) { (a0) 0.7, 0.2, 0.1; (a1) 0.3333, 0.3333, 0.3333; }").tables[
        "B"
    ]
    assert table[0].tolist() == [0.7, 0.2, 0.1]
    np.testing.assert_array_equal(table[1], third / third.sum())
    just = 1 - 2e-6
    assert with_rows(f"default 0, {just!r};")[0].tolist() == [0, 1]
    near = 1 - 0.5e-6
    assert with_rows(f"default 0, {near!r};")[0].tolist() == [0, near]


# ---- Round trips ------------------------------------------------------------------------------------------------


@st.composite
def networks(draw):
    names = draw(st.lists(st.text(max_size=6), min_size=1, max_size=4, unique=True))
    # the signs that mean something in a file come often
    label = st.text(st.sampled_from('ab ,;{}()[]|"/\\*\n\r\tn') | st.characters(codec="utf-8"), max_size=4)
    parents, levels, tables = {}, {}, {}
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    for place, name in enumerate(names):
        parents[name] = draw(st.permutations(names[:place]).map(lambda found: tuple(found[:2])))
        levels[name] = tuple(draw(st.lists(label, min_size=1, max_size=3, unique=True)))
        shape = [len(levels[other]) for other in (*parents[name], name)]
        weights = generator.gamma(0.05, size=shape) + 1e-300  # some numbers are tiny
        tables[name] = weights / weights.sum(axis=-1, keepdims=True)
    return NetworkTables(parents, levels, tables)


@pytest.mark.slow
@given(network=networks(), packed=st.booleans())
@examples(150)
def test_any_network_round_trips(network, packed, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / ("any.bif" + ".gz" * packed)
    write_bif(network, path)
    again = read_bif(path)
    assert again == network
    assert list(again.parents) == list(network.parents)
    assert path.read_bytes().startswith(b"\x1f\x8b" if packed else b"network unknown {")


def test_levels_become_text(tmp_path):
    network = NetworkTables({1: (), "x": (1,)}, {1: (False, True), "x": (-1, 10)}, {1: [0.5, 0.5], "x": np.eye(2)})
    write_bif(network, str(tmp_path / "n.bif"))
    again = read_bif(str(tmp_path / "n.bif"))
    assert again.levels == {"1": ("False", "True"), "x": ("-1", "10")}
    assert again.parents == {"1": (), "x": ("1",)}
    np.testing.assert_array_equal(again.tables["x"], np.eye(2))


def test_written_text(tmp_path):
    network = NetworkTables(
        {"A": (), "b c": ("A",)}, {"A": ("<5", "5/6"), "b c": ("x", "")}, {"A": [0.1, 0.9], "b c": np.eye(2)}
    )
    write_bif(network, tmp_path / "n.bif")
    assert (
        (tmp_path / "n.bif").read_bytes().decode()
        == """network unknown {
}
variable A {
  type discrete [ 2 ] { <5, "5/6" };
}
variable "b c" {
  type discrete [ 2 ] { x, "" };
}
probability ( A ) {
  table 0.1, 0.9;
}
probability ( "b c" | A ) {
  (<5) 1.0, 0.0;
  ("5/6") 0.0, 1.0;
}
"""
    )


@pytest.mark.parametrize("name", ["", " ", "a b", *',;{}()[]|"/', "a\nb", "\xa0", "\x00", "\u2028"])
def test_special_names_are_quoted(name):
    assert quote_name(name).startswith('"')
    assert quote_name(name).endswith('"')
    assert "\n" not in quote_name(name)


@pytest.mark.parametrize("name", ["a", "<5", ">=10%", "a\\b", "größe", "0-6_days", "None", "-1"])
def test_plain_names_are_not_quoted(name):
    assert quote_name(name) == name


def test_equal_networks_give_equal_bytes(tmp_path):
    network = read(WHOLE)
    write_bif(network, tmp_path / "one.bif.gz")
    write_bif(network, tmp_path / "another.BIF.GZ")
    one = (tmp_path / "one.bif.gz").read_bytes()
    assert one == (tmp_path / "another.BIF.GZ").read_bytes()
    assert one[4:8] == b"\0\0\0\0"  # no time


def test_files_are_replaced_atomically(tmp_path):
    path = tmp_path / "n.bif"
    path.write_text("precious")
    bad = NetworkTables(
        {"A": (), "\ud800": ()}, dict.fromkeys("A\ud800", ("x", "y")), dict.fromkeys("A\ud800", (0.5, 0.5))
    )
    for target in (path, tmp_path / "n.bif.gz"):
        with pytest.raises(DataError, match="surrogates"):
            write_bif(bad, target)
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]
    write_bif(read(WHOLE), path)
    assert read_bif(path) == read(WHOLE)
    assert list(tmp_path.iterdir()) == [path]


def test_other_objects_raise(tmp_path):
    with pytest.raises(DataError, match="tables is a dict; expected NetworkTables"):
        write_bif({}, tmp_path / "n.bif")
