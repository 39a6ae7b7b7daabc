"""The package's own rules: arrows that point one way, public names, sizes of files, who asks for types."""

import ast
import inspect
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import tallybayes as tb
from tallybayes.families._shared.log_prob_forms import Form
from tallybayes.families.family import Family
from tallybayes.models.base import Model
from tallybayes.models.estimator import Estimator

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tallybayes"
MODULES = sorted(PACKAGE.rglob("*.py"))

# From the bottom up: a part may import itself and what stands before it. `testing` may use everything.
LAYERS = [
    ["messages"],
    ["errors", "warnings", "typing"],
    ["_utils"],
    ["kernels"],
    ["statistics", "versions"],
    ["distributions"],
    ["families"],
    ["tally"],
    ["data"],
    ["results"],
    ["estimation"],
    ["models"],
    ["evaluation", "export"],
    ["plotting", "datasets"],
    ["apps", "sklearn", "hmmlearn"],
]
HEIGHT = {part: height for height, layer in enumerate(LAYERS) for part in layer}
# Upward, but only when asked for: models and results draw their own pictures, classifiers write their own pages, and
# themselves in other languages.
ON_REQUEST = {(part, "plotting") for part in ("distributions", "results", "estimation", "models")}
ON_REQUEST |= {("models", "apps"), ("models", "export")}
ANYTHING = {"testing", "__init__", "__main__"}
# The rooms of `models`, and what each may import of them besides itself: kinds of models know nothing of each other.
SHARED = {"inputs", "inspection", "sklearn_bases", "estimator", "base", "receipt", "name_hints"}
ROOMS = {
    "sklearn_bases": set(),
    "inputs": set(),
    "inspection": {"inputs"},
    "io": {"estimator"},
    "name_hints": set(),
    "receipt": set(),
}
ROOMS["estimator"] = {"name_hints", "sklearn_bases"}
ROOMS["base"] = {"io", "estimator", "inputs", "inspection"}
ROOMS |= dict.fromkeys(("network", "regression"), SHARED)
ROOMS["hmm"] = SHARED | {"io"}  # a filter writes its model into its own file
ROOMS["streaming"] = SHARED | {"io"}  # so do windows
ROOMS["classification"] = SHARED | {"io"}  # one is made of others, and writes them into its file
KINDS = ("naive_bayes", "discriminant", "nearest_mean", "one_dependence", "mixture")
ROOMS |= dict.fromkeys(KINDS, SHARED | {"classification"})
ROOMS["forest"] = SHARED | {"io", "classification"}
ROOMS["ensemble"] = SHARED | {"io", "classification", "forest", *KINDS}
# Optional libraries and the one part that may import each at module level; None: only inside functions.
OPTIONAL = {"hypothesis": "testing", "matplotlib": "plotting", "pytest": "testing"}
OPTIONAL |= {"cyclopts": "apps", "rich": None, "networkx": None, "pandas": None, "polars": None, "pyspark": None}
OPTIONAL |= {"onnx": None, "hmmlearn": "hmmlearn"}


def part_of(module: Path) -> str:
    """The part of the package a file belongs to: its folder, or its own name."""
    first = module.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)  # no expression holds an import


