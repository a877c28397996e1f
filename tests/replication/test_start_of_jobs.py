"""Every job of the workflow is a process that imports what it needs: what it does not need, it must not wait for."""

import pytest
from fresh_process import modules_after

NEVER = {"IPython", "datasets", "matplotlib", "seaborn", "sklearn", "snakemake", "spacy", "transformers.trainer"}
#: transformers' models import these themselves wherever they are installed.
WITH_TRANSFORMERS = {"accelerate", "scipy.optimize"}


@pytest.mark.parametrize(
    ("module", "needless"),
    [
        ("masked_lm.evaluation", {"fairseq", "replication.masked_lm.training", "sacrebleu"}),
        ("masked_lm.blocks", {"fairseq", "replication.masked_lm.training", "sacrebleu"}),
        ("corpora.tokens", {"pandas", "transformers.modeling_utils", *WITH_TRANSFORMERS}),
        ("corpora.sources", {"numpy", "pandas", "torch", "transformers"}),
        ("graphs.projections", {"fairseq", "pandas", "transformers", *WITH_TRANSFORMERS}),
        ("graphs.centroids", {"fairseq", "pandas", "transformers", *WITH_TRANSFORMERS}),
        ("graphs.sweep", {"fairseq", "transformers", *WITH_TRANSFORMERS}),
        ("graphs.analysis", {"fairseq", "transformers", *WITH_TRANSFORMERS}),
        ("char_lm.corpus", {"numpy", "pandas", "torch", "transformers"}),
        ("char_lm.training", {"fairseq", "transformers", *WITH_TRANSFORMERS}),
        ("timing.scaling", {"fairseq", "transformers", *WITH_TRANSFORMERS}),
        ("translation.speed", {"transformers", *WITH_TRANSFORMERS}),
        ("checkpoints", {"fairseq", "pandas", "torch", "transformers"}),
        ("claims", {"fairseq", "torch", "transformers", *WITH_TRANSFORMERS}),
        ("stages", {"fairseq", "numpy", "pandas", "torch", "transformers", *WITH_TRANSFORMERS}),
    ],
)
def test_a_job_imports_nothing_that_it_does_not_need(module, needless):
    assert modules_after(f"import replication.{module}") & (NEVER | needless) == set()


def test_evaluating_a_masked_lm_imports_of_transformers_what_its_model_needs():
    model = modules_after("import transformers.models.roberta.modeling_roberta")
    assert (modules_after("import replication.masked_lm.blocks") - model) & WITH_TRANSFORMERS == set()
