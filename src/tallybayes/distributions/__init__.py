"""Prior and posterior distributions of parameters: Beta, Dirichlet, Gamma, normal-inverse-gamma and others."""
