"""A filter against spam: mails become distinct tokens, which are counted; Bayes' rule judges. No text is kept."""
