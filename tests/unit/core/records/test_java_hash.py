"""Java's hash code of a text."""

from penstock.core.records.java_hash import text_hash


def test_texts_hash_as_in_java() -> None:
    assert text_hash("Aa") == text_hash("BB") == 2112
    assert text_hash("consumer-1") == 2**32 - 166_239_206  # Java's is signed
    assert text_hash("é") == 0xE9
    assert text_hash("\U0001f600") == (31 * 0xD83D + 0xDE00)
