"""The guarantee on the output holds in simulation and over splits of a model's text, is saved, and refuses what breaks it."""

import math

import pytest
import torch
from small_models import made, output, text

from sparselib.huggingface import Sparsified, output_guarantee, read_report, sparsify, use_attention
from sparselib.huggingface.gold import gold_rule
from sparselib.huggingface.guarantee import last_certified
from sparselib.huggingface.halves import Half, split
from sparselib.huggingface.layers import Layer
from sparselib.huggingface.learning import learn_projections
from sparselib.huggingface.output_guarantee import PATH_MISSED, certify_path, compare_outputs, path_of
from sparselib.huggingface.report import Report
from sparselib.huggingface.saved import FILE, read, write
from sparselib.huggingface.tuning import Run, learn
from sparselib.normalizers import Entmax

RISK, CONFIDENCE, DRAWS = 0.1, 0.9, 2000
#: Expected losses of the steps of a path, which pass the risk at the third.
STEPS = (0.03, 0.06, 0.1001, 0.1002, 0.3)
SETTINGS = {"gold": "entmax:1.5", "risk": RISK, "confidence": CONFIDENCE}


def the_direction(dense, restricted, batch):
    """Whether the cosine of a sequence's first vectors is below 0.98."""
    first = (found.last_hidden_state[:, 0] for found in (dense, restricted))
    return torch.cosine_similarity(*first) < 0.98


@pytest.fixture(scope="module")
def sparsified():
    model = made("bert")
    return model, sparsify(model, text(16), loss=the_direction, **SETTINGS)


def drawn(documents, size):
    """Draw losses ``[S, DRAWS, N]`` of documents, whose sequences are alike four times in five, and the half of the text."""
    generator = torch.Generator().manual_seed(0)
    ranks = torch.rand(DRAWS, documents, size, generator=generator)
    alike = torch.rand(DRAWS, documents, size, generator=generator) < 0.8
    ranks = torch.where(alike, ranks[..., :1], ranks).flatten(1)
    return torch.stack([(ranks < risk).half() for risk in STEPS]), Half(
        [], torch.arange(documents).repeat_interleave(size)
    )


def failures(losses):
    """Return the share of the draws in which the last certified step has an expected loss above the risk."""
    chosen = last_certified(losses, RISK, CONFIDENCE)
    return (chosen >= next(number for number, risk in enumerate(STEPS) if risk > RISK)).double().mean().item()


@pytest.mark.parametrize("size", [1, 4, 16])
def test_over_2000_draws_of_documents_the_risk_is_exceeded_as_rarely_as_promised(size):
    losses, half = drawn(60, size)
    assert failures(half.per_group(losses)) <= 1 - CONFIDENCE + 2 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / DRAWS)
    assert (last_certified(half.per_group(losses), RISK, CONFIDENCE) >= 0).double().mean() > 0.5
    if size == 16:
        assert failures(losses) > 0.3  # one bet per sequence, as if documents did not matter


def test_the_path_is_walked_as_simulated(monkeypatch):
    """Step by step up to the first that fails; later steps are not run."""
    losses, half = drawn(60, 4)
    for draw in range(40):
        ran = []

        def compare(step, layers, batches, loss, draw=draw, ran=ran):
            ran.append(step)
            return losses[step, draw], 0.1 * step

        monkeypatch.setattr(output_guarantee, "compare_outputs", compare)
        steps = [(1 - 0.1 * number, number) for number in range(len(STEPS))]
        found = certify_path(steps, lambda number: number, [], half, the_direction, RISK, CONFIDENCE, grouped=True)
        last = int(last_certified(half.per_group(losses[:, draw]), RISK, CONFIDENCE))
        assert ran == list(range(min(last + 2, len(STEPS))))
        assert [step.certified for step in found.path] == [number <= last for number in ran]
        assert found.chosen == (found.path[last] if last >= 0 else None)
        assert found.binary


