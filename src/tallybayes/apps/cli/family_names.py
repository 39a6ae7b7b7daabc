"""Names of families on the command line."""

# Names of each family; the help shows the first.
FAMILIES = {
    "Categorical": ("categorical", "label", "labels", "category", "string", "discrete"),
    "Text": ("text", "words"),
    "Bernoulli": ("binary", "bernoulli", "boolean", "bool", "yes-no"),
    "Poisson": ("count", "counts", "poisson"),
    "Gaussian": ("gaussian", "normal", "number", "numeric", "float", "measure"),
    "LogNormal": ("log-normal", "lognormal"),
    "TiedGaussian": ("tied-gaussian",),
}
FAMILY_WORDS = {word: name for name, words in FAMILIES.items() for word in words}
