"""What several families share: scoring forms, leave-one-out, empirical priors, Newton's method."""
