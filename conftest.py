"""Without hmmlearn, what stands in for its models cannot be imported: not it, its chapter, nor the reference."""

from importlib.util import find_spec

without = ["src/tallybayes/hmmlearn/*", "docs/from-hmmlearn.md", "docs/site/*"]
collect_ignore_glob = [] if find_spec("hmmlearn") else without
