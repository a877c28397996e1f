"""Growth with n: fits and break-even densities on numbers that are known, and a small measurement."""

import math
import pickle
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from command_line import assert_one_line, configure, run, succeed

from profiles import MASKED_LM
from replication import plots
from replication.timing import clock as timing
from replication.timing import contenders, scaling
from replication.timing.contenders import Problem
from replication.timing.repeats import measurable, note_of, summary
from sparselib.kernels import BlockMask

COLUMNS = ["n", "density", "what", "pass", "seconds", "lower", "upper", "bytes", "device", "threads", "torch"]
SIZES = {"heads": 1, "dimension": 8, "block": 16}
SMALL = {"lengths": [16, 64], "densities": [0.25, 1.0], **SIZES, "repeats": 1}


def problem(length=64, density=0.25, **changed) -> Problem:
    return Problem(length, density, **SIZES | {"seed": 0, "device": "cpu"} | changed)


def diagonal(q, k) -> BlockMask:
    """A predictor: a module's function, and so picklable."""
    return BlockMask.from_dense(torch.eye(q.shape[2] // 16, dtype=torch.bool)[None, None], 16, q.shape[2])


def synthetic(lengths=(512, 1024, 2048), densities=(0.1, 0.5, 1.0)) -> pd.DataFrame:
    """Dense attention takes n² · 1e-8 seconds, block-sparse three times its density of that and holds 100 n kB."""
    rows = []
    for n in lengths:
        rows += [(n, 1.0, "dense-entmax", "forward", 1e-8 * n**2, 4e3 * n**2)]
        rows += [(n, density, "block-sparse", "forward", 3e-8 * density * n**2, 1e5 * n) for density in densities]
    return pd.DataFrame(rows, columns=["n", "density", "what", "pass", "seconds", "bytes"]).assign(device="cpu")


@pytest.mark.parametrize("power", [0, 1, 1.5, 2])
def test_the_exponent_of_a_power_is_found(power):
    n = np.array([512, 1024, 4096, 65536])
    assert scaling.exponent(n, 7e-9 * n**power) == pytest.approx(power)


def test_noise_moves_an_exponent_little():
    n = 2.0 ** np.arange(9, 17)
    noise = np.exp(0.05 * np.random.default_rng(0).standard_normal(8))
    assert scaling.exponent(n, n**2 * noise) == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize("values", [[1, 0], [1, math.nan], [-1, 2]])
def test_an_exponent_needs_two_positive_values(values):
    assert math.isnan(scaling.exponent([512, 1024], values))
    assert math.isnan(scaling.exponent([512], [1]))
    assert scaling.exponent([256, 512, 1024], [0, 1, 2]) == pytest.approx(1)


def test_exponents_are_fitted_per_curve_from_the_shortest_length_on():
    table = synthetic()
    table.loc[table.n == 512, "seconds"] = 1.0  # fixed costs
    found = scaling.exponents(table, shortest=1024).set_index(["what", "density"])
    assert len(found) == 4
    assert found.seconds.tolist() == pytest.approx([2] * 4)
    assert found.bytes["dense-entmax", 1.0] == pytest.approx(2)
    assert found.bytes["block-sparse", 0.1] == pytest.approx(1)
    assert scaling.exponents(table).seconds.max() < 1


def test_memory_that_a_cpu_cannot_tell_does_not_count():
    table = synthetic(lengths=(512, 1024, 2048, 4096), densities=(0.5,))
    table.loc[(table.what == "block-sparse") & (table.n == 512), "bytes"] = 1e6  # would be nonsense in a fit
    found = scaling.exponents(table).set_index("what").bytes
    assert found["block-sparse"] == pytest.approx(1)
    assert measurable(table).isna().sum() == 1
    assert measurable(table.assign(device="cuda")).notna().all()


def test_quartiles_that_are_wide_are_disturbed():
    seconds = pd.DataFrame({"steady": [1.0, 1.1, 1.2], "wide": [1.0, 1.1, 2.0], "slow": [10.0, 11.0, 12.0]})
    assert summary(seconds)["disturbed"].to_dict() == {"steady": False, "wide": True, "slow": False}
    assert note_of(seconds) == ["1 of 3 timings disturbed: quartiles more than 25% of the median apart"]
    assert note_of(seconds[["steady", "slow"]]) == []


@pytest.mark.parametrize(
    ("seconds", "peer", "expected"),
    [
        ([1, 2, 4], 2, 0.2),
        ([1, 2, 4], 2 * 2**0.5, 0.2 * 2**0.5),
        ([1, 2, 4], 0.5, math.nan),
        ([1, 2, 4], 5, 0.4),
        ([1, 2, 4], 4, 0.4),
        ([1, 2, 4], [2, 2, 2], 0.2),
        ([1, 2, 4], [1, 4, 1], 0.2 * 2 ** (1 / 3)),
        ([1, 3, 1], 2, 0.1 * 2 ** (math.log(2) / math.log(3))),  # where it first falls behind
    ],
)
def test_break_even_is_interpolated(seconds, peer, expected):
    assert scaling.break_even([0.1, 0.2, 0.4], seconds, peer) == pytest.approx(expected, nan_ok=True)


def test_break_evens_of_a_table():
    table = synthetic()
    found = scaling.break_evens(table)
    assert found.density.tolist() == pytest.approx([1 / 3] * 3)
    assert (found.peer.unique().tolist(), found.predicted.any()) == (["dense-entmax"], False)


def test_the_time_of_the_prediction_counts():
    """It takes a tenth of dense attention: so the blocks may cost nine tenths."""
    table = synthetic()
    predictor = [(n, math.nan, scaling.PREDICTOR, "forward", 1e-9 * n**2, 0.0, "cpu") for n in (512, 1024, 2048)]
    table = pd.concat([table, pd.DataFrame(predictor, columns=table.columns)], ignore_index=True)
    found = scaling.break_evens(table).set_index(["n", "predicted"]).density
    assert found[512, False] == pytest.approx(1 / 3)
    assert 0.1 < found[512, True] < found[512, False]
    assert scaling.exponents(table).set_index("what").seconds[scaling.PREDICTOR] == pytest.approx(2)


def test_a_peer_on_the_same_blocks_is_compared_block_by_block():
    table = synthetic()
    flex = table[table.what == "block-sparse"].assign(what="flex")
    flex["seconds"] *= np.where(flex.density < 0.3, 2.0, 0.5)
    found = scaling.break_evens(pd.concat([table, flex], ignore_index=True))
    assert found[found.peer == "flex"].density.tolist() == pytest.approx([math.sqrt(0.1 * 0.5)] * 3)


def test_a_length_without_a_block_sparse_time_has_no_break_even():
    table = synthetic()
    assert scaling.break_evens(table[(table.n > 512) | (table.what != "block-sparse")]).n.tolist() == [1024, 2048]


@pytest.fixture(scope="module")
def measured() -> pd.DataFrame:
    return scaling.measure(**SMALL, seed=0, device="cpu", predict=diagonal)


def test_a_measurement_has_a_row_per_attention_density_and_pass(measured):
    assert measured.columns.tolist() == COLUMNS
    assert (measured.seconds > 0).all()
    assert (measured.bytes >= 0).all()
    assert set(measured.device) == {"cpu"}
    counts = measured.groupby(["n", "what"]).size()
    assert counts[16].to_dict() == {"block-sparse": 2, "dense-entmax": 2, "predictor": 1, "sdpa": 2}  # 0.25 is no block
    assert counts[64].to_dict() == {"block-sparse": 4, "dense-entmax": 2, "predictor": 1, "sdpa": 2}
    assert measured[measured.what == scaling.PREDICTOR].density.isna().all()


def test_the_figure_draws_every_curve(measured):
    table = measured[measured["pass"] == scaling.FORWARD]
    figure = plots.scaling(table, scaling.break_evens(measured).query("`pass` == 'forward'"))
    time, memory, even = figure.axes
    named = [[line for line in axes.lines if not line.get_label().startswith("_")] for axes in (time, memory)]
    assert [len(lines) for lines in named] == [6, 5]  # the legend also explains hollow markers
    assert len(time.collections) == 5  # bands between quartiles
    assert len(even.lines) == 4  # two peers, with the prediction and without
    plt.close(figure)


def test_memory_is_that_of_the_run():
    """All scores of 512 tokens are 1 MiB; the growth is that of a few such matrices, whatever this process holds."""
    found = timing.peak_bytes("dense-entmax", problem(512, 1.0), backward=True)
    assert 2**20 <= found <= 16 * 2**20


def test_medians_do_not_count_the_first_run():
    calls = []
    runs = {"a": partial(calls.append, "a"), "b": partial(calls.append, "b")}
    assert timing.median_seconds(runs, 2, "cpu").keys() == runs.keys()
    assert calls == ["a", "b"] * 3


def test_blocks_are_the_diagonal_and_the_share_asked_for():
    mask = problem(256, 0.3, heads=3).block_mask()
    dense = mask.to_dense()
    assert dense.diagonal(dim1=-2, dim2=-1).all()
    assert dense.sum((-1, -2)).tolist() == [[round(0.3 * 256)] * 3]
    assert not dense[0, 0].equal(dense[0, 1])


def test_the_prediction_is_one_of_an_attention_layer():
    predict = contenders.untrained_prediction(2, 8, 16, clusters=3, count=2, seed=0, device="cpu")
    q, k, _ = problem(512, heads=2).inputs()
    mask = pickle.loads(pickle.dumps(predict))(q.bfloat16(), k.bfloat16())
    assert (mask.length, mask.block_size, mask.shape) == ((512, 512), (16, 16), (1, 2))
    assert 3 / 32 < mask.density < 0.4  # the window of three blocks, and less than all


@pytest.mark.parametrize("name", ["block-sparse", "dense-entmax", "sdpa"])
def test_contenders_run_forward_and_backward(name):
    inputs = problem().inputs()
    attend = contenders.contender(name, problem())
    assert attend(*inputs).shape == inputs[0].shape
    for backward in (False, True):
        timing.run(attend, inputs, backward)


def test_what_does_not_fit_is_left_out(monkeypatch):
    assert "dense-entmax" in contenders.peers(problem())
    monkeypatch.setattr(contenders, "memory_bytes", lambda device: 4 * 4 * 64 * 64)
    assert contenders.peers(problem()) == ["block-sparse", "sdpa"]


@pytest.mark.parametrize(
    ("changed", "named"), [({"heads": 0}, "heads"), ({"density": 0.2}, "density"), ({"length": 0}, "length")]
)
def test_a_problem_that_makes_no_sense_is_refused(changed, named):
    with pytest.raises(ValueError, match=named):
        problem(**changed)


def test_an_unknown_attention_is_refused():
    with pytest.raises(ValueError, match="'linear'"):
        contenders.contender("linear", problem())


STAGE = SMALL | {"lengths": [16], "predictor": {"clusters": 2, "count": 1}}


def test_the_stage_writes_a_table(tmp_path):
    results = configure(tmp_path, scaling=STAGE)
    succeed(tmp_path, "scaling", threads=1)
    assert pd.read_csv(results / "scaling.csv").columns.tolist() == COLUMNS
    assert {path.name for path in results.iterdir()} == {"scaling.csv", "made.json", "made.lock"}


def test_nothing_to_measure_is_an_error_of_one_line(tmp_path):
    results = configure(tmp_path, scaling=STAGE | {"lengths": []})
    assert_one_line(run(tmp_path, "scaling"), "scaling.lengths: must have at least 1 entry")
    assert not results.exists()


def test_nothing_to_measure_is_refused():
    with pytest.raises(ValueError, match=r"must not be empty .* got \[\]"):
        scaling.measure(**SMALL | {"lengths": []}, seed=0, device="cpu", predict=diagonal)


def test_a_configuration_without_the_section_is_named(tmp_path):
    configure(tmp_path, masked_lm=MASKED_LM)
    assert_one_line(run(tmp_path, "scaling"), "scaling: the configuration tiny has no such section")
