"""Tables of the READMEs are what the files say."""

import csv
import importlib.util
import json
import statistics

import numpy as np
import pandas as pd
import pytest

from replication.files.paths import ROOT
from replication.files.reading import read_table
from replication.results.settings import labelled
from replication.tables import (
    characters,
    claims,
    cpu,
    decided,
    forms,
    initialisation,
    kmeans,
    model_speed,
    output_guarantee,
    speed,
)
from replication.tables.attention import targets
from replication.tables.markers import END, markdown, with_tables

spec = importlib.util.spec_from_file_location("tables", ROOT / "workflow" / "scripts" / "tables.py")
tables = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tables)


def test_no_table_would_change():
    assert [path.name for path in tables.changed()] == []


def test_a_table_is_written_between_its_comments():
    text = f"before\n<!-- table one -->\nold\n{END}\nafter\n<!-- table two -->\n{END}\n"
    expected = f"before\n<!-- table one -->\n1\n{END}\nafter\n<!-- table two -->\n2\n{END}\n"
    assert with_tables(text, {"one": lambda: "1", "two": lambda: "2"}) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"<!-- table three -->\n{END}", "`table` must be one of one, .*got 'three'"),
        ("<!-- table one -->\nx", "got 1 tables and 0 ends"),
    ],
)
def test_what_is_no_table_is_named(text, message):
    with pytest.raises(ValueError, match=message):
        with_tables(text, {"one": lambda: "1"})


