"""Functions of the C++ module: those of `tallybayes.kernels.reference.sums`, and the choice of instruction set."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array, Int64Array
from tallybayes.kernels.text.tokenizer import TokenRule

def built_tiers() -> list[str]: ...
def available_tiers() -> list[str]: ...
def use_tier(tier: str) -> None: ...
def compiler() -> str: ...
def available_threads() -> int: ...
def count_groups(
    group: AnyArray | None, n_groups: int, weight: Float64Array | None, n_rows: int
) -> tuple[Int64Array, Float64Array]: ...
def count_codes(
    columns: Columns,
    sizes: Int64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None,
    threads: int,
) -> Float64Array: ...
def count_joint(
    columns: Columns, sizes: Int64Array, sets: list[tuple[int, ...]], weight: Float64Array | None, threads: int
) -> Float64Array: ...
def count_pairs(
    columns: Columns, sizes: Int64Array, group: AnyArray | None, n_groups: int, weight: Float64Array | None
) -> AnyArray: ...
def climb_dirichlet(
    counts: Float64Array,
    rows: Float64Array,
    many: Float64Array,
    sizes: Int64Array,
    n_levels: Int64Array,
    n_groups: int,
) -> Float64Array: ...

class PartlyKnown:
    cells: float
    instances: int
    def __init__(
        self,
        codes: AnyArray,
        sizes: Int64Array,
        members: Int64Array,
        ends: Int64Array,
        by_row: AnyArray,
        sums_to_one: Int64Array,
        order: Int64Array,
        kept: AnyArray,
        weight: Float64Array | None,
    ) -> None: ...
    def expect(self, tables: Float64Array, logs: Float64Array, threads: int) -> tuple[Float64Array, float]: ...
    def answer(
        self, tables: Float64Array, logs: Float64Array, asked: AnyArray, threads: int
    ) -> tuple[Float64Array, Float64Array]: ...

def best_cuts(table: AnyArray, n_classes: int, n_log_n: Float64Array) -> Int64Array: ...
def sum_dense(
    columns: Columns, kind: str, group: AnyArray | None, n_groups: int, weight: Float64Array | None, threads: int
) -> tuple[Float64Array, Float64Array, Float64Array]: ...
def sum_csr(
    indptr: AnyArray,
    indices: AnyArray,
    data: AnyArray,
    n_columns: int,
    kind: str,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None,
    threads: int,
) -> tuple[Float64Array, Float64Array, Float64Array]: ...
def log_base_csr(indptr: AnyArray, data: AnyArray, kind: str, threads: int) -> Float64Array: ...
def sum_moments(
    columns: Columns,
    anchor: Float64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None,
    threads: int,
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array]: ...
def sum_scatter(
    columns: Columns,
    anchor: Float64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None,
    threads: int,
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array]: ...
def squared_lengths(
    columns: Columns,
    center: Float64Array,
    roots: Float64Array,
    shifts: Float64Array,
    n_classes: int,
    threads: int,
) -> Float64Array: ...
def read_bytes(array: AnyArray, threads: int) -> int: ...

class Scorer:
    def __init__(self, start: Float64Array, factors: list[tuple[Any, ...]]) -> None: ...
    def joint(self, blocks: Sequence[Any], n_rows: int, threads: int) -> Float64Array: ...
    def argmax(self, blocks: Sequence[Any], n_rows: int, threads: int) -> Int64Array: ...
    def posterior(
        self,
        blocks: Sequence[Any],
        n_rows: int,
        log_prior: Float64Array,
        rows: Int64Array | None,
        log_proba: Float64Array,
        log_density: Float64Array,
        threads: int,
    ) -> None: ...

def posterior_by_part(
    scorers: list[Any],
    blocks: Sequence[Any],
    n_rows: int,
    part: AnyArray,
    log_prior: Float64Array,
    log_proba: Float64Array,
    log_density: Float64Array,
    threads: int,
) -> None: ...
def distinct_strings(
    offsets: AnyArray, data: AnyArray, valid: AnyArray | None, skipped: int, codes: npt.NDArray[np.int32]
) -> Int64Array: ...
def token_strings(text: bytes, rule: TokenRule) -> list[str]: ...
def buckets(data: AnyArray, offsets: Int64Array, hashing: int) -> Int64Array: ...

class MailBatch:
    def __init__(self, reference: dict[str, Any]) -> None: ...
    def add(self, raw: bytes) -> bool: ...
    def add_tokens(self, tokens: list[str]) -> None: ...
    def words(self) -> bytes: ...
    def tokens(self) -> bytes: ...
    def lengths(self) -> bytes: ...

class MailWords:
    def __init__(self) -> None: ...
    def __len__(self) -> int: ...
    def places(self, words: bytes) -> AnyArray: ...
    def in_order(self, places: AnyArray) -> tuple[AnyArray, list[str]]: ...
    def starts(self) -> tuple[list[str], AnyArray]: ...

def pack_words(
    ids: Int64Array, tokens: AnyArray, lengths: Int64Array
) -> tuple[list[bytes], Int64Array, Int64Array]: ...

class Vocabulary:
    def __init__(self, data: AnyArray, offsets: Int64Array) -> None: ...
    def positions(self, data: AnyArray, offsets: Int64Array) -> Int64Array: ...

def joined_texts(strings: list[Any], threads: int) -> tuple[Int64Array, AnyArray] | None: ...
def text_rows(
    offsets: AnyArray,
    data: AnyArray,
    valid: AnyArray | None,
    skipped: int,
    rule: TokenRule,
    hashing: int,
    vocabulary: Vocabulary | None,
    threads: int,
) -> tuple[Int64Array, AnyArray, AnyArray, AnyArray | None, Int64Array | None]: ...
def count_texts(
    offsets: AnyArray,
    data: AnyArray,
    valid: AnyArray | None,
    skipped: int,
    rule: TokenRule,
    hashing: int,
    group: AnyArray | None,
    n_groups: int,
    presence: bool,
    threads: int,
) -> tuple[AnyArray | None, Int64Array | None, Float64Array, Float64Array, Float64Array]: ...
def score_texts(
    offsets: AnyArray,
    data: AnyArray,
    valid: AnyArray | None,
    skipped: int,
    rule: TokenRule,
    hashing: int,
    vocabulary: Vocabulary | None,
    terms: Float64Array,
    presence: bool,
    threads: int,
) -> Float64Array: ...
def column_ranges(columns: Columns, threads: int) -> tuple[Int64Array, Int64Array]: ...
def chain_log_likelihood(
    start: Float64Array,
    transition: Float64Array,
    end: Float64Array | None,
    emission: Float64Array | tuple[AnyArray, Float64Array],
    offsets: Int64Array,
    log_likelihood: Float64Array,
    threads: int,
) -> None: ...
def chain_viterbi(
    start: Float64Array,
    transition: Float64Array,
    end: Float64Array | None,
    emission: Float64Array | tuple[AnyArray, Float64Array],
    offsets: Int64Array,
    path: Int64Array,
    score: Float64Array,
    threads: int,
) -> None: ...
def chain_best_paths(
    start: Float64Array,
    transition: Float64Array,
    end: Float64Array | None,
    emission: Float64Array | tuple[AnyArray, Float64Array],
    offsets: Int64Array,
    paths: Int64Array,
    score: Float64Array,
    threads: int,
) -> None: ...
def chain_draw_paths(
    start: Float64Array,
    transition: Float64Array,
    end: Float64Array | None,
    emission: Float64Array | tuple[AnyArray, Float64Array],
    offsets: Int64Array,
    uniform: Float64Array,
    paths: Int64Array,
    log_likelihood: Float64Array,
    threads: int,
) -> None: ...
def chain_filter(
    start: Float64Array,
    transition: Float64Array,
    end: Float64Array | None,
    emission: Float64Array | tuple[AnyArray, Float64Array],
    offsets: Int64Array,
    rows: Float64Array,
    log_likelihood: Float64Array,
    threads: int,
) -> None: ...
def chain_posterior(
    start: Float64Array,
    transition: Float64Array,
    end: Float64Array | None,
    emission: Float64Array | tuple[AnyArray, Float64Array],
    offsets: Int64Array,
    rows: Float64Array,
    log_likelihood: Float64Array,
    threads: int,
) -> None: ...
def chain_expected(
    start: Float64Array,
    transition: Float64Array,
    end: Float64Array | None,
    emission: Float64Array | tuple[AnyArray, Float64Array],
    offsets: Int64Array,
    weight: Float64Array | None,
    rows: Float64Array,
    log_likelihood: Float64Array,
    threads: int,
) -> tuple[Float64Array, Float64Array, Float64Array]: ...
def join_arrays(
    parts: list[AnyArray], lengths: Int64Array, shorter: bool, item_bytes: int, at_most: int, threads: int
) -> tuple[AnyArray, int] | int | None: ...
