"""The directory that agents work in: a code base, a log, odd names, two directories that differ. Made from a seed, so that
every run and every server has the same bytes."""

import random
import unicodedata
from pathlib import Path

LOG_LINES = 1_600_000
MODULES = 40
RENAMED_FILES = 16
RENAMED_PLACES = 45
CALLERS = 5
PAIRS = 53

COMPOSED = unicodedata.normalize("NFC", "Überblick.md")
DECOMPOSED = unicodedata.normalize("NFD", "Änderungen.md")
# The file whose name an agent has to write without knowing that it is decomposed.
TYPED = unicodedata.normalize("NFC", DECOMPOSED)

WORDS = "buffer cursor digest entry filter header index journal kernel ledger marker node offset parser queue record".split()


def build(base: Path, log_lines: int = LOG_LINES) -> None:
    """Makes everything below an empty directory."""
    chance = random.Random(20261118)
    code(base / "app", chance)
    log(base / "logs" / "server.log", chance, log_lines)
    notes(base / "notes")
    pairs(base / "left", base / "right", chance)
    for number in range(120):
        put(base / f"build/obj{number % 6}/part{number}.o", "\0object\n" * (number + 1))
    for number in range(10):
        put(base / f"parts/part{number}.txt", "".join(f"part {number} {sentence(chance)}\n" for _ in range(40)))


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def sentence(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(8))


def code(base: Path, chance: random.Random) -> None:
    """Modules of functions; some use the symbol that is renamed, some call the function that gets a parameter."""
    uses = [1] * RENAMED_FILES
    for _ in range(RENAMED_PLACES - RENAMED_FILES):
        uses[chance.randrange(RENAMED_FILES)] += 1
    for number in range(MODULES):
        lines = [f"//! Module {number}: {sentence(chance)}.", ""]
        for function in range(14):
            lines += [f"/// Computes {sentence(chance)}.", f"pub fn step_{number}_{function}(value: u64) -> u64 {{"]
            lines += [f"    let {word} = value.wrapping_mul({chance.randrange(1, 99)});" for word in chance.sample(WORDS, 3)]
            lines += ["    value", "}", ""]
        if number < RENAMED_FILES:
            lines += [f"pub type Alias{number}x{use} = JobTable; // {sentence(chance)}" for use in range(uses[number])]
        if number < CALLERS:
            lines += ["", f"pub fn caller_{number}() -> u64 {{", f"    fetch_page({number})", "}"]
        put(base / f"src/module_{number:02}.rs", "\n".join(lines) + "\n")
    put(base / "src/fetch.rs", "//! Pages.\n\n/// Fetches a page.\npub fn fetch_page(number: u64) -> u64 {\n    number + 1\n}\n")
    put(base / "src/window.rs", "\n".join(window(chance)) + "\n")
    put(base / "config/app.yaml", "server:\n  host: 127.0.0.1\n  port: 8080\n  workers: 4\nlimits:\n  timeout: 30\n  retries: 3\n")
    for number in range(24):
        put(base / f"assets/blob{number:02}.txt", "x" * (1000 + 977 * ((number * 7) % 24)) + "\n")


def window(chance: random.Random) -> list[str]:
    """826 lines; one loop in the middle goes one too far."""
    lines = ["//! The window."]
    while len(lines) < 410:
        lines.append(f"// {sentence(chance)}")
    lines += ["pub fn last_index(items: &[u64]) -> usize {", "    let mut at = 0;", "    while at <= items.len() {", "        at += 1;", "    }", "    at", "}"]
    while len(lines) < 826:
        lines.append(f"// {sentence(chance)}")
    return lines


def log(path: Path, chance: random.Random, lines: int) -> None:
    """About 200 MB at the full number of lines; errors are rare, the last three near the end."""
    path.parent.mkdir(parents=True, exist_ok=True)
    filler = [f"{sentence(chance)} {sentence(chance)}"[:92] for _ in range(997)]
    with path.open("w") as file:
        for number in range(1, lines + 1):
            level = "ERROR" if number % (lines // 40) == 7 or number > lines - 30 and number % 10 == 3 else "INFO"
            file.write(f"2026-11-18T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z {level} {number} {filler[number % 997]}\n")


def notes(base: Path) -> None:
    put(base / "crlf.txt", "".join(f"line {number} of the list\r\n" for number in range(1, 182)))
    put(base / COMPOSED, "# Overview\n\nstate: draft\n")
    put(base / DECOMPOSED, "# Changes\n\nstate: draft\n")


def pairs(left: Path, right: Path, chance: random.Random) -> None:
    """Two directories of 53 files: one differs with the same size, one differs in size, one is only on each side."""
    for number in range(PAIRS):
        text = "".join(f"{sentence(chance)}\n" for _ in range(30))
        here, there = text, text
        if number == 11:
            there = text.replace("buffer", "cursor", 1) if "buffer" in text else text[:-2] + "!\n"
        if number == 29:
            there = text + "one more line\n"
        name = f"item_{number:02}.txt"
        put(left / (f"old_{name}" if number == 52 else name), here)
        put(right / (f"new_{name}" if number == 52 else name), there)
