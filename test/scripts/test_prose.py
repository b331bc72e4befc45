# SPDX-License-Identifier: Apache-2.0
"""Language check of `make lint`: each reader finds its text, and each kind has a bar that can be exceeded."""

from pathlib import Path

import prose
import pytest

BAD = "Whether what is sent is that of the motors, too."
GOOD = "Return the motor command that the drives receive."
FILES = {
    "page.md": ("pages", "# Title\n\n```\nwhat code says, too\n```\n\n{}\n"),
    "CHANGELOG.rst": ("changelog", "Title\n=====\n\n* {}\n"),
    "State.msg": ("interfaces", "float64 x  # {}\n"),
    "code.py": ("Python", '"""{}"""\nx = 1\n'),
    "comment.py": ("Python", "x = 1  # {}\n"),
    "code.hpp": ("C++", "/// {}\nint x;\n"),
    "block.c": ("C++", "/* {} */\nint x;\n"),
    "template.cpp.in": ("C++", "int x;  // {}\n"),
    "message.py": ("messages", 'raise ValueError("{}")\n'),
    "formatted.py": ("messages", "print(f'{{x}}: {}')\n"),
    "message.cpp": ("messages", 'throw Error("{}"\n    " In rad.");\n'),
}


@pytest.mark.parametrize("name", FILES)
def test_kinds_of_text(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind, content = FILES[name]
    file = tmp_path / name
    file.write_text(content.format(GOOD), encoding="utf-8")
    assert prose.main([str(file)]) == 0
    assert capsys.readouterr().out.startswith(f"{kind} ")
    file.write_text(content.format(BAD), encoding="utf-8")
    assert prose.main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    line = content[: content.index("{}")].count("\n") + 1
    assert "EXCEEDED" in printed and f"{name}:{line}: 'that of': repeat the noun" in printed


def test_code_is_not_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "code.py"
    file.write_text('x = "SELECT a FROM b WHERE what is too;"\ny = "--what is that of the file"\n', encoding="utf-8")
    assert prose.main([str(file)]) == 0
    assert capsys.readouterr().out == ""


def test_missing_files_are_named() -> None:
    with pytest.raises(SystemExit, match="no file or folder missing"):
        prose.main(["missing"])
