"""Machines that made a run's results, which are not those that drew its pictures."""

from replication.files.machines import machines


def test_pictures_and_pages_may_come_from_anywhere():
    made = {
        "masked_lm/perplexity.csv": {"stage": "evaluate", "machine": "first"},
        "figures/fig04.svg": {"stage": "draw", "machine": "second"},
        "report.html": {"stage": "report", "machine": "third"},
    }
    names = {name: {"hardware": name} for name in ("first", "second", "third")}
    assert machines({"made": made, "machines": names}) == [{"hardware": "first"}]
