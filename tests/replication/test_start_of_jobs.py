"""Every job of the workflow is a process that imports what it needs: what it does not need, it must not wait for."""

import pytest
from fresh_process import modules_after

NEVER = {"IPython", "datasets", "matplotlib", "seaborn", "sklearn", "snakemake", "spacy", "transformers.trainer"}
#: transformers' models import these themselves wherever they are installed.
WITH_TRANSFORMERS = {"accelerate", "scipy.optimize"}


#: Modules with the same needless imports share a process: what none of them may import, all together may not either.
@pytest.mark.parametrize(
    ("modules", "needless"),
    [
        (("masked_lm.evaluation", "masked_lm.blocks"), {"fairseq", "replication.masked_lm.training", "sacrebleu"}),
        (("corpora.tokens",), {"pandas", "transformers.modeling_utils", *WITH_TRANSFORMERS}),
        (("corpora.sources", "char_lm.corpus"), {"numpy", "pandas", "torch", "transformers"}),
        (("graphs.projections", "graphs.centroids"), {"fairseq", "pandas", "transformers", *WITH_TRANSFORMERS}),
        (
            ("graphs.sweep", "graphs.analysis", "char_lm.training", "timing.scaling"),
            {"fairseq", "transformers", *WITH_TRANSFORMERS},
        ),
        (("translation.speed",), {"transformers", *WITH_TRANSFORMERS}),
        (("files.checkpoints",), {"fairseq", "pandas", "torch", "transformers"}),
        (("claims", "report"), {"fairseq", "torch", "transformers", *WITH_TRANSFORMERS}),
        (("stages",), {"fairseq", "numpy", "pandas", "torch", "transformers", *WITH_TRANSFORMERS}),
    ],
)
def test_a_job_imports_nothing_that_it_does_not_need(modules, needless):
    loaded = modules_after("\n".join(f"import replication.{module}" for module in modules))
    assert {f"replication.{module}" for module in modules} <= loaded
    assert loaded & (NEVER | needless) == set()


def test_evaluating_a_masked_lm_imports_of_transformers_what_its_model_needs():
    """Nothing is left to import for what evaluates the model once its own code is there."""
    model = "import transformers.models.roberta.modeling_roberta"
    before = f"{model}\nbefore = set(sys.modules)\nimport replication.masked_lm.blocks\n"
    added = modules_after(f"{before}[sys.modules.pop(name) for name in before]")
    assert "replication.masked_lm.blocks" in added
    assert added & WITH_TRANSFORMERS == set()
