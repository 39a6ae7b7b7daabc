"""Without hmmlearn, what stands in for its models cannot be imported: not it, its chapter, nor the reference."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("hmmlearn") else ["src/tallybayes/hmmlearn/*", "docs/29-*.md", "docs/site/*"]
