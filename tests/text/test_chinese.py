"""Chinese words: from jieba's dictionary, whatever lies in the folder for temporary files."""

import marshal
import subprocess
import sys

TEXT = "我来到北京清华大学"
CODE = f"from docmt.text.tokenizer import chinese_words; print(*chinese_words({TEXT!r}))"


def test_a_cache_of_others_changes_no_word(tmp_path):
    """`jieba.cut` would read this file and cut each character off."""
    (tmp_path / "jieba.cache").write_bytes(marshal.dumps(({}, 1)))
    command = [sys.executable, "-c", CODE]
    done = subprocess.run(command, env={"TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["我", "来到", "北京", "清华大学"]
    assert [file.name for file in tmp_path.iterdir()] == ["jieba.cache"]
    assert (tmp_path / "jieba.cache").stat().st_size < 100
