"""The attention explorer: what its JavaScript computes in a browser is what the library computes."""

import html
import json
import re
from base64 import b64decode, b64encode

import numpy as np
import pytest
import torch
from browser import act, browse, in_a_browser
from torch import Tensor

from replication.masked_lm.passage import LENGTH, cut
from replication.report.explorer import explorer
from sparselib import masks, metrics
from sparselib.predictors import Clustering, Distance, Quantization, Routing

LAYERS, HEADS, N, R = 2, 3, 41, 4
#: Settings of the page's controls, and the library's predictor for each.
SETTINGS = {
    "distance": [
        {"threshold": 0},
        {"threshold": 0.45},
        {"threshold": 1.5, "window": 4},
        {"threshold": 4, "global": True},
    ],
    "quantization": [{"bins": 2}, {"bins": 7, "window": 5}, {"bins": 96}],
    "kmeans": [{"clusters": 8, "top": 1}, {"clusters": 32, "top": 2, "window": 1, "global": True}],
    "routing": [{"clusters": 8}, {"clusters": 16, "window": 3, "global": True}],
    "window": [{"window": 0}, {"window": 1}, {"window": 6, "global": True}],
}
FIRST = {"threshold": 1, "bins": 16, "top": 1, "window": 0, "global": False}


def encoded(values: Tensor, kind: type = np.float32) -> str:
    return b64encode(values.numpy().astype(kind).tobytes()).decode()


@pytest.fixture(scope="module")
def tensors() -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(0)
    found = {name: torch.randn(LAYERS, HEADS, N, R, generator=random) for name in ("q", "k")}
    found["k"][:, :, 5] = found["k"][:, :, 9]  # equal values keep their order
    names = ("kmeans-8", "kmeans-32", "routing-8", "routing-16")
    found |= {name: torch.randn(LAYERS, HEADS, int(name.partition("-")[2]), R, generator=random) for name in names}
    found["gold"] = torch.rand(LAYERS, HEADS, N, N, generator=random) < 0.1
    found["gold"][0, 1] = False  # without gold pairs, none is missed
    return found


@pytest.fixture(scope="module")
def page(tensors, tmp_path_factory):
    data = {"words": [f"w{i}<&>" for i in range(N)], "layers": LAYERS, "heads": HEADS, "length": N, "dimension": R}
    data |= {name: encoded(tensors[name]) for name in ("q", "k")}
    data["centroids"] = {name: encoded(x) for name, x in tensors.items() if "-" in name}
    data["counts"] = encoded(tensors["gold"].sum(-1), np.uint8)
    data["keys"] = encoded(tensors["gold"].nonzero()[:, 3], np.uint8)
    path = tmp_path_factory.mktemp("explorer") / "explorer.html"
    path.write_text(explorer(json.dumps(data), "mine<b>", "report.html"), encoding="utf-8")
    return path


def expected(tensors: dict[str, Tensor], method: str, head: int, setting: dict) -> list[float]:
    """Return recall, precision and sparsity by the library, in double precision, as JavaScript computes."""

    def of_head(name: str) -> Tensor:
        return tensors[name].flatten(0, 1)[head : head + 1].double()

    q, k = of_head("q")[None], of_head("k")[None]
    if method == "distance":
        predicted = Distance(setting["threshold"]).predict(q, k)
    elif method == "quantization":
        predicted = Quantization(setting["bins"]).predict(q, k)
    elif method == "kmeans":
        predicted = Clustering(of_head(f"kmeans-{setting['clusters']}"), top_k=setting["top"]).predict(q, k)
    elif method == "routing":
        predicted = Routing(of_head(f"routing-{setting['clusters']}")).predict(q, k)
    else:
        predicted = torch.zeros(1, 1, N, N, dtype=torch.bool)
    predicted = masks.combine(predicted, setting["window"], "first_last" if setting["global"] else "none")
    gold = tensors["gold"].flatten(0, 1)[head][None, None]
    return [
        metrics.recall(predicted, gold).item(),
        metrics.precision(predicted, gold).item(),
        metrics.sparsity(predicted).item(),
    ]


@in_a_browser
def test_the_page_finds_what_the_library_finds(page, tensors):
    """Every control is moved, for two heads, one of which has no gold pair; then the numbers are read."""
    moves = [
        (method, head, FIRST | setting)
        for method, settings in SETTINGS.items()
        for setting in settings
        for head in (1, 4)
    ]
    title = act(page, f"""
        const read = id => Number(page.getElementById(id).dataset.exact), found = [];
        for (const [method, head, setting] of {json.dumps(moves)}) {{
          choose("method", method);
          for (const [id, value] of Object.entries(setting)) choose(id, value);
          page.getElementById("heads").children[head].click();
          found.push(["recall", "precision", "sparsity"].map(read));
        }}
        document.title = JSON.stringify(found);""")  # fmt: skip
    found = json.loads(title)
    assert len(found) == len(moves) == 28
    for (method, head, setting), numbers in zip(moves, found, strict=True):
        assert numbers == pytest.approx(expected(tensors, method, head, setting), abs=1e-6), (method, head, setting)
    assert len({numbers[0] for numbers in found}) > 10


@in_a_browser
def test_the_mean_is_that_of_all_heads(page, tensors):
    title = act(page, """choose("method", "distance"); choose("threshold", 2); choose("window", 3);
        document.title = page.getElementById("mean-recall").dataset.exact;""")  # fmt: skip
    setting = FIRST | {"threshold": 2, "window": 3}
    recalls = [expected(tensors, "distance", head, setting)[0] for head in range(LAYERS * HEADS)]
    assert float(title) == pytest.approx(np.mean(recalls), abs=1e-6)


@in_a_browser
def test_pointing_at_a_pair_names_its_words_and_what_became_of_it(page, tensors):
    i, j = tensors["gold"][0, 0].nonzero()[3].tolist()
    title = act(page, f"""choose("method", "window");
        const canvas = page.getElementById("matrix"), box = canvas.getBoundingClientRect(), cell = box.width / {N};
        const [clientX, clientY] = [box.left + cell * {j + 0.5}, box.top + cell * {i + 0.5}];
        canvas.dispatchEvent(new PointerEvent("pointermove", {{ clientX, clientY }}));
        const word = page.getElementById("text").children[{j}];
        document.title = page.getElementById("pair").textContent + "; " + word.className;""")  # fmt: skip
    assert re.fullmatch(rf"query “w{i}.* \({i + 1}\), key “w{j}.* \({j + 1}\): missed; (query )?key missed", title)


@in_a_browser
def test_it_is_as_wide_as_a_phone_and_loads_nothing(page):
    assert int(act(page, "document.title = page.documentElement.scrollWidth")) <= 390
    assert 'src="' not in browse(page.as_uri())


def test_a_runs_name_is_shown_as_it_is(page):
    shown = html.unescape(act(page, "document.title = page.body.innerText"))
    assert "of the run mine<b>, cut" in shown


def test_a_passage_is_a_beginning_with_the_sequences_last_token():
    ids = torch.arange(1000)
    assert cut(ids).tolist() == [*range(LENGTH - 1), 999]
    assert cut(ids[:50]).tolist() == list(range(50))


def test_words_of_any_text_stay_words(page):
    text = page.read_text(encoding="utf-8")
    assert "w0<&>" not in text
    start = text.index('id="passage">') + len('id="passage">')
    assert json.loads(text[start : text.index("</script>", start)])["words"][0] == "w0<&>"
    assert len(b64decode(json.loads(text[start : text.index("</script>", start)])["q"])) == LAYERS * HEADS * N * R * 4