def test_markdown_has_a_line_for_each_row():
    assert markdown(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


def test_a_target_counts_the_sizes_that_meet_it(monkeypatch):
    def judged(n, ratio, replayed):
        size = {"n": n, "dimension": 64, "causal": False, "block": 128, "peer": "sdpa", "target": 4.0}
        return size | {"ratio": ratio, "met": ratio >= 4, "replayed_ratio": replayed, "replayed_met": replayed >= 4}

    report = {"hardware": {"gpu": "GPU"}, "targets": [judged(2048, 1.0, 5.0), judged(4096, 6.0, 7.0)]}
    slow = {
        "n": 8192,
        "dimension": 64,
        "causal": True,
        "block": 64,
        "attention": "ours",
        "part": "both",
        "density": 0.1,
    }
    report |= {"prediction": [], "rows": [slow | {"share_of_limit": 0.25}]}
    monkeypatch.setattr("replication.tables.attention.reports", lambda: [report])
    first, second = [line.strip("| ").split(" | ") for line in targets().splitlines()[2:]]
    assert first[2:] == ["64", "at least 4", "**2 of 2**", "1 of 2", "5.00 at 2,048, 128", "7.00 at 4,096, 128"]
    assert second[2:] == ["64", "at least 50 %", "0 of 1", "", "25% at 8,192, causal, 64", "25% at 8,192, causal, 64"]


def test_a_cpu_target_is_bold_exactly_if_the_ratio_is_within_it(tmp_path, monkeypatch):
    def rows(part, **times):
        row = {"part": part, "n": 512, "support": 0.1}
        return [
            row | {"threads": threads, "attention": name.replace("_", " "), clock: factor * value}
            for name, value in times.items()
            for threads, clock, factor in ((1, "cpu_milliseconds", 1), (2, "milliseconds", 1 if name == "SDPA" else 2))
        ]

    sparse = rows("sparse", entmax=0.6, softmax=1.1, FlexAttention=1.0, **{"entmax, both passes": 1.8})
    report = {"rows": sparse + rows("dense", entmax=0.9, SDPA=1.0) + rows("supports", entmax=0.7, SDPA=1.0)}
    monkeypatch.setattr(cpu, "RESULTS", tmp_path / "report.json")
    cpu.RESULTS.write_text(json.dumps(report))
    measured = [line.strip("| ").split(" | ")[3:] for line in cpu.targets().splitlines()[2:]]
    assert measured == [["**0.60**"] * 2, ["1.10"] * 2, ["**3.00**"] * 2, ["**0.90**", "1.80"]]
    assert cpu.supports().splitlines()[-1] == "| 10.0% | 0.70 | 1.40 |"


def test_a_sparsified_model_is_bold_exactly_if_it_is_faster_than_dense_attention(tmp_path, monkeypatch):
    tuned = {"predictors": "blocks", "target": 0.9, "share": 0.5, "recall": 0.95, "drift": 0.01}
    row = {
        "n": 512,
        "milliseconds": {"dense": 30.0, "blocks 0.1": 10.0, "blocks 0.5": 50.0},
        "best_shares": {"0.9": 0.2},
    }
    row["targets"] = [tuned | {"milliseconds": 20.0}, tuned | {"milliseconds": 40.0}]
    machine = {"processor": "Some", "threads": 1, "torch": "2.13.0"}
    report = {"alpha": 1.5, "rounds": 2, "machine": machine, "lengths": [row]}
    (tmp_path / "model_speed_mine.json").write_text(json.dumps(report))
    monkeypatch.setattr(model_speed, "RESULTS", tmp_path)
    assert model_speed.times("mine").splitlines()[-1] == "| 512 | 30 | 10 | 50 | 30% | 20% |"
    assert [line.split(" | ")[5] for line in model_speed.recalls("mine").splitlines()[2:]] == ["**1.50**", "0.75"]


@pytest.mark.parametrize("table", [model_speed.times, model_speed.ratios, model_speed.recalls])
def test_captions_say_that_an_encoders_positions_are_repeated(table):
    assert "The encoder has 512 positions; beyond, they are repeated." in table("minilm")
    assert "repeated" not in table("smollm2")


def test_the_certified_step_is_the_last_one_before_the_first_that_fails(tmp_path, monkeypatch):
    steps = [
        {"recall": 1 - share, "loss": share, "sparsity": 2 * share, "certified": share < 0.1}
        for share in (0.0, 0.05, 0.2)
    ]
    report = {"risk": 0.1, "confidence": 0.9, "path": steps}
    result = {"report": report, "passages": 80, "tokens": 16, "chapters": 20, "summary": "what is promised"}
    for model in output_guarantee.MODELS:
        (tmp_path / f"output_guarantee_{model}.json").write_text(json.dumps(result))
    monkeypatch.setattr(output_guarantee, "RESULTS", tmp_path)
    for row in output_guarantee.certified().splitlines()[4:]:
        assert row.endswith("| at most 10% with 90% confidence | 5.0% | **10%** |")
    assert "80 passages of 16 tokens from 20 chapters of the Bible: *what is promised*." in output_guarantee.sentence(
        "minilm"
    )


def test_ratios_of_the_same_settings_share_a_row(tmp_path, monkeypatch):
    def row(n: int, dense: float, share: float) -> dict:
        tuned = {"predictors": "blocks", "share": share, "milliseconds": 20.0}
        targets = [tuned | {"target": 0.9}, tuned | {"target": 0.95, "share": 1.0}]
        return {"n": n, "milliseconds": {"dense": dense}, "targets": targets}

    report = {"lengths": [row(512, 10.0, 0.5), row(1024, 30.0, 0.25)]}
    (tmp_path / "model_speed_mine.json").write_text(json.dumps(report))
    monkeypatch.setattr(model_speed, "RESULTS", tmp_path)
    assert model_speed.ratios("mine").splitlines() == [
        "| predictors | target | n = 512 | n = 1,024 |",
        "| --- | --- | --- | --- |",
        "| blocks | 0.9 | 0.50 at 50% | **1.50** at 25% |",
        "| blocks | 0.95 | 0.50 at 100% | **1.50** at 100% |",
    ]


@pytest.mark.parametrize("own", [False, True])
def test_an_entmax_model_is_compared_with_its_encoder_under_pytorchs_softmax(own, tmp_path, monkeypatch):
    tuned = {"predictors": "blocks", "target": 0.9, "share": 0.5, "recall": 0.95, "drift": 0.01, "milliseconds": 20.0}
    milliseconds = {"dense": 30.0, "blocks 0.1": 10.0, "blocks 0.5": 50.0}
    row = {"n": 512, "milliseconds": milliseconds, "best_shares": {"0.9": 0.2}, "targets": [tuned]}
    machine = {"processor": "Some", "threads": 1, "torch": "2.13.0"}
    report = {"alpha": 1.0, "rounds": 2, "machine": machine, "lengths": [row]}
    (tmp_path / "model_speed_minilm.json").write_text(json.dumps(report))
    slower = row | {"milliseconds": milliseconds | {"dense": 60.0} | ({"SDPA": 10.0} if own else {})}
    (tmp_path / "model_speed_minilm-entmax.json").write_text(json.dumps(report | {"alpha": 1.5, "lengths": [slower]}))
    monkeypatch.setattr(model_speed, "RESULTS", tmp_path)
    softmax, ratio = ("10", "0.50") if own else ("30", "**1.50**")
    assert model_speed.times("minilm-entmax").splitlines()[-1] == f"| 512 | {softmax} | 60 | 10 | 50 | all | 20% |"
    assert model_speed.ratios("minilm-entmax").splitlines()[-1] == f"| blocks | 0.9 | **3.00**, {ratio} at 50% |"
    assert model_speed.recalls("minilm-entmax").splitlines()[-1].split(" | ")[5:7] == ["**3.00**", ratio]
    assert "SDPA, softmax" not in model_speed.times("minilm")


def test_an_encoder_is_bold_exactly_if_its_ratio_is_within_the_target(tmp_path, monkeypatch):
    def row(part, n, name, one, two):
        shared = {"part": f"encoder, {part}", "n": n, "attention": name}
        return [
            shared | {"threads": 1, "cpu_milliseconds": one, "milliseconds": 99.0},
            shared | {"threads": 2, "cpu_milliseconds": 99.0, "milliseconds": two},
        ]

    rows, memory = [], []
    for part in ("forward", "both passes"):
        for n in (512, 2048):
            rows += row(part, n, "entmax", 90.0, 65.0) + row(part, n, "SDPA", 100.0, 100.0)
            memory += [
                {"part": f"encoder, {part}", "n": n, "attention": name, "mebibytes": size}
                for name, size in (("entmax", 130.0 if n == 512 else 120.0), ("SDPA", 100.0))
            ]
    machine = {"processor": "Some", "threads": 2, "torch": "2.13.0"}
    report = {"machine": machine, "rounds": 3, "note": "busy", "support": 0.0123, "rows": rows, "memory": memory}
    monkeypatch.setattr(cpu, "ENCODER", tmp_path / "report.json")
    cpu.ENCODER.write_text(json.dumps(report))
    heading, _, *lines = cpu.encoder().splitlines()
    assert heading == "Some, torch 2.13.0; medians of 3 rounds; busy. 1.2% of the keys have weight at n = 512."
    assert [line.strip("| ").split(" | ")[2:] for line in lines[2:]] == [
        ["at most 1.0", "**0.90**", "**0.65**", "1.30"],
        ["at most 0.75", "0.90", "**0.65**", "**1.20**"],
        ["at most 0.9", "**0.90**", "**0.65**", "1.30"],
        ["at most 0.65", "0.90", "**0.65**", "**1.20**"],
    ]


def test_claims_without_a_verdict_are_folded_below_the_others():
    judged = claims.judged("brown-512-untied")
    shown, _, folded = judged.partition("<details>")
    table = claims.ledger("brown-512-untied")
    assert "| not comparable" not in shown
    assert folded.count("| not comparable") == (table["verdict"] == "not comparable").sum() > 0
    for verdict in ("holds", "fails", "depends on the budget", "undecided"):
        assert shown.count(f"| **{verdict}**") == (table["verdict"] == verdict).sum()


def test_every_reported_run_with_a_text_has_its_tables_written():
    texts = {f"reported/{path.parent.name}/README.md" for path in (ROOT / "reported").glob("*/README.md")}
    assert texts <= set(tables.TEXTS)


def test_every_table_stands_in_some_text():
    text = "".join((ROOT / name).read_text() for name in tables.TEXTS)
    assert [name for name in tables.TABLES if f"<!-- table {name} -->" not in text] == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"verdict": "holds", "interval": "1.25 to 2.5"}, "**holds**, 1.23 (1.25 to 2.5)"),
        ({"verdict": "fails", "interval": ""}, "**fails**, 1.23"),
        ({"verdict": "undecided", "interval": "-0.5 to 2.5"}, "**undecided**, 1.23 (-0.5 to 2.5)"),
        ({"verdict": "not comparable", "interval": ""}, "not comparable, 1.23: n >= 512 (128); m <= 0.5 (0.7 in a)"),
        ({"verdict": "untested", "numbers": "no tag"}, "untested: no tag"),
        ({"verdict": "untested", "numbers": ""}, "untested"),
        (
            {"verdict": "untested", "numbers": "at 1 x gold: fails; at 2 x gold: untested; at 6 % of the pairs a: 1"},
            "untested: at 1 x gold: fails, at 2 x gold: untested",
        ),
    ],
)
def test_a_verdict_comes_with_what_it_stands_on(line, expected):
    premise = "n >= 512 (128); bleu >= 25 (40.2 in b); m <= 0.5 (0.7 in a); k <= 2 (2)"
    assert claims.verdict(pd.Series({"effect": "1.2345", "premise": premise, **line})) == expected


