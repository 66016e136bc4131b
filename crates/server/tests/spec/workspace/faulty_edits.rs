//! Replacements as models write them, and what has to become of each: applied as meant, or refused with enough to go on.
//! None is applied in another way, and what is refused changes nothing.

use testkit::{Outcome, Transport, Tree, Value, json};

use super::Workspace;
use crate::harness::ToolSet;

const CODE: &str = "import os\n\n\ndef load(path):\n    data = read(path)\n    if not data:\n        return None\n    return parse(data)\n\n\n\
def save(path, data):\n    text = dump(data)\n    if not text:\n        return None\n    write(path, text)\n    return len(text)\n";

fn tree() -> Tree {
    Tree::new()
        .file("src/app.py", CODE)
        .file("win.ini", "[main]\r\nname = x\r\nsize = 1\r\n")
        .file("mixed", "a = 1\r\nb = 2\nc = 3\r\n")
        .file(
            "prose.md",
            "He said \u{201c}no\u{201d} \u{2013} twice.\nTrailing  \nend\u{a0}1\n",
        )
        .file("bom", "\u{feff}first\nsecond\n")
        .file("last", "one\ntwo")
        .file("menu", "cafe\u{301} and tea\n")
        .file("again", "xaaax\n")
        .file("latin", b"caf\xe9\n")
        .file("wide", b"\xff\xfea\0b\0")
        .file("data.bin", b"\0\x01\x02abc")
        .link("gone", "src/old.py")
        .link("out", "../elsewhere")
}

enum Fate {
    /// Applied: in this file this text, which it has once, becomes that.
    Changed(&'static str, &'static str, &'static str),
    /// Applied: all places of the text are replaced.
    All(&'static str, &'static str, &'static str),
    /// Applied: a file with this content is made.
    Made(&'static str, &'static str),
    /// Refused, and the message has all of these in it.
    Refused(&'static [&'static str]),
}
use Fate::{All, Changed, Made, Refused};

/// One edit of one file.
fn one(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "edits": [{"old": old, "new": new}]})
}

/// Text that is written otherwise than it is in the file.
fn written_otherwise() -> Vec<(&'static str, Value, Fate)> {
    let app = "src/app.py";
    vec![
        (
            "none",
            one(app, "data = read(path)", "data = fetch(path)"),
            Changed(app, "data = read(path)", "data = fetch(path)"),
        ),
        (
            "LF for CRLF",
            one(
                "win.ini",
                "name = x\nsize = 1",
                "name = y\nkind = z\nsize = 1",
            ),
            Changed("win.ini", "name = x\r\n", "name = y\r\nkind = z\r\n"),
        ),
        (
            "CRLF for LF",
            one(
                app,
                "    data = read(path)\r\n    if not data:\r\n",
                "    data = fetch(path)\r\n    if not data:\r\n",
            ),
            Changed(app, "read(path)", "fetch(path)"),
        ),
        (
            "LF in a file of both",
            one("mixed", "b = 2\nc = 3", "b = 2\nnew\nc = 3"),
            Changed("mixed", "b = 2\n", "b = 2\nnew\n"),
        ),
        (
            "blanks at the end left out",
            one("prose.md", "Trailing\nend", "Trailing\nthe end"),
            Changed("prose.md", "end\u{a0}", "the end\u{a0}"),
        ),
        (
            "blanks at the end added",
            one(
                app,
                "    data = read(path)  \n    if not data:",
                "    data = fetch(path)\n    if not data:",
            ),
            Changed(app, "read(path)", "fetch(path)"),
        ),
        (
            "straight quotes for typographic ones",
            one("prose.md", "said \"no\"", "said \"yes\""),
            Changed("prose.md", "\u{201c}no\u{201d}", "\u{201c}yes\u{201d}"),
        ),
        (
            "a hyphen for a dash",
            one("prose.md", "- twice.", "- three times."),
            Changed("prose.md", "twice", "three times"),
        ),
        (
            "a blank for a no-break space",
            one("prose.md", "end 1", "end 2"),
            Changed("prose.md", "end\u{a0}1", "end\u{a0}2"),
        ),
        (
            "$1 and \\1 in new",
            one(app, "dump(data)", "dump($1, \\1, $&)"),
            Changed(app, "dump(data)", "dump($1, \\1, $&)"),
        ),
        (
            "a byte order mark",
            one("bom", "first", "1st"),
            Changed("bom", "first", "1st"),
        ),
        (
            "no final newline",
            one("last", "two", "2"),
            Changed("last", "two", "2"),
        ),
        (
            "a final newline that is not there",
            one("last", "two\n", "2\n"),
            Refused(&[
                "nearest is line 2 (differs in a line end before or after)",
                "two",
            ]),
        ),
        (
            "indentation of two",
            one(
                app,
                "  data = read(path)\n  if not data:\n",
                "  data = fetch(path)\n",
            ),
            Refused(&["differs in indentation", "5\t    data = read(path)"]),
        ),
        (
            "tabs for blanks",
            one(
                app,
                "\tdata = read(path)\n\tif not data:",
                "\tdata = fetch(path)",
            ),
            Refused(&["differs in indentation", "lines 5-6"]),
        ),
        (
            "no indentation at all",
            one(app, "data = read(path)\nif not data:", "x"),
            Refused(&["differs in indentation", "lines 5-6"]),
        ),
        (
            "other case",
            one(app, "Def Load(path):", "x"),
            Refused(&["upper and lower case", "line 4"]),
        ),
        (
            "a typing error",
            one(app, "data = raed(path)", "x"),
            Refused(&["nearest is line 5"]),
        ),
        (
            "two blanks for one",
            one(app, "data  =  read(path)", "x"),
            Refused(&["differs in blanks", "line 5"]),
        ),
        (
            "an empty line too many",
            one(app, "def load(path):\n\n    data = read(path)", "x"),
            Refused(&["nearest is line", "def load(path):"]),
        ),
        (
            "an empty line too few",
            one(app, "import os\ndef load(path):", "x"),
            Refused(&["nearest is line"]),
        ),
        (
            "composed for decomposed",
            one("menu", "caf\u{e9} and tea", "x"),
            Refused(&["nearest is line 1", "Unicode form"]),
        ),
        (
            "half of a line end",
            one("win.ini", "x\r", "y"),
            Refused(&["not found"]),
        ),
    ]
}

