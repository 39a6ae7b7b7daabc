"""Compiled tokenizer of mails. The Python modules of `tallybayes.apps.spam` are its reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallybayes.kernels import active

if TYPE_CHECKING:
    from tallybayes.kernels._compiled import MailBatch, MailWords
    from tallybayes.kernels.arguments import AnyArray, Int64Array


def mail_batch(reference: dict[str, Any]) -> MailBatch | None:
    """Return an empty batch of mails, or None if the kernels are not compiled.

    Parameters
    ----------
    reference : dict
        Constants, word lists and rarely used functions of the reference.
    """
    return active.module.MailBatch(reference) if hasattr(active.module, "MailBatch") else None


def mail_words() -> MailWords | None:
    """Return an empty table of numbered words, or None if the kernels are not compiled."""
    return active.module.MailWords() if hasattr(active.module, "MailWords") else None


def pack_words(
    ids: Int64Array, tokens: AnyArray, lengths: Int64Array
) -> tuple[list[bytes], Int64Array, Int64Array] | None:
    """Pack the word ids of mails, or return None if the kernels are not compiled.

    Parameters
    ----------
    ids : array of int64
        Id of each word.
    tokens : array of int32
        Concatenated word indices of all mails.
    lengths : array of int64
        Number of words of each mail.

    Returns
    -------
    packed, ids, counts
        Packed bytes of each mail, the distinct ids in order, and the number of mails of each.
    """
    return active.module.pack_words(ids, tokens, lengths) if hasattr(active.module, "pack_words") else None
