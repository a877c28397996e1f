"""The arithmetic of the GPU benchmarks, and their message without a GPU."""

import importlib
import importlib.util
import subprocess
import sys

import pytest
import torch
from scipy import integrate, stats

from replication.files.paths import ROOT

spec = importlib.util.spec_from_file_location("attention_limits", ROOT / "benchmarks" / "attention_limits.py")
limits = importlib.util.module_from_spec(spec)
spec.loader.exec_module(limits)

SETTING = {
    "n": 1024,
    "batch": 2,
    "heads": 4,
    "dimension": 64,
    "causal": False,
    "block": 64,
    "part": "both",
    "megabytes": 1,
}


def row(attention, density, milliseconds, **changes):
    times = {"milliseconds": milliseconds, "replayed": milliseconds and milliseconds / 2}
    return SETTING | {"attention": attention, "density": density} | times | changes


def test_limit_counts_the_products_of_visited_blocks():
    flops = 2 * 4 * 1024**2 * 64 * 2  # one product over all pairs
    assert limits.limit_milliseconds(row("ours", 1.0, 1), flops) == pytest.approx(7e3)
    assert limits.limit_milliseconds(row("ours", 0.1, 1, part="forward", causal=True), flops) == pytest.approx(100)
    limited = limits.with_limits([row("ours", 1.0, 14e3), row("flex", 0.1, None)], flops)
    assert [x["share_of_limit"] for x in limited] == [pytest.approx(1.0)]
    (from_python,) = limits.with_limits([row("ours", 1.0, 14e3, replayed=None)], flops)
    assert from_python["share_of_limit"] == pytest.approx(0.5)


def test_targets_compare_equal_settings_only():
    rows = [
        row("ours", 0.1, 2.0),
        row("ours", 0.1, 1.0, part="forward"),
        row("sdpa", 1.0, 9.0, block=None),
        row("ours, softmax", 0.1, 2.0, replayed=0.5),
        row("flex", 0.1, 1.0),
        row("flex", 0.1, 1.0, block=128),
        row("sdpa", 1.0, None, block=None),
        row("sdpa", 1.0, 9.0, block=None, causal=True),
    ]
    ratios = {x["peer"]: (x["ratio"], x["met"]) for x in limits.compared_with_targets(rows)}
    assert ratios == {"sdpa": (4.5, True), "flex": (0.5, False)}
    replayed = {x["peer"]: (x["replayed_ratio"], x["replayed_met"]) for x in limits.compared_with_targets(rows)}
    assert replayed == {"sdpa": (4.5, True), "flex": (1.0, False)}
    assert len(limits.compared_with_targets(rows)) == 2


def test_prediction_is_compared_with_attention_at_a_tenth():
    rows = [
        row("sparsefinder-v2", 0.13, 0.5, part="prediction"),
        row("ours", 0.1, 4.0),
        row("ours", 0.1, 1.0, part="forward"),
        row("ours", 0.25, 9.0),
        row("ours", 0.1, 9.0, block=128),
    ]
    assert [(x["share"], x["met"]) for x in limits.prediction_shares(rows)] == [(0.125, True)]


@pytest.mark.parametrize(("peer", "expected"), [(0.5, None), (1.0, 0.1), (2.5, 0.3), (5.25, 0.75), (9.0, 1.0)])
def test_break_even_density(peer, expected):
    density = limits.break_even_density([1.0, 0.1, 0.5], [6.5, 1.0, 4.0], peer)
    assert density == (expected if expected is None else pytest.approx(expected))


def test_break_even_points_take_dense_peers():
    rows = [
        row("ours", 0.1, 1.0),
        row("ours", 1.0, 10.0),
        row("sdpa", 1.0, 5.5, block=None),
        row("flex", 0.1, 1.0),
    ]
    (point,) = limits.break_even_points(rows)
    assert (point["peer"], point["density"]) == ("sdpa", pytest.approx(0.55))


@pytest.fixture
def claims(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("adasplash_claims")


def step(sparsity, flash, adasplash, attended):
    setting = {"n": 8192, "dimension": 64, "attended": attended, "sparsity": sparsity}
    return [setting | {"attention": name, "replayed": x} for name, x in (("flash", flash), ("adasplash-2", adasplash))]


@pytest.mark.parametrize(
    ("steps", "verdict"),
    [
        ([(0.7, 2.0, 1.9), (0.9, 2.0, 2.0)], "holds"),
        ([(0.7, 2.0, 2.1), (0.9, 2.0, 1.0)], "depends on the setting"),
        ([(0.7, 2.0, 2.1), (0.9, 2.0, 3.0)], "fails"),
        ([(0.5, 2.0, 9.0), (0.9, 2.0, 1.0)], "holds"),  # below 60 % nothing is claimed
        ([(0.9, 2.0, None)], "untested"),
    ],
)
def test_the_speed_of_adasplash_is_judged_above_its_sparsity(claims, steps, verdict):
    times = [row for attended, values in enumerate(steps) for row in step(*values, attended)]
    assert claims.verdicts({"times": times, "errors": []})[0]["verdict"] == verdict


@pytest.mark.parametrize(
    ("errors", "verdict"),
    [([2.0, 1.0], "holds"), ([2.1, 1.0, 1.0], "depends on the input"), ([2.1, 1.0], "fails"), ([], "untested")],
)
def test_the_iterations_of_adasplash_are_judged_by_our_error(claims, errors, verdict):
    rows = [{"adasplash-2, 1": 9.0, "adasplash-2, 2": error, "ours": 1.0} for error in errors]
    assert claims.verdicts({"times": [], "errors": rows})[1]["verdict"] == verdict


@pytest.mark.parametrize(("n", "mean", "deviation"), [(8192, 0.0, 0.5), (131_072, 0.3, 1.5), (131_072, -1.0, 0.2)])
def test_the_threshold_of_normal_scores(monkeypatch, n, mean, deviation):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    pages = importlib.import_module("page_selection")
    threshold = pages.normal_threshold(torch.tensor(mean), torch.tensor(deviation), n).item()
    weights = integrate.quad(
        lambda x: n * (x - threshold) ** 2 * stats.norm.pdf(x, mean, deviation), threshold, mean + 12 * deviation
    )
    assert weights[0] == pytest.approx(1, rel=1e-3)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is available")
@pytest.mark.parametrize(
    "name", ["adasplash_claims", "attention", "decoding", "encoder", "gpu_encoder", "page_selection"]
)
def test_without_a_gpu_the_script_exits_with_a_message(name):
    script = ROOT / "benchmarks" / f"{name}.py"
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stdout.strip() == f"benchmarks/{name}.py needs a CUDA device, and none is available"