HEADER = "id,statement,kind,criterion,budgets,premise,verdict,stability,effect,interval,where,n,data,numbers,change\n"


#: Criteria and premises of the made claims.
RULES = {"mt-a": ("gain >= 0 BLEU", ""), "mt-b": ("loss <= 1 BLEU", "n >= 9 (10)"), "mt-i": ("equal <= 0", "")}
RULES["mt-o"] = ("lead >= 0", "")


def row(
    claim, verdict, effect="", data="real", kind="finding", premise=None, numbers="x", stability="", criterion=None
):
    rule, met = RULES[claim]
    start = f"{claim},{claim[-1].upper()},{kind},{criterion or rule},,{met if premise is None else premise},{verdict}"
    return f"{start},{stability},{effect},,,3 models,{data},{numbers},more\n"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A repository of made runs, of which the one called `chapters` translates documents."""
    monkeypatch.setattr(claims, "ROOT", tmp_path)
    monkeypatch.setattr(claims, "configuration", lambda name: name)
    monkeypatch.setattr(claims, "regime", lambda _, name: "documents" if name == "chapters" else "translation")
    return tmp_path


def world(root, **runs: str):
    """Reported runs of two findings, an identity and a claim of ours, with the rows that are given for each run."""
    (root / "config/published").mkdir(parents=True)
    published = "id,paper,statement,kind,effect,unit,relation,threshold,budgets,premise,abstract\n"
    published += "mt-a,P,A,finding,gain,BLEU,>=,0.0,,,2: gains\nmt-b,P,B,finding,loss,BLEU,<=,1.0,,n >= 9,1: loses\n"
    published += "mt-i,P,I,identity,equal,,<=,0.0,,,\nmt-o,P,O,ours,lead,,>=,0.0,,,\n"
    (root / "config/published/claims.csv").write_text(published)
    for run, text in runs.items():
        (root / "reported" / run).mkdir(parents=True)
        known = {line.split(",")[0] for line in text.splitlines()}
        kinds = {"mt-a": "finding", "mt-b": "finding", "mt-i": "identity", "mt-o": "ours"}
        rest = "".join(
            row(claim, "untested", data="", kind=kind, numbers="not measured here")
            for claim, kind in kinds.items()
            if claim not in known
        )
        (root / "reported" / run / "claims.csv").write_text(HEADER + text + rest)


def generated(claim, verdict):
    return row(claim, verdict, 2.0, data="generated")


@pytest.mark.parametrize(
    ("runs", "outcome"),
    [
        ({"real": row("mt-a", "holds", 1.0)}, "holds"),
        ({"real": row("mt-a", "fails", -1.0), "other": row("mt-a", "fails", -2.0)}, "fails"),
        ({"real": row("mt-a", "holds", 1.0), "other": row("mt-a", "fails", -2.0)}, "differs"),
        ({"real": row("mt-a", "holds", 1.0), "other": row("mt-a", "undecided", 0.1)}, "holds or undecided"),
        ({"real": row("mt-a", "undecided", 1.0), "other": row("mt-a", "fails", -1.0)}, "fails or undecided"),
        (
            {
                "real": row("mt-a", "holds", 1.0),
                "other": row("mt-a", "undecided", 0.1),
                "third": row("mt-a", "fails", -1.0),
            },
            "differs",
        ),
        ({"real": row("mt-a", "undecided", 1.0)}, "undecided"),
        ({"real": row("mt-a", "not comparable", 1.0, premise="")}, ""),
        ({"real": row("mt-a", "holds", 1.0), "other": row("mt-a", "not comparable", -2.0)}, "holds"),
        ({"real": row("mt-a", "depends on the budget", 1.0)}, "depends on the budget"),
        ({"real": row("mt-a", "depends on the budget", 1.0), "other": row("mt-a", "holds", 1.0)}, "differs"),
        ({"real": row("mt-a", "holds", 1.0, stability="changes with the Pareto set: fails")}, "undecided"),
        ({"real": row("mt-a", "holds", 1.0, stability="stable")}, "holds"),
        ({"real": row("mt-a", "holds", 1.0, criterion="mean gain >= 0 BLEU")}, ""),
        ({"real": row("mt-a", "holds", 1.0, premise="n >= 8 (9)")}, ""),
    ],
)
def test_runs_of_a_regime_say_together_what_every_run_that_tests_a_claim_says(root, runs, outcome):
    """Unstable verdicts are undecided, and those by another rule than today's are none."""
    world(root, demo=generated("mt-a", "fails"), **runs)
    assert claims.outcomes()["translation"].to_dict() == {"mt-a": outcome, "mt-b": ""}


