# Each target is one visible command. The environment comes first, once.
PYTHON ?= python3.11
CORES ?= 2
BIN = .venv/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)
export HF_HUB_OFFLINE ?= 1
# It would add settings of other workflows, such as another cluster's.
unexport SNAKEMAKE_PROFILE

.PHONY: help env docs article results retrain archive replay test test-kills test-certificates test-cluster lint lab bench notebooks ledgers hashes architectures tables clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: .venv/installed .venv/compiled  ## create .venv with everything pinned

# An environment works only in the folder that it was made in: after a move or a copy, it is made again.
ifneq ($(shell cat .venv/installed 2>/dev/null),$(CURDIR))
.PHONY: moved
.venv/installed: moved
endif

# pip refuses a package whose file has none of the listed hashes. PyTorch's file depends on the index that it comes from.
.venv/installed: requirements.lock requirements.hashed pyproject.toml replication/pyproject.toml workflow/terminal/pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; v in ((3, 11), (3, 12)) or sys.exit("PYTHON must be Python 3.11 or 3.12, got %d.%d; run: make env PYTHON=python3.11" % v)'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/pip install --quiet --quiet "$$(grep '^torch==' requirements.lock)"
	$(BIN)/pip install --quiet --quiet --no-deps --require-hashes -r requirements.hashed
	$(BIN)/pip install --quiet --quiet --no-deps --editable . --editable replication --editable workflow/terminal
	@printf '%s\n' "$(CURDIR)" > $@

.venv/compiled: .venv/installed setup.py kernels/support.cpp $(wildcard kernels/support_*.h)
	$(BIN)/python setup.py --quiet build_ext --inplace
	@touch $@

results: env  ## run the workflow: every table, figure and verdict, and the report
	snakemake --cores $(CORES)

# Train all models from scratch and compare them with the shipped checkpoints; rounding may differ on another processor.
retrain: env  ## train all models from scratch, and compare them with the shipped ones
	snakemake --cores $(CORES) --configfile config/demo.yaml --config profile=retrained checkpoints=False
	-replicate compare-weights results/retrained

# `archive` packs the default run into one file; `replay` redraws everything from such a file, without network or training.
archive: results  ## pack the default run into one file
	snakemake --cores 1 archive
	@printf '%s\n' "archive  results/demo.zip"

# The name of the archive stays as it is: neither make nor the shell expands it.
unexport ARCHIVE
replay: env  ## redraw everything from such a file: make replay ARCHIVE=results/demo.zip
	@test -n '$(subst ','\'',$(value ARCHIVE))' || { echo "ARCHIVE must be the file to replay: make replay ARCHIVE=results/demo.zip"; exit 2; }
	replicate replay --cores $(CORES) -- '$(subst ','\'',$(value ARCHIVE))'

# Tests and small jobs run one thread per process, because each of several processes would start a thread per core.
test: lint  ## lint, unit tests, the workflow and every notebook
	OMP_NUM_THREADS=1 pytest -q --numprocesses $(CORES) --dist loadscope --no-loadscope-reorder --ignore tests/made tests
	OMP_NUM_THREADS=1 snakemake --cores $(CORES) claims --configfile config/smoke.yaml
	$(MAKE) --no-print-directory results
	$(MAKE) --no-print-directory docs
	OMP_NUM_THREADS=1 pytest -q --numprocesses $(CORES) --dist loadscope tests/made
	snakemake --cores 1 --dry-run | grep --quiet "Nothing to be done"
	OMP_NUM_THREADS=1 JUPYTER_DEFAULT_PROVISIONER_NAME=file-sockets pytest -q --numprocesses $(CORES) --dist loadfile --nbval-lax --nbval-current-env --nbval-cell-timeout 300 notebooks

# Kill a run, or some of its jobs, fifty times; `make test` does so six times.
test-kills: env  ## kill a run fifty times
	KILLS=50 pytest -q tests/workflow/test_kills.py

