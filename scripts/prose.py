# SPDX-License-Identifier: Apache-2.0
"""Check the language of pages, comments, docstrings, interfaces, messages and commit subjects.

prose.py [--list] [--commits N] FILE|FOLDER ...

Counts phrases that a robotics engineer would have to read twice (PHRASES), per 1,000 words of each kind of text. Exit
code 1 if a kind exceeds its bar (BARS), with the place, the phrase and the remedy of each of its sentences. ``--list``
prints them for all kinds. ``--commits N`` also reads the subjects of the last N commits.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

BARS = {"C++": 10.0, "Python": 8.0, "pages": 8.0, "interfaces": 8.0, "changelog": 6.0, "messages": 4.0, "commits": 3.0}
"""Largest number of phrases per 1,000 words, by kind of text."""

MAX_SUBJECT = 60
"""Largest length of a commit subject, characters."""

_PREPOSITION = (
    "(?:of|in|by|to|for|with|from|at|on|after|before|between|beyond|against|over|under|until|without|below|above|within"
    "|through|into|than)"
)
_QUANTITY = "(?:time|period|distance|length|duration|delay|stamp|number|share|rate|step|position|velocity)"
_VAGUE = "(?:Take|Go|Lead|Tell|Look|Leave|Let|Come|Say|Note|Forget|Rest|Stay|Bring|Lean|Aim)"

PHRASES = {
    "repeat the noun": (
        r"\bth(?:at|ose) of\b|\bthose (?:that|which|with|without|in|at|by|from|for|are|is)\b|\bthe same of\b"
        r"|\bthe (?:latter|former)\b"
    ),
    "use a term instead of a clause": r"\bwhat(?:ever)?\b(?! (?:if|about)\b)(?![^.]*\?)|\bwho(?:ever|m)\b",
    "use if": r"\bwhere\b(?! (?:\S|X|theta|tau|delta|omega) (?:is|are|=)\b)",
    "split the sentence": rf"\b{_PREPOSITION} wh(?:ich|om|ose)\b|\bwhose\b",
    "say what the function does": r"^(?:Has|Have) (?!been|no|not|to\b)|\b(?:has|have|had) (?:it|them) [a-z]+\b",
    "use the imperative or the future": r"\b(?<!purpose )(?<!goal )(?:is|are|was|were) (?:not |only )?to [a-z]+\b",
    "name the thing": (
        r"\bsuch (?:a|an|as those|ones?)\b|\bones\b|\bone (?:that|which|with|who)\b"
        r"|\b(?:another|the (?:last|first|next|other)|no|or|than|with|a single) one\b"
    ),
    "state the condition": r"\b(?:is|are|has|have|of|or|for|if|needs|takes) (?-i:none)\b|\bnone (?:is|are|of|has)\b",
    "drop the last word": r",? too(?=[.,;:)]|$)|\ball the same\b|\bat once\b|\banew\b|\blikewise\b|\bany ?more\b",
    "use a word of today": (
        r"\b(?:lest|amid|beside|but for|seldom|meanwhile|nor does|wherever|hitherto|foretells?|begun|thereof|mends?)\b"
    ),
    "begin with the result": r"^Whether\b",
    "begin with the thing": (
        r"^(?:Where|What|Whatever|Who|Whose|Of|So|Those|The same|Until|Beside|Nor|Nothing|Why|Which)\b"
        r"|^How (?:much|many|far)\b"
    ),
    "use an active verb": (
        r"\b(?:is|are|was|were|be|been|being) (?:\w+ )?(?:led|taken|told|asked|said|sought|wanted|judged|meant|brought"
        r"|put|left out|held up|looked (?:at|for)|waited for)\b"
    ),
    "use a precise verb": rf"^{_VAGUE}e?s\b",
    "name the parameter": rf"\b(?:a|an|some|another) (?:\w+ )?{_QUANTITY}, (?:s|ns|ms|us|m|rad|Hz)(?=[,;:.)]|$)",
}
"""Pattern of phrases by the remedy."""

_PATTERNS = {remedy: re.compile(pattern, 0 if "^" in pattern else re.IGNORECASE) for remedy, pattern in PHRASES.items()}
_LITERAL = r'"(?:\\.|[^"\\\n])*"'
_CPP_TOKEN = re.compile(rf"{_LITERAL}|'(?:\\.|[^'\\\n])+'|//[^\n]*|/\*.*?\*/", re.DOTALL)
_IGNORED = re.compile(r"SPDX|NOLINT|noqa|type: ignore|pragma|clang-format")
_CODE_LINE = re.compile(r"[;{}]\s*$|^\s*#\s*(?:include|define|if|endif)\b")
_CPP_SUFFIXES = {".h", ".hpp", ".c", ".cc", ".cpp", ".cu"}
_INTERFACE_SUFFIXES = {".msg", ".srv", ".action"}
_GENERATED = {"reference", "results", "golden", "__pycache__"}
_MIN_WORDS = 4


class Text(NamedTuple):
    """A piece of text at a line of a file."""

    kind: str
    place: str
    line: int
    words: str


class Sentence(NamedTuple):
    """A sentence, with the phrases and remedies found in it."""

    place: str
    words: str
    found: list[tuple[str, str]]


# --- Readers ------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Text with a placeholder for each piece of code, formula, link and field; list items become sentences."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", " ", text)
    text = re.sub(r"\[([^\]\n]*)\]\([^)\n]*\)", r"\1", text)
    text = re.sub(r":\w+:`[^`\n]*`|``[^`\n]*``|`[^`\n]*`_?|\$[^$\n]+\$|https?://\S+", "X", text)
    return re.sub(r"^ *(?:[*\-+]|\d+[.)]) +", " . ", text, flags=re.MULTILINE)


def page(text: str) -> str:
    """Sentences of a page, without code, tables and headings; keeps the lines."""
    for block in (r"<!--.*?-->", r"^ *(```|~~~).*?^ *\1 *$"):
        text = re.sub(block, lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^(?: {4}|\t)(?! *[*-] ).*$|^ *[|:=+].*$|^ *\.\. .*$|^#+ .*$", ".", text, flags=re.MULTILINE)
    return plain(re.sub(r"^.*\n[=~^\"-]{3,}$", ".\n", text, flags=re.MULTILINE))


def joined(comments: Iterator[tuple[int, str, bool]]) -> Iterator[tuple[int, str]]:
    """Comments, with those on consecutive lines as one block; a comment behind code begins a new block."""
    block: list[str] = []
    start, last = 0, -1
    for line, words, alone in comments:
        if not (alone and line == last + 1):
            if block:
                yield start, "\n".join(block)
            block, start = [], line
        block.append("." if _IGNORED.search(words) or _CODE_LINE.search(words) else words)
        last = line + words.count("\n") if alone else -1
    if block:
        yield start, "\n".join(block)


def cpp_comments(text: str) -> Iterator[tuple[int, str, bool]]:
    """Line, text and whether a comment is alone on its line, of C and C++."""
    for match in _CPP_TOKEN.finditer(text):
        if match[0].startswith(("//", "/*")):
            words = re.sub(r"^/[/*]+[!<]*|\*/$|^\s*\*+ ?", "", match[0], flags=re.MULTILINE)
            before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
            yield text.count("\n", 0, match.start()) + 1, words, not before.strip()


def python_comments(text: str) -> Iterator[tuple[int, str, bool]]:
    """Line, text and whether a comment is alone on its line, of Python."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            words = re.sub(r"^#+:?|-{3,}", "", token.string)
            yield token.start[0], words, not token.line[: token.start[1]].strip()


