"""Mail to tokens: mailboxes, MIME, HTML and words."""