@pytest.fixture(scope="module")
def path():
    """Losses ``[S, N]`` of the steps of a model's path on text that did not build it, and each step's sparsity."""
    model = made("bert")
    control = use_attention(model, Entmax(1))
    layers = [Layer(), Layer()]
    run = Run(model, control, layers, gold_rule("entmax:1.5"))
    tuning = text(6, seed=1)
    count = learn_projections(run.observed(tuning, "projections"), layers, 4, 0)
    orders = learn(run, tuning, count, ("distance", "window"), 3, 0, PATH_MISSED)
    half = Half(tuning, torch.arange(60))
    losses, sparsity = [], []
    for _, settings in path_of(run.measured(tuning, "choice", orders), orders, half):
        for layer, chosen in zip(layers, settings, strict=True):
            layer.chosen = chosen
        sparse = Sparsified(model, control, layers, Report([], "", 1.0, 0.9), [1.0])
        found = compare_outputs(sparse, layers, text(40, seed=2), the_direction)
        losses.append(found[0])
        sparsity.append(found[1])
    return torch.stack(losses), torch.tensor(sparsity)


def test_the_path_leads_from_dense_to_sparse(path):
    losses, sparsity = path
    assert (sparsity.diff() > -0.01).all()
    assert sparsity[0] < 0.3 < sparsity[-1]
    assert losses[0].mean() < RISK < losses[-1].mean()


def test_over_200_splits_of_a_models_text_the_risk_is_exceeded_as_rarely_as_promised(path):
    losses, sparsity = path
    above, left_out = [], []
    for seed in range(200):
        mixed = torch.randperm(400, generator=torch.Generator().manual_seed(seed))
        last = int(last_certified(losses[:, mixed[:100]], RISK, CONFIDENCE))
        above.append(last >= 0 and losses[last, mixed[100:]].mean().item() > RISK)
        left_out.append(sparsity[last].item() if last >= 0 else 0.0)
    assert sum(above) / 200 <= 1 - CONFIDENCE + 3 * math.sqrt(0.09 / 200)
    assert sum(left_out) / 200 > 0.1


def test_the_report_says_first_what_is_promised(sparsified):
    _, sparse = sparsified
    report = sparse.report.output
    assert report.chosen.loss < RISK
    first = str(sparse.report).splitlines()[0]
    assert first.startswith(
        "the restricted model changes the direction in at most 10 % of further sequences, with 90 % confidence; measured "
    )
    assert first.endswith(" % of the pairs left out")
    assert "only the output is guaranteed" in str(sparse.report)
    assert {head.bound for head in sparse.report.heads} <= {0.0, 1.0}


def test_the_model_inside_the_block_is_the_certified_one(sparsified):
    """On the calibration half, its loss and sparsity are those of the report; the tuning half is not looked at."""
    _, sparse = sparsified
    _, second = split(text(16), None, 0, RISK, CONFIDENCE)
    losses, sparsity = compare_outputs(sparse, sparse._layers, second.batches, the_direction)
    assert losses.mean().item() == pytest.approx(sparse.report.output.chosen.loss)
    assert sparsity == pytest.approx(sparse.report.output.chosen.sparsity)
    assert len(losses) == 80


def test_the_kernel_over_predicted_blocks_has_the_certified_loss():
    model = made("bert")
    options = {"predictors": ("blocks",), "block": 4, "risk": 0.3, "confidence": 0.8, "gold": "entmax:1.5"}
    sparse = sparsify(model, text(16), loss=the_direction, **options)
    assert 0.1 < sparse.report.output.chosen.sparsity
    assert 0 < sparse.report.output.chosen.loss
    _, second = split(text(16), None, 0, 0.3, 0.8)
    losses = []
    with torch.no_grad():
        for inputs in second.batches:
            dense = model(**inputs)
            with sparse.to_blocks(4):
                losses.append(the_direction(dense, model(**inputs), inputs).double())
    assert torch.cat(losses).mean().item() == pytest.approx(sparse.report.output.chosen.loss)


def test_the_path_is_tested_on_no_sequence_that_built_it():
    seen = []

    def the_direction_seen(dense, restricted, batch):
        seen.extend(map(tuple, batch["input_ids"].tolist()))
        return the_direction(dense, restricted, batch)

    sparsify(made("bert"), text(8), loss=the_direction_seen, **SETTINGS)
    halves = split(text(8), None, 0, RISK, CONFIDENCE)
    first, second = ({tuple(row) for inputs in half.batches for row in inputs["input_ids"].tolist()} for half in halves)
    assert set(seen) == second
    assert not set(seen) & first