def imports_of(tree: ast.AST, *, deep: bool) -> list[str]:
    """The dotted names that code imports when it is loaded or, if deep, ever; types alone do not count."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, BLOCKS):
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif is_type_checking(node):
            continue
        elif deep or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += imports_of(node, deep=deep)
    return found


@cache
def all_imports(module: Path) -> tuple[list[str], list[str]]:
    tree = parsed(module)
    return imports_of(tree, deep=False), imports_of(tree, deep=True)


def imports(module: Path, *, deep: bool) -> list[str]:
    return all_imports(module)[deep]


def own_parts(names: list[str]) -> set[str]:
    parts = {name.split(".")[1] for name in names if name.startswith("tallybayes.")}
    return {part for part in parts if (PACKAGE / part).is_dir() or (PACKAGE / f"{part}.py").exists()}


def parsed(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


def told(module: Path) -> str:
    return str(module.relative_to(PACKAGE))


def test_arrows_point_one_way():
    assert {part_of(module) for module in MODULES} <= set(HEIGHT) | ANYTHING, "every part has a place among the layers"
    wrong = [
        f"{told(module)} imports {other}"
        for module in MODULES
        if (part := part_of(module)) not in ANYTHING
        for other in own_parts(imports(module, deep=False))
        if other != part and HEIGHT.get(other, len(LAYERS)) >= HEIGHT[part]
    ]
    assert not wrong


def test_imports_inside_functions_point_down_too():
    found = set()
    for module in MODULES:
        part = part_of(module)
        if part in ANYTHING:
            continue
        for other in own_parts(imports(module, deep=True)):
            if other != part and HEIGHT.get(other, len(LAYERS)) > HEIGHT[part]:
                found.add((part, other))
    assert found == ON_REQUEST


MODELS = [module for module in (PACKAGE / "models").rglob("*.py") if module != PACKAGE / "models" / "__init__.py"]


def test_kinds_of_models_do_not_know_each_other():
    wrong = []
    for module in MODELS:
        room = module.relative_to(PACKAGE / "models").parts[0].removesuffix(".py")
        names = [name for name in imports(module, deep=True) if name.startswith("tallybayes.models.")]
        wrong += [f"{told(module)}: {name}" for name in names if name.split(".")[2] not in ROOMS[room] | {room}]
    assert not wrong


def test_optional_libraries_are_imported_in_their_one_place():
    loaded = {module: {name.split(".")[0] for name in imports(module, deep=False)} for module in MODULES}
    wrong = [
        f"{told(module)} imports {library} when it is loaded"
        for module in MODULES
        for library in loaded[module] & set(OPTIONAL)
        if OPTIONAL[library] != part_of(module)
    ]
    assert not wrong


def loaded_by(code: str) -> set[str]:
    """The libraries that are in memory after some code ran in a fresh process."""
    script = f"{code}\nimport sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    environment = {**os.environ, "TALLYBAYES_KERNELS": os.environ.get("TALLYBAYES_KERNELS", "")}
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment)
    return set(out.stdout.split())


HEAVY = {"scipy", "sklearn", "pyarrow", "pandas", "polars", "narwhals", "matplotlib", "hypothesis", "pyspark"}


def test_importing_the_package_is_light():
    assert not loaded_by("import tallybayes; dir(tallybayes)") & (HEAVY | {"numpy"})


LIGHT = ["kernels", "statistics.counts", "statistics.totals", "statistics.moments", "_utils.sealed_file"]


@pytest.mark.parametrize("module", LIGHT)
def test_the_lower_layers_are_light(module):
    assert not loaded_by(f"import warnings; warnings.simplefilter('ignore'); import tallybayes.{module}") & HEAVY


# ---- Public names -----------------------------------------------------------------------------------------------


def test_the_table_of_names_agrees_with_the_types():
    declared = {}
    for node in parsed(PACKAGE / "__init__.py").body:
        if is_type_checking(node):
            for line in node.body:
                assert isinstance(line, ast.ImportFrom)
                for alias in line.names:
                    assert alias.asname == alias.name, "re-exported under its own name"
                    declared[alias.name] = line.module.removeprefix("tallybayes.")
    assert declared.pop("results") == "tallybayes"  # a module
    assert declared == tb._PUBLIC
    assert list(tb._PUBLIC) == sorted(tb._PUBLIC)
    assert set(dir(tb)) >= set(tb._PUBLIC)


def test_every_public_name_resolves_and_is_documented():
    for name, module in tb._PUBLIC.items():
        thing = getattr(tb, name)
        assert (thing.__name__, thing.__module__) == (name, f"tallybayes.{module}")
        assert thing.__doc__, f"{name} has its own docstring, not an inherited one"
        if not (isinstance(thing, type) and issubclass(thing, Exception)):  # errors are caught, not called
            assert "Examples\n--------\n>>>" in (inspect.getdoc(thing) or ""), name


def public_models():
    return [name for name in tb._PUBLIC if isinstance(getattr(tb, name), type) and issubclass(getattr(tb, name), Model)]


def test_a_model_has_few_base_classes():
    # Model, the base of the models with classes, Classifier, the model itself, and at most one class in between: the
    # base of a kind with several models, or a mixin. `Estimator`, scikit-learn's base here, does not count.
    for name in public_models():
        own = [kind for kind in getattr(tb, name).__mro__ if kind.__module__.startswith("tallybayes")]
        assert own.pop() is Estimator, name
        assert len(own) <= 5, name


def test_other_names_do_not_resolve():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tb.nonsense  # noqa: B018


APPS = sorted(path for room in ("apps", "sklearn", "hmmlearn") for path in (PACKAGE / room).rglob("*.py"))


def test_applications_use_public_names_alone():
    # They are written as any user could write them: what they lack, the library offers to all. They phrase messages by
    # the functions of messages.py. The one kernel that is an application's own reads mails. Drop-ins for hmmlearn take
    # the loops over steps and rows from the kernels: theirs are other formulas between the two steps of EM.
    rooms = {
        "apps": (
            "tallybayes.apps.",
            "tallybayes.datasets.",
            "tallybayes.messages.",
            "tallybayes.apps.spam.tokens.token_kernel.",
        ),
        "sklearn": ("tallybayes.sklearn.",),
        "hmmlearn": ("tallybayes.hmmlearn.", "tallybayes.kernels."),
    }
    for module in APPS:
        tree = parsed(module)
        own = [name for name in imports(module, deep=True) if name.startswith("tallybayes.")]
        allowed = rooms[part_of(module)] + (("tallybayes.kernels.",) if module.stem == "token_kernel" else ())
        assert all(f"{name}.".startswith(allowed) for name in own), f"{told(module)}: {own}"
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
        private = [
            ast.unparse(node)
            for node in attributes
            if node.attr.startswith("_") and not node.attr.startswith("__")
            if ast.unparse(node.value) not in ("self", "super()") and node.attr not in {"_asdict", "_fields", *defined}
        ]
        assert not private or module.stem == "token_kernel", told(module)
        asked = {node.attr for node in attributes if ast.unparse(node.value) == "tb"}
        assert asked <= {*tb._PUBLIC, "__version__", "results"}, told(module)


# ---- Tests ------------------------------------------------------------------------------------------------------

UNIT = ROOT / "tests" / "unit"
# Tests of the repository, not of a module.
OF_ALL = {
    "test_fuzz",
    "test_layout",
    "test_install",
    "test_setup",
    "test_how_a_fit_works",
    "test_kernel_stub",
    "test_notebook",
    "test_printable",
    "test_frozen_files",
    "test_hostile_files",
    "test_benchmark_results",
    "test_large_tables",
}
# Modules without tests of their own are parts of what people use, and tested through it: the package, and where.
THROUGH = {
    "": "test_frozen_files.py",  # errors, warnings and types where they are met
    "_utils": "_utils/test_sealed_file.py",  # sealed files, and what writing them takes
    "apps": "apps/report",
    "apps/cli": "apps/cli/commands/whole",
    "apps/cli/commands": "apps/cli/commands/whole",
    "apps/cli/commands/spam": "apps/spam/whole",
    "apps/report": "apps/report/test_html_report.py",
    "apps/spam": "apps/spam/whole",
    "apps/spam/store": "apps/spam/store/test_spam_store.py",
    "apps/spam/tokens": "apps/spam/whole",
    "data": "data/whole",  # every source beside the arrays
    "data/files": "data/whole",
    "data/sql": "data/sql/test_query_source.py",
    "estimation": "models/whole",
    "estimation/calibration": "models/classification/methods",
    "estimation/resampling": "models/whole",
    "estimation/scoring": "models/whole",
    "evaluation": "evaluation/whole",
    "evaluation/checks": "evaluation/whole",
    "evaluation/comparison": "evaluation/whole",
    "evaluation/validation": "evaluation/whole",
    "export": "export/test_sql_export.py",
    "families/_shared": "families/whole",
    "families/protocols": "families/whole",
    "hmmlearn": "hmmlearn/whole",
    "kernels": "kernels/whole",  # both implementations side by side
    "kernels/reference": "kernels/whole",
    "kernels/text": "kernels/text/test_text_counts.py",
    "models": "models/whole",
    "models/classification": "models/naive_bayes/naive_bayes",
    "models/discriminant": "models/discriminant/gaussian_discriminant",
    "models/classification/methods": "models/classification/methods",
    "models/ensemble": "models/ensemble/test_auto_classifier.py",
    "models/forest": "models/forest/whole",
    "models/hmm": "models/hmm/hidden_markov_model",
    "models/hmm/fitting": "models/hmm/hidden_markov_model",
    "models/inputs": "models/inputs/whole",
    "models/inspection": "models/whole",
    "models/nearest_mean": "models/nearest_mean",
    "models/network": "models/network/bayesian_network",
    "models/network/analysis": "models/network/analysis",
    "models/network/inference": "models/network/inference",
    "models/network/io": "models/network/io",
    "models/network/structure": "models/network/structure",
    "models/one_dependence": "models/one_dependence",
    "models/regression": "models/regression/test_linear_regression.py",
    "models/streaming": "models/streaming/test_window.py",
    "plotting": "plotting/whole",  # every plot, with few and with many of everything
    "plotting/classifier": "plotting/whole",
    "plotting/evaluation": "plotting/whole",
    "plotting/hmm": "plotting/whole",
    "plotting/network": "plotting/whole",
    "results": "evaluation/whole",
    "sklearn": "sklearn/whole",
    "tally": "tally/test_tally.py",
    "testing": "../laws",  # the laws are tested by keeping them, and by families that break them
}


def mirrored(test: Path) -> Path | None:
    """The module or package that a test file is of: the one of its name, that of its folder, or of the one above."""
    place = test.relative_to(UNIT).parent
    name = test.stem.removeprefix("test_")
    candidates = [place / f"{name}.py", place / name, place.with_suffix(".py") if place.name else place / "-"]
    if place.name == "whole":
        candidates.append(place.parent)
    return next((PACKAGE / path for path in candidates if (PACKAGE / path).exists()), None)


def test_tests_are_where_their_module_is():
    # tests/unit/a/test_b.py is of a/b.py, and so are all files of tests/unit/a/b; what holds for all modules of a
    # package is in its folder `whole`.
    tests = [path for path in UNIT.rglob("test_*.py") if not (path.parent == UNIT and path.stem in OF_ALL)]
    assert [str(path.relative_to(UNIT)) for path in tests if mirrored(path) is None] == []


def test_modules_have_tests_that_can_be_guessed():
    tested = {mirrored(path) for path in UNIT.rglob("test_*.py")}
    others = [path for path in MODULES if path.stem not in ("__init__", "__main__") and path not in tested]
    packages = {str(path.parent.relative_to(PACKAGE)).removeprefix(".") for path in others}
    assert packages <= set(THROUGH), "tests/unit/a/test_b.py for every module a/b.py there, please"
    assert set(THROUGH) <= packages, "take these out of THROUGH: all of their modules have tests of their own now"
    assert [place for place in THROUGH.values() if not (UNIT / place).exists()] == []


def tracked_files() -> list[Path]:
    out = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if out.returncode:  # not a checkout: what a source distribution holds
        return [path for path in ROOT.rglob("*") if path.is_file() and ".venv" not in path.parts]
    return [ROOT / name for name in out.stdout.split("\0") if name]


def test_nothing_of_one_machine_is_in_the_repository():
    # Homes, mounts and package mirrors of whoever wrote a file are of no use to anyone else.
    places = "|".join(["home", "root", "Users", "work", "workspace", "tmp", "mnt", "opt/venv"])
    machine = re.compile(
        rf"(?<![\w.~$}}/-])/(?:{places})/[A-Za-z_.]|--(?:extra-)?index-url|https?://[\w.-]*(?:pypi|artifactory|nexus)\b(?!\.org)"
    )
    wrong = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # a picture, or a file that was removed but not yet from the index
        if path == Path(__file__).resolve():
            continue
        wrong += [f"{path.relative_to(ROOT)}: {found.group()}" for found in machine.finditer(text)]
    assert not wrong


# ---- What only families know ------------------------------------------------------------------------------------

FAMILIES = {
    one.__name__
    for one in map(tb.__getattr__, tb._PUBLIC)
    if isinstance(one, type) and issubclass(one, Family) and one is not Family
}
FORMS = {kind.__name__ for kind in Form.__args__}
SCORERS = {
    "extreme_rows",
    "leave_one_out_scorer",
    "row_scorer",
    "factor_scorer",
    "factor_tables",
    "explanation",
    "linear_form",
}  # where a form becomes numbers
SCORERS |= {"portable_scorer", "column_log_probs"}  # or is written in another language


def asked(node: ast.AST) -> list[ast.expr]:
    """The classes that an expression asks whether something is one of: by type, by identity, or by a pattern."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
        return node.args[1:]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    return [node.cls] if isinstance(node, ast.MatchClass) else []