def interface_comments(text: str) -> Iterator[tuple[int, str, bool]]:
    """Line, text and whether a comment is alone on its line, of .msg, .srv and .action."""
    for line, content in enumerate(text.splitlines(), 1):
        before, mark, words = content.partition("#")
        if mark:
            yield line, words, not before.strip()


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Strings that stand alone as statements."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for item in body if isinstance(body, list) else ():
            if (
                isinstance(item, ast.Expr)
                and isinstance(item.value, ast.Constant)
                and isinstance(item.value.value, str)
            ):
                yield item.value


def docstring(text: str) -> str:
    """Sentences of a docstring: names and headings of sections become ends of sentences."""
    text = "\n".join(line.strip() for line in text.splitlines())
    return page(re.sub(r"^\*{0,2}[\w, ]+(?: \([^)]*\))?:(?: |$)", ". ", text, flags=re.MULTILINE))


def python_messages(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Strings that are not docstrings, with a placeholder for each field."""
    ignored = {id(node) for node in docstrings(tree)}
    for node in ast.walk(tree):
        if id(node) in ignored:
            continue
        if isinstance(node, ast.JoinedStr):
            ignored |= {id(part) for part in ast.walk(node)}
            yield node.lineno, "".join(str(p.value) if isinstance(p, ast.Constant) else "X" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def cpp_messages(text: str) -> Iterator[tuple[int, str]]:
    """String literals of C and C++, with consecutive ones joined."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    for match in re.finditer(rf"{_LITERAL}(?:\s*{_LITERAL})*", text):
        yield text.count("\n", 0, match.start()) + 1, re.sub(r'"\s*"|^"|"$', "", match[0])


def is_message(words: str) -> bool:
    """Whether a string is a sentence for users, not code, a path or markup."""
    words = words.strip()
    code = "\n" in words or "|" in words or re.search(r"[{};]\s*$|^<|\)\s*=|^\W*--?\w", words)
    return not code and len(re.findall(r"\b[a-z]{2,}\b", words)) >= _MIN_WORDS


def texts(path: Path) -> Iterator[Text]:
    """Texts of a file by kind; nothing for other files."""
    suffix = Path(path.name.removesuffix(".in")).suffix
    place = str(path)
    if suffix in (".md", ".rst"):
        kind = "changelog" if path.name.startswith("CHANGELOG") else "pages"
        yield Text(kind, place, 1, page(path.read_text(encoding="utf-8")))
    elif suffix in _INTERFACE_SUFFIXES:
        comments = joined(interface_comments(path.read_text(encoding="utf-8")))
        yield from (Text("interfaces", place, line, plain(words)) for line, words in comments)
    elif suffix in _CPP_SUFFIXES:
        text = path.read_text(encoding="utf-8")
        yield from (Text("C++", place, line, plain(words)) for line, words in joined(cpp_comments(text)))
        yield from (Text("messages", place, line, plain(x)) for line, x in cpp_messages(text) if is_message(x))
    elif suffix == ".py" and path.suffix == ".py":
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        yield from (Text("Python", place, node.lineno, docstring(str(node.value))) for node in docstrings(tree))
        yield from (Text("Python", place, line, plain(words)) for line, words in joined(python_comments(text)))
        yield from (Text("messages", place, line, plain(x)) for line, x in python_messages(tree) if is_message(x))


def subjects(count: int) -> list[str]:
    """Hash and subject of each of the last commits."""
    command = ("git", "log", "--no-merges", "--format=%h %s", f"-{count}")
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


# --- Counts -------------------------------------------------------------------------------


def sentences(text: Text) -> Iterator[Sentence]:
    """Sentences of at least four words, with the phrases found in them."""
    start = 0
    for piece in re.split(r"((?<=[.!?:;])\s+|\s\.(?=\s|$)|\n\s*\n)", text.words):
        words = " ".join(piece.split()).strip(". ")
        if len(re.findall(r"[A-Za-z]{2,}", words)) >= _MIN_WORDS:
            line = text.line + text.words.count("\n", 0, start + len(piece) - len(piece.lstrip()))
            found = [(m[0], remedy) for remedy, pattern in _PATTERNS.items() for m in pattern.finditer(words)]
            yield Sentence(f"{text.place}:{line}", words, found)
        start += len(piece)


def files_of(paths: list[str]) -> Iterator[Path]:
    """Files, and files in folders except generated ones."""
    for path in map(Path, paths):
        if path.is_file():
            yield path
        elif not path.is_dir():
            raise SystemExit(f"prose.py: no file or folder {path}")
        else:
            yield from sorted(x for x in path.rglob("*") if x.is_file() and not _GENERATED & {*x.parts})


def report(kind: str, found: list[Sentence], *, listed: bool) -> bool:
    """Print the figures of a kind, and its phrases if `listed` or beyond its bar; return whether it keeps its bar."""
    words = sum(len(x.words.split()) for x in found)
    rate = 1000 * sum(len(x.found) for x in found) / words
    kept = rate <= BARS[kind]
    bar = f"bar {BARS[kind]:g}{'' if kept else ': EXCEEDED'}"
    print(f"{kind:10} {words:7} words {rate:5.1f} phrases per 1,000 words, {bar}")
    if listed or not kept:
        for sentence in found:
            for phrase, remedy in sentence.found:
                print(f"  {sentence.place}: {phrase!r}: {remedy}")
    return kept


def main(arguments: list[str] | None = None) -> int:
    """Check files and commits; return the exit code."""
    parser = argparse.ArgumentParser(usage=(__doc__ or "").splitlines()[2])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--commits", type=int, default=0)
    parser.add_argument("paths", nargs="*")
    given = parser.parse_args(arguments)
    by_kind: dict[str, list[Sentence]] = {}
    for path in files_of(given.paths):
        for text in texts(path):
            by_kind.setdefault(text.kind, []).extend(sentences(text))
    kept = True
    for hash_, _, subject in (x.partition(" ") for x in subjects(given.commits) if given.commits):
        by_kind.setdefault("commits", []).extend(sentences(Text("commits", hash_, 1, plain(subject))))
        if len(subject) > MAX_SUBJECT:
            kept = False
            print(f"{hash_}: subject of {len(subject)} characters, at most {MAX_SUBJECT}: {subject}")
    for kind in BARS:
        if by_kind.get(kind):
            kept &= report(kind, by_kind[kind], listed=given.list)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
