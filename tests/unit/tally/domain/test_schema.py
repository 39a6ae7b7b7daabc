"""Schemas: columns that share a domain."""

from tallybayes.tally.domain import Schema


def test_columns_that_share_a_domain():
    schema = Schema({"from": "state", "to": "state"}, ["state"], ["state"])
    assert [schema.domain(name) for name in ("from", "to", "other", 3)] == ["state", "state", "other", "3"]
    assert (schema.sorted_domains, schema.missing_level_domains) == (("state",), ("state",))
    assert schema == Schema((("from", "state"), ("to", "state")), ("state",), ("state",))
    assert schema != Schema({"from": "state"}, ["state"], ["state"])
