"""A small BIF file that tests of the format change and break."""

import io

from tallybayes.models.network.io.bif import read_bif

START = """network test {
}
variable A {
  type discrete [ 2 ] { a0, a1 };
}
variable B {
  type discrete [ 3 ] { b0, b1, b2 };
}
"""
ROOT = "probability ( A ) {\n  table 0.25, 0.75;\n}\n"  # lines 9 to 11
CHILD = "probability ( B | A ) {\n  (a0) 0.5, 0.25, 0.25;\n  (a1) 0.0, 0.0, 1.0;\n}\n"  # lines 12 to 15
WHOLE = START + ROOT + CHILD


def read(text):
    return read_bif(io.StringIO(text))