def classes_asked_for(tree: ast.AST, names: set[str]) -> list[str]:
    """Where code asks whether something is of one of these classes; a call makes a value, which may be compared."""
    found = []
    for node in ast.walk(tree):
        parts = [part for expression in asked(node) for part in ast.walk(expression)]
        called = {id(part.func) for part in parts if isinstance(part, ast.Call)}
        if any(isinstance(part, ast.Name) and part.id in names and id(part) not in called for part in parts):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def tuples_of(tree: ast.AST, names: set[str]) -> list[str]:
    """Collections of these classes, by which types could be asked for elsewhere; arguments of types are none."""
    arguments = {id(node.slice) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
    several = [node for node in ast.walk(tree) if isinstance(node, ast.Tuple | ast.List | ast.Set)]
    several = [node for node in several if id(node) not in arguments]
    return [ast.unparse(node) for node in several if {ast.unparse(part) for part in node.elts} & names]


def estimates_compared(tree: ast.AST) -> list[str]:
    """Where the name of an estimate is compared with a string."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            named = any(re.fullmatch(r"(\w+\.)*_?estimate", ast.unparse(side)) for side in sides)
            words = (part for side in sides for part in ast.walk(side) if isinstance(part, ast.Constant))
            if named and any(isinstance(word.value, str) for word in words):
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


@pytest.mark.slow
def test_what_a_family_or_an_estimate_is_they_say_themselves():
    for module in MODULES:
        tree, part, name = parsed(module), part_of(module), module.stem
        if part not in ("families", "testing"):
            assert not classes_asked_for(tree, FAMILIES), (
                f"{told(module)}: a family says what it is, by a hook of Family"
            )
            assert not tuples_of(tree, FAMILIES), told(module)
        if part != "families" and name not in SCORERS:
            assert not classes_asked_for(tree, FORMS), f"{told(module)}: forms are told apart where they are scored"
        if name != "estimates":
            assert not estimates_compared(tree), f"{told(module)}: read_estimate says what an estimate does"


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(family, Gaussian)",
        "isinstance(self.family, Gaussian | Bernoulli)",
        "issubclass(kind, (Gaussian, Poisson))",
        "type(family) is Bernoulli",
        "type(family) in (Categorical, Bernoulli)",
        "type(factor.family).collect is Categorical.collect",
        "match family:\n    case Gaussian():\n        pass",
    ],
)
def test_asking_for_a_type_is_noticed(line):
    assert classes_asked_for(ast.parse(line), FAMILIES)
    assert not classes_asked_for(ast.parse(line), {"Binned"})


def test_asking_for_the_name_of_an_estimate_is_noticed():
    for line in ("estimate == 'map'", "self.model.estimate != 'bayes'", "estimate in ('map', 'bayes')"):
        assert estimates_compared(ast.parse(line))
    for line in ("estimate == other", "how == 'map'", "families == [LogNormal()]"):
        assert not estimates_compared(ast.parse(line))
    assert not classes_asked_for(ast.parse("LogNormal() in families"), FAMILIES)
    assert tuples_of(ast.parse("DISCRETE = (Bernoulli, Poisson)"), FAMILIES)