def test_runs_of_other_regimes_have_outcomes_of_their_own(root):
    world(root, demo="", real=row("mt-a", "holds", 1.0), chapters=row("mt-a", "fails", -1.0))
    outcomes = claims.outcomes().loc["mt-a"]
    assert outcomes[outcomes != ""].to_dict() == {"translation": "holds", "documents": "fails"}
    assert claims.abstracts().splitlines()[2:] == [
        "| P | B | no verdict |",
        "| P | A | translation: holds; documents: fails |",
    ]


def test_generated_data_identities_our_claims_and_the_papers_own_tables_count_nowhere(root):
    own = row("mt-i", "holds", 0.0, kind="identity") + row("mt-o", "holds", 1.0, kind="ours")
    world(
        root,
        demo=generated("mt-a", "holds") + generated("mt-b", "fails"),
        papers=row("mt-a", "holds", 1.0, data=""),
        real=row("mt-b", "fails", 2.0) + own,
        ours=own,
    )
    found = claims.verdicts()
    assert found.startswith(
        "**2 findings of the papers, tested on real data in 1 runs;** 1 of them have no verdict in any"
    )
    assert "Not counted: 1 claims of this repository, 1 identities" in found
    assert found.splitlines()[-3:] == ["| regime | fails |", "| --- | --- |", "| translation | 1 |"]
    assert claims.counts().splitlines()[2:] == [
        "| [real](real) | 0 | 1 | 0 | 0 | 0 |",
        "| [the papers' own tables](papers) | 1 | 0 | 0 | 0 | 0 |",
    ]