def test_a_loss_that_no_step_keeps_below_the_risk_leaves_the_model_dense():
    model = made("bert")
    sparse = sparsify(
        model, text(8), loss=lambda dense, restricted, batch: torch.ones(len(batch["input_ids"])), **SETTINGS
    )
    assert sparse.report.output.chosen is None
    assert len(sparse.report.output.path) == 1
    assert "the model stays dense: the first step of the path changes the output in 100 %" in str(sparse.report)
    assert {head.predictor for head in sparse.report.heads} == {"dense"}
    inputs = text(1)[0]
    dense = output(model, inputs)
    with sparse:
        torch.testing.assert_close(output(model, inputs), dense)


def test_a_path_without_steps_leaves_the_model_dense():
    """The windows cover all pairs of so few tokens."""
    report = sparsify(made("bert"), text(8, length=4), loss=the_direction, predictors=("window",), **SETTINGS).report
    assert report.output.path == []
    assert "the model stays dense: no step of the path leaves out any pair" in str(report)


def test_a_gradual_loss_is_reported_as_a_mean():
    def the_vectors(dense, restricted, batch):
        change = (dense.last_hidden_state - restricted.last_hidden_state).flatten(1).norm(dim=1)
        return (change / dense.last_hidden_state.flatten(1).norm(dim=1)).clamp(max=1) / 4

    groups = [number // 2 for number in range(160)]
    report = sparsify(made("bert"), text(16), loss=the_vectors, groups=groups, **SETTINGS).report
    assert "changes the vectors by at most 10 % on average over the sequences of further documents" in str(report)


def test_it_is_saved_and_checked(sparsified, tmp_path):
    model, sparse = sparsified
    sparse.save(tmp_path)
    assert read_report(tmp_path) == sparse.report == Sparsified.load(model, tmp_path).report
    description, tensors = read(tmp_path / FILE)
    for (*place, last), value, message in (
        (("output", "risk"), 2.0, "`risk` must be from 0 to 1, got 2.0"),
        (("output", "path", 0, "loss"), -1.0, "`loss` must be from 0 to 1, got -1.0"),
        (("output", "binary"), "yes", "`binary` must be of type bool, got 'yes'"),
        (("output", "path", 0), {"recall": 1.0}, "`report` must have the fields of a report, its heads and its output"),
    ):
        part = description["report"]
        for key in place:
            part = part[key]
        before, part[last] = part[last], value
        write(tmp_path, description, tensors)
        with pytest.raises(ValueError, match=rf"sparsified\.safetensors.*{message}"):
            read_report(tmp_path)
        part[last] = before


WRONG = {
    "three numbers": (lambda *_: torch.zeros(3), r"`loss` must return a Tensor \[\d+\], one number per .* got \[3\]"),
    "one number": (lambda *_: 0.5, r"`loss` must return a Tensor .* got float"),
    "above 1": (lambda dense, _, batch: torch.full((len(batch["input_ids"]),), 2.0), "numbers from 0 to 1, got 2.0"),
    "no number": (lambda dense, _, batch: torch.full((len(batch["input_ids"]),), torch.nan), "from 0 to 1, got nan"),
}


@pytest.mark.parametrize("case", WRONG)
def test_losses_of_another_form_are_refused_and_the_model_is_as_it_was(case):
    loss, message = WRONG[case]
    model = made("bert")
    with pytest.raises(ValueError, match=message):
        sparsify(model, text(8), loss=loss, **SETTINGS)
    assert not any(hasattr(module, "sparselib_place") for module in model.modules())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"recall": 0.9}, "`recall` and `simultaneous` must be left out with `loss`"),
        ({"simultaneous": True}, "`recall` and `simultaneous` must be left out with `loss`"),
        ({"risk": 1.0}, "`risk` must be between 0 and 1, got 1.0"),
        (
            {"risk": 0.01},
            r"at least 2\d\d sequences to calibrate with for a risk of 0.01 .* pass at least \d\d\d in all",
        ),
        ({"loss": "label"}, "`loss` must be a function of both outputs and the batch, got str"),
    ],
)
def test_contradictions_and_too_little_text_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        sparsify(made("bert"), text(8), **{"loss": the_direction, **settings})
