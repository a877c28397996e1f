"""Text of many scripts against itself, after it was cut into tokens and joined again."""

import random

import pytest

from replication.corpora.spacing import fit_tokenizer, join_tokens, learn_spacing
from replication.corpora.subwords import tokenizer
from replication.files import notes
from replication.translation.evaluation import score

#: Words and marks of each text, and the marks that may follow a word. `_` stands for the word.
TEXTS = {
    "en": ("word house Lord son water", ["_", "_,", "“_,”", "_.”", "“‘_.’”", "_’s", "_s’", "_—_", "(_)", '"_"', "isn’t", "_;"]),
    "fr": ("maison père fils eau homme", ["_", "d’_", "l’_,", "qu’on", "« _ »", "_ ;", "_ !", "_ : _", "l'_", "(_)"]),
    "de": ("Haus Vater Sohn Wasser", ["_", "„_“", "‚_‘", "_.“", "hat’s", "_,", "_ – _", "3,50"]),
    "sv": ("hus far son vatten", ["_", "”_”", "_.”", "’_’", "_,"]),
    "da": ("hus far søn vand", ["_", "»_«", "_.«", "_,"]),
    "el": ("λόγος θεός άνθρωπος", ["_", "_·", "_;", "«_»", "_,", "κατ’ _"]),
    "he": ("שָׁלוֹם עוֹלָם חֲבֵרִים", ["_", "_,", "_־_", "_׃", "צה״ל"]),
    "hbo": ("בְּרֵאשִׁ֖ית בָּרָ֣א אֱלֹהִ֑ים", ["_", "_׃", "_־_", "_ ׀ _"]),
    "ar": ("السَّلامُ عَلَيْكُمْ كِتَاب", ["_", "_،", "_؟", "_؛", "«_»"]),
    "fa": ("می‌خواهم کتاب‌ها خانه", ["_", "_،", "_؟", "«_»"]),
    "hi": ("हिन्दी किताब लिखी हुई", ["_", "_।", "_ ।", "_,", "“_”"]),
    "th": ("สวัสดีครับ ที่นี่ น้ำ", ["_", "_ฯ", "“_”"]),
    "zh": ("你好 世界 水", ["_", "_。", "“_”", "_,", "《_》"]),
    "ipa": ("ˈhɛləʊ wɜːld ðɪs̩ piː̃", ["_", "/_/", "[_]", "_‿_", "_|", "t͡ʃ_"]),
    "lost": ("a", ["_", "_\u200b_", "x \u200b", "\u200b"]),
    "piece": ("▁the ▁cat ▁s at", ["_", "▁", "_▁", "▁ _", "_."]),
    "xx": ("a@-@b &amp; &quot;x x|y", ["_", "@-@", "_|", "<_>", "[_]"]),
}  # fmt: skip


def text_of(language, lines, seed=0):
    generator = random.Random(seed)
    words, forms = TEXTS[language]

    def one():
        return generator.choice(forms).replace("_", generator.choice(words.split()))

    return [" ".join(one() for _ in range(generator.randint(4, 12))) for _ in range(lines)]


@pytest.fixture(autouse=True)
def unseen_notes():
    notes.note.cache_clear()


@pytest.mark.parametrize("language", TEXTS)
def test_a_perfect_translation_has_the_highest_bleu(language):
    train, test = text_of(language, 400), text_of(language, 50, seed=1)
    tokenize, spacing = fit_tokenizer("moses", language, train)
    assert score([join_tokens(tokenize(line), spacing) for line in test], test, language)[0] > 99.7


@pytest.mark.parametrize("language", ["piece"])
def test_a_text_whose_words_moses_loses_is_cut_at_its_spaces_with_a_note(language, capsys):
    train = text_of(language, 400)
    tokenize, spacing = fit_tokenizer("moses", language, train)
    assert spacing is None
    assert [tokenize(line) for line in train] == train
    assert f"words in {language!r}" in capsys.readouterr().err


def test_a_text_that_moses_keeps_is_cut_by_moses(capsys):
    tokenize, spacing = fit_tokenizer("moses", "en", text_of("en", 400))
    assert tokenize("“Go,” he said.") == tokenizer("moses", "en")("“Go,” he said.") == "“ Go , ” he said ."
    assert not capsys.readouterr().err
    assert join_tokens("“ Depart , ” she said .", spacing) == "“Depart,” she said."


def test_marks_that_open_and_close_are_counted():
    lines = ['"a" b "c" d', 'e "f" g']
    spacing = learn_spacing(lines, ['" a " b " c " d', 'e " f " g'])
    assert join_tokens('x " y " z', spacing) == 'x "y" z'


def test_text_with_spaces_has_no_spaces_to_learn():
    tokenize, spacing = fit_tokenizer("spaces", "en", ["a , b"])
    assert spacing is None
    assert join_tokens(tokenize("a  , b ."), spacing) == "a , b ."