def test_the_sentence_counts_the_stable_ones_of_the_settled_verdicts(root):
    changes = "changes with seed 1 left out: fails"
    world(
        root,
        demo=row("mt-a", "holds", 1.0, stability=changes),
        real=row("mt-a", "holds", 1.0, stability="stable") + row("mt-b", "fails", 2.0),
        papers="",
    )
    assert claims.stable().startswith("Of 2 settled verdicts, 1 are stable, and")
    assert claims.counts().splitlines()[2] == "| [demo](demo) | 0 | 0 | 0 | 1 | 0 |"
    assert f"**holds**, 1, {changes}" in claims.main()


def test_the_demonstration_shows_generated_data_and_nothing_else(root):
    world(root, demo=generated("mt-a", "holds") + row("mt-b", "fails", 2.0))
    assert claims.demonstration().splitlines()[2:] == ["| A | **holds**, 2 | at least 0 BLEU | 3 models |"]


def test_a_table_of_runs_has_a_column_for_each_and_the_claims_that_one_decides(root):
    comparable = row("mt-b", "not comparable", 1.0, premise="n >= 9 (2)")
    world(root, demo=generated("mt-b", "fails"), real=row("mt-a", "holds", 1.0) + comparable, other=comparable)
    assert decided.decided(("real", "other"), ("mt-",)).splitlines()[2:] == [
        "| A | **holds**, 1 | untested: not measured here | at least 0 BLEU |"
    ]