/// Text with something in it that is not the file's.
fn not_of_the_file() -> Vec<(&'static str, Value, Fate)> {
    let app = "src/app.py";
    vec![
        (
            "line numbers copied along",
            one(app, "5\t    data = read(path)", "5\t    data = 1"),
            Refused(&["nearest is line 5"]),
        ),
        (
            "line numbers with a bar",
            one(app, "   5 |     data = read(path)", "x"),
            Refused(&["nearest is line 5"]),
        ),
        (
            "marks of a diff",
            one(app, "-    data = read(path)", "+    data = fetch(path)"),
            Refused(&["nearest is line 5"]),
        ),
        (
            "a Markdown fence",
            one(app, "```python\n    data = read(path)\n```", "x"),
            Refused(&["not found"]),
        ),
        (
            "an ellipsis",
            one(app, "def load(path):\n    ...\n    return parse(data)", "x"),
            Refused(&["not found"]),
        ),
        (
            "\\n for a line end",
            one(app, "data = read(path)\\n    if not data:", "x"),
            Refused(&["line ends for its \\n, line 5"]),
        ),
        (
            "escaped quotes",
            one("prose.md", "said \\\"no\\\"", "x"),
            Refused(&["not found"]),
        ),
        (
            "HTML entities",
            one(app, "if not data &amp;&amp; text:", "x"),
            Refused(&["not found"]),
        ),
        (
            "text of another file",
            one(app, "public static void main(String[] args) {", "x"),
            Refused(&["copy it from the file"]),
        ),
        (
            "an edit that was made before",
            one(app, "data = fetch(path)", "data = read(path)"),
            Refused(&["new is already there, line 5"]),
        ),
        (
            "old and new the same",
            one(app, "import os", "import os"),
            Refused(&["the same"]),
        ),
        (
            "old and new differ in line ends",
            one(app, "import os\n", "import os\r\n"),
            Refused(&["the same"]),
        ),
    ]
}

/// Places that are not one, and files that are not the one that was meant.
fn not_the_place() -> Vec<(&'static str, Value, Fate)> {
    let app = "src/app.py";
    let all =
        json!({"path": app, "edits": [{"old": "return None", "new": "return []", "all": true}]});
    let second = json!({"path": app, "edits": [{"old": "import os", "new": "import sys"}, {"old": "nowhere to be seen", "new": "x"}]});
    let builds = json!({"path": app, "edits": [{"old": "import os", "new": "import sys"}, {"old": "import sys", "new": "import json"}]});
    let several = json!({"edits": [{"path": app, "old": "import os", "new": "x"}, {"path": "bom", "old": "third", "new": "x"}]});
    vec![
        (
            "two places",
            one(app, "        return None", "        return []"),
            Refused(&["occurs 2 times, in lines 7, 14", "all: true"]),
        ),
        ("two places, all", all, All(app, "return None", "return []")),
        (
            "places that overlap",
            one("again", "aa", "b"),
            Refused(&["occurs 2 times"]),
        ),
        (
            "the second edit does not fit",
            second,
            Refused(&["edit 2 of 2", "nothing was changed"]),
        ),
        (
            "the second edit builds on the first",
            builds,
            Changed(app, "import os", "import json"),
        ),
        (
            "one of two files does not fit",
            several,
            Refused(&["edit 2 of 2, bom"]),
        ),
        (
            "an empty old for a file that is there",
            one(app, "", "x"),
            Refused(&["the file exists", "write_file"]),
        ),
        (
            "an empty old for a new file",
            one("new/a.py", "", "x = 1\n"),
            Made("new/a.py", "x = 1\n"),
        ),
        (
            "a file that is missing",
            one("src/ap.py", "import os", "x"),
            Refused(&["did you mean src/app.py?"]),
        ),
        (
            "the root's name before the path",
            one("workspace/src/app.py", "import os", "x"),
            Refused(&["did you mean src/app.py?"]),
        ),
        (
            "a directory",
            one("src", "import os", "x"),
            Refused(&["src", "directory"]),
        ),
        (
            "Latin-1",
            one("latin", "caf", "x"),
            Refused(&["not UTF-8", "windows-1252"]),
        ),
        (
            "UTF-16",
            one("wide", "a", "x"),
            Refused(&["not UTF-8", "UTF-16LE"]),
        ),
        (
            "bytes",
            one("data.bin", "zzz", "x"),
            Refused(&["not found"]),
        ),
        (
            "a link to nothing",
            one("gone", "a", "x"),
            Refused(&["symlink to src/old.py"]),
        ),
        (
            "a link that leads out",
            one("out", "a", "x"),
            Refused(&["outside root", "symlink out"]),
        ),
        (
            "a way out",
            one("../elsewhere", "a", "x"),
            Refused(&["outside root"]),
        ),
    ]
}

