"""Mails as tokens in C++, many at once; what they are, `tallybayes.apps.spam` says, which is the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallybayes import kernels

if TYPE_CHECKING:
    from tallybayes.kernels._compiled import MailBatch


def mail_batch(reference: dict[str, Any]) -> MailBatch | None:
    """Return an empty batch of mails, or None where the kernels are not compiled.

    Parameters
    ----------
    reference : dict
        The functions of the reference that are asked where a mail is not plain, its limits and its words.
    """
    return kernels._kernels.MailBatch(reference) if hasattr(kernels._kernels, "MailBatch") else None