# Check certificates on a million rows; CI checks ten thousand.
test-certificates: env  ## check certificates on a million rows
	ROWS=1000000 pytest -q --capture=no tests/kernels/test_certificates_many.py

# Run through Slurm; needs root, and Debian's slurm-wlm and munge.
test-cluster: env  ## run through Slurm (as root)
	python tests/cluster/run.py $$(mktemp -d)

lint: env  ## check style, imports and the workflow
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile workflow
	lint-imports --no-cache --no-logo
	python workflow/scripts/lint.py

# The settings turn off Jupyter's news and update prompts.
LAB = .venv/share/jupyter/lab/settings
lab: env  ## open the notebooks in JupyterLab
	@mkdir -p $(LAB)
	@printf '%s\n' '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}' > $(LAB)/overrides.json
	jupyter lab notebooks/index.ipynb

bench: env  ## measure each function and its baseline
	python benchmarks/normalizers.py
	python benchmarks/recall_sweep.py
	python benchmarks/graph_memory.py
	python benchmarks/masked_decoding.py
	python benchmarks/block_sparse_cpu.py
	python benchmarks/cpu_peers.py
	python benchmarks/cpu_encoder.py
	python benchmarks/certificate.py
	python benchmarks/kernel_instructions.py

# Store the last run's notebooks, and its step durations, from which the next run estimates the time left.
notebooks: results  ## store the last run's outputs in notebooks/
	for name in $$(cd notebooks && find . -name '*.ipynb' -not -path '*/.*' -not -name index.ipynb -not -name tutorial.ipynb); do jupyter nbconvert --log-level ERROR --to notebook --TagRemovePreprocessor.enabled=True --TagRemovePreprocessor.remove_cell_tags=injected-parameters results/demo/notebooks/$$name --output-dir notebooks/$$(dirname $$name); done
	JUPYTER_DEFAULT_PROVISIONER_NAME=file-sockets jupyter nbconvert --log-level ERROR --to notebook --execute --inplace notebooks/tutorial.ipynb
	nbstripout --keep-output --keep-count --extra-keys "metadata.papermill cell.metadata.papermill cell.metadata.execution" notebooks/*.ipynb notebooks/*/*.ipynb
	ruff format --quiet notebooks
	python workflow/scripts/index.py
	python workflow/scripts/durations.py

ledgers: env  ## judge the stored runs again
	for config in reported/*/config.yaml; do run="$$(dirname "$$config")"; replicate claims "$$run" --output "$$run/claims.csv"; done
	replicate printed --output reported/papers/claims.csv

# Build the guide, the stored notebooks and the reference; warnings are errors.
docs: env  ## build the site
	sphinx-build -q -E -W --keep-going -c docs . build/site
	@printf '%s\n' "site     build/site/index.html"
	python workflow/scripts/article.py build/site/docs

article: env  ## write the article as HTML and PDF
	python workflow/scripts/article.py build/article

# Classify the Hugging Face architectures as exact or refused; run this after updating transformers.
architectures: env  ## classify the Hugging Face architectures
	PYTHONPATH="$(CURDIR)" python tests/sparselib/huggingface/architectures.py

# List the hashes of all files of the locked packages; run this after changing the lock. It needs uv.
hashes: env  ## rewrite the hashes of the locked packages
	printf '%s\n' "# requirements.lock with the SHA-256 of each package's files, but for torch, whose file depends on the index." > requirements.hashed.partial
	grep -v '^torch==' requirements.lock | uv pip compile - --quiet --no-deps --universal --python-version 3.11 --generate-hashes --no-header --no-annotate >> requirements.hashed.partial
	mv requirements.hashed.partial requirements.hashed

# Rewrite the tables between markers in the READMEs, the figures that compare runs, and the index of the notebooks, from the runs'
# files.
tables: env  ## rewrite the tables of the READMEs
	python workflow/scripts/tables.py
	python workflow/scripts/figures.py
	python workflow/scripts/index.py

clean:  ## remove results, build and Snakemake's state, after a question
	rm -rI results build .snakemake
