"""Mails as tokens in C++, many at once; what they are, `tallybayes.apps.spam` says, which is the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallybayes import kernels

if TYPE_CHECKING:
    from tallybayes.kernels._compiled import MailBatch, MailWords
    from tallybayes.kernels.arguments import AnyArray, Int64Array


def mail_batch(reference: dict[str, Any]) -> MailBatch | None:
    """Return an empty batch of mails, or None where the kernels are not compiled.

    Parameters
    ----------
    reference : dict
        The functions of the reference that are asked where a mail is not plain, its limits and its words.
    """
    return kernels._kernels.MailBatch(reference) if hasattr(kernels._kernels, "MailBatch") else None


def mail_words() -> MailWords | None:
    """Return words by their first occurrence, none yet, or None where the kernels are not compiled."""
    return kernels._kernels.MailWords() if hasattr(kernels._kernels, "MailWords") else None


def pack_words(
    ids: Int64Array, tokens: AnyArray, lengths: Int64Array
) -> tuple[list[bytes], Int64Array, Int64Array] | None:
    """Pack the ids of the words of mails, or return None where the kernels are not compiled.

    Parameters
    ----------
    ids : array of int64
        By word.
    tokens : array of int32
        The words of all mails, one mail after the other.
    lengths : array of int64
        How many each mail has.

    Returns
    -------
    packed, ids, counts
        The bytes of every mail; all ids that come in them, in order; how many mails have each.
    """
    return kernels._kernels.pack_words(ids, tokens, lengths) if hasattr(kernels._kernels, "pack_words") else None