/// Arguments that are not what the tool takes.
fn wrong_arguments() -> Vec<(&'static str, Value, Fate)> {
    let app = "src/app.py";
    let edit = |edit: Value| json!({"path": app, "edits": [edit]});
    vec![
        (
            "edits as text",
            json!({"path": app, "edits": "[{\"old\": \"a\", \"new\": \"b\"}]"}),
            Refused(&["edits must be an array"]),
        ),
        (
            "one edit without a list",
            json!({"path": app, "edits": {"old": "import os", "new": "x"}}),
            Refused(&["edits must be an array"]),
        ),
        (
            "no edits",
            json!({"path": app, "edits": []}),
            Refused(&["edits"]),
        ),
        (
            "old outside of edits",
            json!({"path": app, "old": "import os", "new": "x"}),
            Refused(&["missing required argument: edits"]),
        ),
        (
            "no new",
            edit(json!({"old": "import os"})),
            Refused(&["missing required argument: edits[0].new"]),
        ),
        (
            "names of another tool",
            edit(json!({"old_string": "import os", "new_string": "x"})),
            Refused(&["edits[0].old_string", "did you mean old?"]),
        ),
        (
            "all as text",
            edit(json!({"old": "return None", "new": "x", "all": "true"})),
            Refused(&["edits[0].all must be a boolean"]),
        ),
        (
            "all as null",
            edit(json!({"old": "return None", "new": "x", "all": null})),
            Refused(&["edits[0].all"]),
        ),
        (
            "dry_run as text",
            json!({"path": app, "dry_run": "false", "edits": [{"old": "import os", "new": "x"}]}),
            Refused(&["dry_run must be a boolean"]),
        ),
        (
            "no path",
            json!({"edits": [{"old": "import os", "new": "x"}]}),
            Refused(&["path"]),
        ),
    ]
}

/// What the tree has to be after an edit.
fn expected(before: &Tree, fate: &Fate) -> Option<(String, String)> {
    let replaced = |path: &str, old: &str, new: &str| {
        Some((path.to_owned(), before.text(path).replace(old, new)))
    };
    match fate {
        Changed(path, old, new) => {
            assert_eq!(before.text(path).matches(old).count(), 1, "{old}");
            replaced(path, old, new)
        }
        All(path, old, new) => replaced(path, old, new),
        Made(path, content) => Some(((*path).to_owned(), (*content).to_owned())),
        Refused(_) => None,
    }
}

/// What is wrong with the outcome of an edit; nothing if it is right.
fn fault(fate: &Fate, outcome: &Outcome, after: &Tree) -> Option<String> {
    let told = &outcome.text;
    let is_refused = matches!(fate, Refused(_));
    if outcome.is_error != is_refused {
        return Some(format!("it was not to end so: {told}"));
    }
    if let Refused(words) = fate
        && let Some(word) = words.iter().find(|word| !told.contains(**word))
    {
        return Some(format!("{word:?} is not in {told:?}"));
    }
    let wanted = tree();
    if let Some((path, content)) = expected(&wanted, fate) {
        wanted.write(&path, content);
    }
    (after.listing() != wanted.listing()).then(|| format!("the tree is {:?}", after.listing()))
}

#[tokio::test]
async fn workspace_faulty_replacements_are_applied_as_meant_or_refused() {
    let table: Vec<_> = written_otherwise()
        .into_iter()
        .chain(not_of_the_file())
        .chain(not_the_place())
        .chain(wrong_arguments())
        .collect();
    let mut wrong = Vec::new();
    for (name, arguments, fate) in &table {
        let workspace = Workspace::start(tree(), |setup| setup, Transport::Stdio).await;
        let outcome = workspace.call("edit_file", arguments.clone()).await;
        wrong.extend(
            fault(fate, &outcome, workspace.tree()).map(|fault| format!("{name}: {fault}")),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let refused = table.iter().filter(|(.., fate)| matches!(fate, Refused(_)));
    let (cases, refused) = (table.len(), refused.count());
    let row = format!(
        "| replacements | {cases} | {} | {refused} | 0 |",
        cases - refused
    );
    let results = include_str!("../../../../../bench/AGENTS.md");
    assert!(results.contains(&row), "bench/AGENTS.md has to have {row}");
}