def test_a_claim_of_an_abstract_is_shown_where_it_is_decided_or_else_where_least_is_missing(root):
    comparable = row("mt-b", "not comparable", 1.0, premise="n >= 9 (2)")
    real = row("mt-a", "holds", 1.0) + comparable
    world(root, demo=generated("mt-b", "fails"), real=real, another=row("mt-a", "fails", -3.0))
    assert claims.main().splitlines()[2:] == [
        "| B | no verdict | not comparable, 1: n >= 9 (2) ([real](real)) | at most 1 BLEU |",
        "| A | translation: differs | **fails**, -3 ([another](another)); **holds**, 1 ([real](real)) | at least 0 BLEU |",
    ]


def test_a_cell_of_table_1_is_the_mean_of_its_seeds_beside_the_published_one():
    with (forms.FOLDER / "every_seed/measured.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["form"] == row["tested_with"] == "Top-k"]
    eight = [float(row["bleu"]) for row in rows if float(row["budget"]) == 8]
    expected = f"{statistics.mean(eight):.1f} ± {statistics.stdev(eight):.1f} (37.6)"
    (line,) = (line for line in forms.table1().splitlines() if line.startswith("| Top-k |"))
    assert len(eight) == 3
    assert line.split(" | ")[2] == expected


@pytest.mark.parametrize("path", sorted(kmeans.FOLDER.glob("*.csv")), ids=lambda path: path.stem)
def test_any_number_of_centroids_is_never_behind_one_and_both_are_of_kmeans(path):
    compared = kmeans.compared(labelled(read_table(path)))
    shared = compared.shared(kmeans.ONE, kmeans.ANY)
    gained = np.stack([compared.difference(kmeans.ANY, kmeans.ONE, budget)[0] for budget in shared])
    assert gained.min() >= -1e-9
    assert gained.max() > 1


def test_what_a_benchmark_no_longer_says_is_named():
    with pytest.raises(ValueError, match=r"some\.txt: must contain a line like"):
        speed.found("^ours", "theirs 3 ms", "some.txt")


def test_bits_of_a_character_model_are_the_mean_of_its_seeds_with_their_spread():
    bits = []
    run = "war-and-peace-512"
    for path in (ROOT / "reported" / run / "char_lm/war-and-peace/models/block").glob("seed*/measured.csv"):
        with path.open() as file:
            bits += [float(row["bits_per_character"]) for row in csv.DictReader(file)]
    assert len(bits) == 3
    (line,) = (line for line in characters.table3(run).splitlines() if line.startswith("| Transformer block |"))
    assert f"| {statistics.mean(bits):.3f} ± {statistics.stdev(bits):.3f} |" in line


def test_a_method_that_no_stored_run_has_is_in_no_table(monkeypatch):
    """As one that a user adds: the table of initialisations looked for its curve."""
    before = initialisation.initialisation()
    monkeypatch.setitem(initialisation.METHODS, "long-keys", initialisation.METHODS["window"])
    assert initialisation.initialisation() == before
