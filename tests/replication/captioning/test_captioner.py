"""Captioners against stock BART, and against what top-k promises."""

import pytest
import torch
from transformers import BartConfig, BartForConditionalGeneration

from replication.captioning.batches import END, labels_batch, regions_batch
from replication.captioning.model import build_model, settings_of

SIZES = {"encoder_layers": 1, "decoder_layers": 2, "d_model": 16, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
         "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "dropout": 0.0, "init_std": 0.3}  # fmt: skip
REGIONS = {"region_count": 9, "region_width": 5, "longest": 6}


def model(top_k: int | None = None, seed: int = 0):
    return build_model(12, **REGIONS, top_k=top_k, seed=seed, **SIZES).eval()


def batch() -> dict[str, torch.Tensor]:
    features = {0: torch.randn(9, 5).numpy(), 1: torch.randn(4, 5).numpy()}
    labels = labels_batch([[5, 6, 7, END], [8, END]])
    return regions_batch(features.get, [0, 1], width=5, most=9) | {"labels": labels}


def test_softmax_is_stock_bart():
    """Which is given the same weights, and the regions as it takes what is no word."""
    own = model()
    stock = BartForConditionalGeneration(BartConfig.from_dict(own.config.to_dict()))
    stock.load_state_dict(own.state_dict(), strict=False)
    given = batch()
    expected = stock.eval()(
        inputs_embeds=own.regions(given["regions"]), attention_mask=given["real"].long(), labels=given["labels"]
    )
    found = own.describe(**given)
    torch.testing.assert_close(found.logits, expected.logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.loss, expected.loss)


def test_top_k_of_all_keys_is_softmax():
    given = batch()
    torch.testing.assert_close(
        model(9).describe(**given).logits, model().describe(**given).logits, atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("kind", ["encoder_attentions", "decoder_attentions", "cross_attentions"])
def test_no_query_attends_to_more_than_k_keys(kind):
    found = model(top_k=3).describe(**batch(), output_attentions=True)
    for weights in getattr(found, kind):
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
        assert (weights > 0).sum(-1).max() == 3


def test_padding_is_not_attended_to_and_changes_nothing():
    own, given = model(top_k=3), batch()
    alone = {name: tensor[1:, :4] if name != "labels" else tensor[1:] for name, tensor in given.items()}
    together = own.describe(**given, output_attentions=True)
    assert (together.cross_attentions[0][1, :, :, 4:] == 0).all()
    torch.testing.assert_close(together.logits[1], own.describe(**alone).logits[0], atol=1e-5, rtol=1e-5)


def test_a_beam_of_one_says_what_is_most_likely_step_by_step():
    own, given = model(), batch()
    said = own.search(given["regions"], given["real"], beam=1, longest=6)
    for row in range(2):
        words: list[int] = []
        while len(words) < 7 and (not words or words[-1] != END):
            labels = labels_batch([[*words, END]])
            logits = own.describe(given["regions"][row : row + 1], given["real"][row : row + 1], labels).logits[0, -1]
            logits[[0, 1, 3]] = -torch.inf  # marks are not said
            words.append(int(logits.argmax()))
        assert said[row, 1 : len(words) + 1].tolist() == words


def test_weights_come_from_the_seed():
    one, same, other = (model(seed=seed).regions.weight for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_features_of_another_width_are_refused_with_the_image():
    with pytest.raises(ValueError, match="image 4: features must have width 5, got 6"):
        regions_batch({4: torch.zeros(3, 6).numpy()}.get, [4], width=5, most=9)
    with pytest.raises(ValueError, match="image 4: must have at most 9 regions, got 10"):
        regions_batch({4: torch.zeros(10, 5).numpy()}.get, [4], width=5, most=9)


def test_settings_are_known():
    assert (settings_of({}), settings_of({"top_k": 4})) == (None, 4)
    with pytest.raises(ValueError, match="must have no key but top_k, got window"):
        settings_of({"window": 3})
    with pytest.raises(ValueError, match="`top_k` must be at least 1"):
        model(top_k=0)
