//! Three roots with marked names and contents, five clients, and who may know which mark.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use testkit::{Setup, Tree, Value, json};

use crate::harness::program;

/// The tool sets that are served, each at its own endpoint.
pub(super) const SETS: [&str; 6] = [
    "workspace",
    "files",
    "memory",
    "memory_tool",
    "reference",
    "guide",
];
/// The names of the roots. The client `narrow` has only the first.
pub(super) const ROOTS: [&str; 3] = ["meadow", "ocelot-2", "ocelot-3"];
/// What the roots deny. The shipped list has exceptions in every directory.
const DENY: [&str; 2] = ["secrets", "**/walrus"];
/// Where a root without a state directory keeps what was changed.
const HISTORY: &str = ".mcp-filesystem";

/// A client: its name, its token and the token's digest.
pub(super) struct Client {
    pub(super) name: &'static str,
    pub(super) token: &'static str,
    digest: &'static str,
}

/// Everything that the roots have.
pub(super) const WHOLE: usize = 0;
/// `open` without one of its directories.
pub(super) const DOCS: usize = 1;
/// Reads everything but one directory.
pub(super) const READER: usize = 2;
/// One directory of one root.
pub(super) const NARROW: usize = 3;
/// Files of one kind in every directory.
pub(super) const MARKDOWN: usize = 4;

pub(super) const CLIENTS: [Client; 5] = [
    Client {
        name: "whole",
        token: "whole-token-0123456789",
        digest: "sha256:f93e3080c65d3ef5f9f6afe86d82c8e2dc3076ed0aaa24214914c62ff6aae5ce",
    },
    Client {
        name: "docs",
        token: "docs-token-0123456789",
        digest: "sha256:d857bfb7f97e4c36761a2f72506a7365ec21fe36f4696e4f44734039ed9c9835",
    },
    Client {
        name: "reader",
        token: "reader-token-0123456789",
        digest: "sha256:b3057e05d75e8cdca4bd6ddd527af736913e8464a7a3d47d7a09389eaa8e1eb4",
    },
    Client {
        name: "narrow",
        token: "narrow-token-0123456789",
        digest: "sha256:88454bee88cd4df0eb7240415c9f5e4d36e7f81ef38bc504ae3e398deade547a",
    },
    Client {
        name: "markdown",
        token: "markdown-token-0123456789",
        digest: "sha256:bfef6d9c4f61423029abbdc7bc25e39650ae918d52f48883de5b6a9b5b87bc98",
    },
];

/// What links to secrets are called, and links to what is missing: neither name tells anything.
const WAY: &str = "way-real-";
const NEAR_WAY: &str = "way-near-";

const ALL: &[usize] = &[WHOLE, DOCS, READER, NARROW, MARKDOWN];
const BUT_WHOLE: &[usize] = &[DOCS, READER, NARROW, MARKDOWN];
const BUT_READER: &[usize] = &[DOCS, NARROW, MARKDOWN];
/// Directories may lead to a file that `markdown` may have.
const IN_DIRECTORIES: &[usize] = &[DOCS, READER, NARROW];
const DOCS_AND_NARROW: &[usize] = &[DOCS, NARROW];

/// What is hidden in each root: its word, where it is, and from whom. `{}` is the word with the root's number.
const HIDDEN: [(&str, &str, &[usize]); 12] = [
    ("wolverine", "open/{}.pem", ALL),
    ("narwhal", "open/walrus/{}.txt", ALL),
    ("zebrafish", "lobster/{}.txt", BUT_WHOLE),
    ("pangolin", "lobster/deep/{}.txt", BUT_WHOLE),
    ("axolotl", "open/marmoset/{}.txt", BUT_READER),
    ("capybara", "{}.txt", BUT_READER),
    ("quokka", "open/{}.txt", &[NARROW, MARKDOWN]),
    ("gazelle", "open/sub/nest/{}.pem", ALL),
    ("wallaby", "open/sub/nest/walrus/{}.txt", ALL),
    ("walrus", "open/walrus", ALL),
    ("lobster", "lobster", IN_DIRECTORIES),
    ("marmoset", "open/marmoset", DOCS_AND_NARROW),
];

/// Something that does not exist for some clients.
#[derive(Debug, Clone)]
pub(super) struct Secret {
    /// What marks its name.
    pub(super) mark: String,
    /// Its path in its root.
    pub(super) path: String,
    /// What marks its content; a directory has none.
    pub(super) content: Option<String>,
    /// The number of its root.
    pub(super) root: usize,
    /// Its number among the secrets of its root.
    number: usize,
    hidden_from: &'static [usize],
}

impl Secret {
    /// Tells whether it does not exist for a client.
    pub(super) fn is_hidden_from(&self, client: usize) -> bool {
        self.hidden_from.contains(&client) || (client == NARROW && self.root > 0)
    }

    /// A text in which its name has become one that is nearly the same and names nothing.
    pub(super) fn near(&self, text: &str) -> String {
        let text = text.replace(WAY, NEAR_WAY);
        text.replace(&self.mark, &self.near_mark())
    }

    /// The other way round.
    pub(super) fn back(&self, text: &str) -> String {
        let text = text.replace(NEAR_WAY, WAY);
        text.replace(&self.near_mark(), &self.mark)
    }

    fn near_mark(&self) -> String {
        let (first, rest) = self.mark.split_at(4);
        let letter = rest.chars().next().map_or('x', |letter| match letter {
            'j' => 'k',
            _ => 'j',
        });
        format!("{first}{letter}{}", &rest[1..])
    }

    /// Every way to it that is tried: plainly, through `..`, through links to it and to its directory, and below it.
    pub(super) fn ways(&self) -> Vec<String> {
        let Secret { number, path, .. } = self;
        let name = path.rsplit('/').next().unwrap_or(path);
        vec![
            path.clone(),
            format!("open/sub/../../{path}"),
            format!("open/sub/{WAY}{number}"),
            format!("open/sub/into-{}/{name}", self.parent_number()),
            format!("{path}/below"),
        ]
    }

    fn parent(&self) -> &str {
        self.path.rsplit_once('/').map_or(".", |(parent, _)| parent)
    }

    /// A name for its directory that tells nothing.
    fn parent_number(&self) -> usize {
        let parents = HIDDEN.map(|(_, path, _)| path.rsplit_once('/').map_or(".", |(up, _)| up));
        let number = parents.iter().position(|parent| *parent == self.parent());
        number.expect("a known directory")
    }
}

/// Three planted roots.
pub(super) struct Ground {
    pub(super) trees: [Tree; 3],
    pub(super) project: Tree,
    pub(super) secrets: Vec<Secret>,
}

impl Ground {
    pub(super) fn new() -> Ground {
        let secrets = (0..ROOTS.len()).flat_map(|root| {
            let hidden = HIDDEN.into_iter().enumerate();
            hidden.map(move |(number, hidden)| secret(root, number, hidden))
        });
        let ground = Ground {
            trees: std::array::from_fn(|_| Tree::in_memory()),
            project: Tree::new().dir("docs"),
            secrets: secrets.collect(),
        };
        (0..ROOTS.len()).for_each(|root| ground.plant(root));
        ground
    }

    /// The program with the roots and the clients; single-root sets use the root of this number.
    pub(super) fn setup(&self, home: usize) -> Setup {
        let mut setup = program();
        for (name, tree) in ROOTS.iter().zip(&self.trees) {
            let keys = json!({"allowed_tools": ["*"], "deny": DENY});
            setup = setup.root_with(name, tree.path(), keys);
        }
        for set in ["files", "memory", "memory_tool"] {
            setup = setup.set(&format!("{set}.root"), ROOTS[home]);
        }
        setup
            .set("toolsets", json!(SETS))
            .set("guide.project_root", json!(self.project.path()))
            .set("memory.undo", true)
            .set("durability", "fast")
            .set("clients", clients())
    }

    /// Empties a root and fills it anew.
    pub(super) fn plant(&self, root: usize) {
        let tree = &self.trees[root];
        for name in testkit::names_in(tree.path()) {
            if name != ".mcp-filesystem" {
                remove(&tree.join(name));
            }
        }
        let write = |path: &str, content: &str| tree.write(path, content);
        write("open/sub/file.txt", &plain(root));
        write("open/sub/deeper/more.txt", "more\n");
        write("open/sub/notes.md", "notes\n");
        write("open/sub/nest/list.md", "list\n");
        tree.write("open/sub/image.png", b"\x89PNG\r\n\x1a\n0000");
        for secret in self.secrets.iter().filter(|secret| secret.root == root) {
            if let Some(content) = &secret.content {
                write(&secret.path, &format!("{content}\nsecond line\n"));
            }
            let place = |name: String| tree.join("open/sub").join(name);
            let target = format!("../../{}", secret.path);
            let way = format!("{WAY}{}", secret.number);
            link(&secret.near(&target), &place(secret.near(&way)));
            link(&target, &place(way));
            let parent = format!("../../{}", secret.parent());
            link(&parent, &place(format!("into-{}", secret.parent_number())));
        }
        let host = tree.join("lobster");
        link(
            host.to_str().expect("text"),
            &tree.join("open/sub/host-way"),
        );
    }

    /// The marks in a text that a client may not know and did not say itself.
    pub(super) fn leaks(&self, client: usize, said: &str, asked: &str) -> Vec<String> {
        let mut found = Vec::new();
        for secret in &self.secrets {
            if !secret.is_hidden_from(client) {
                continue;
            }
            if said.contains(&secret.mark) && !asked.contains(&secret.mark) {
                found.push(secret.mark.clone());
            }
            found.extend(secret.content.clone().filter(|mark| said.contains(mark)));
        }
        if client == NARROW {
            for (root, tree) in self.trees.iter().enumerate().skip(1) {
                let names = [ROOTS[root], tree.name(), plain(root).trim_end()].map(str::to_owned);
                let told = |mark: &String| said.contains(mark) && !asked.contains(mark);
                found.extend(names.into_iter().filter(told));
            }
        }
        found
    }

    /// What a client did on the host to things that do not exist for it.
    pub(super) fn damage(&self, client: usize, root: usize) -> Vec<String> {
        let listing = self.trees[root].listing();
        let mut found = Vec::new();
        let own = |secret: &&Secret| secret.root == root && secret.is_hidden_from(client);
        for secret in self.secrets.iter().filter(own) {
            let is_there = listing.contains_key(&secret.path);
            let Some(content) = &secret.content else {
                found.extend((!is_there).then(|| format!("{} is gone", secret.path)));
                continue;
            };
            let whole = format!("file {content}\nsecond line\n");
            if listing.get(&secret.path) != Some(&whole) {
                found.push(format!("{}: {:?}", secret.path, listing.get(&secret.path)));
            }
            // What those who may see it changed is kept there, where no client gets.
            let in_use = listing
                .iter()
                .filter(|(path, _)| !path.starts_with(HISTORY));
            let copies = in_use.filter(|(path, kind)| {
                **path != secret.path && kind.starts_with("file ") && kind.contains(content)
            });
            found.extend(copies.map(|(path, _)| format!("{content} is also in {path}")));
        }
        for secret in self
            .secrets
            .iter()
            .filter(|secret| secret.is_hidden_from(client))
        {
            let new = listing
                .keys()
                .filter(|path| path.contains(&format!("{}/below", secret.path)));
            found.extend(new.map(|path| format!("{path} was made")));
        }
        found
    }
}

/// A file that every client of a root may read.
fn plain(root: usize) -> String {
    format!("plain text of root {root}\n")
}

fn secret(
    root: usize,
    number: usize,
    (word, path, hidden_from): (&str, &str, &'static [usize]),
) -> Secret {
    let is_directory = !path.contains("{}");
    let mark = if is_directory {
        word.to_owned()
    } else {
        format!("{word}-{root}")
    };
    Secret {
        path: path.replace("{}", &mark),
        content: (!is_directory).then(|| format!("SECRET-OF-{}", mark.to_uppercase())),
        mark,
        root,
        number,
        hidden_from,
    }
}

fn clients() -> Value {
    let of = |client: usize, roots: Value| {
        let Client { name, digest, .. } = &CLIENTS[client];
        json!({"name": name, "tokens": [digest], "roots": roots})
    };
    let everywhere = |rights: Value| {
        let roots = ROOTS
            .iter()
            .map(|root| ((*root).to_owned(), rights.clone()));
        Value::Object(roots.collect())
    };
    json!([
        of(WHOLE, everywhere(json!({}))),
        of(
            DOCS,
            everywhere(json!({"paths": ["open/**", "!open/marmoset"]}))
        ),
        of(
            READER,
            everywhere(json!({"paths": ["!lobster"], "rights": ["read"]}))
        ),
        of(NARROW, json!({(ROOTS[0]): {"paths": ["open/sub/**"]}})),
        of(MARKDOWN, everywhere(json!({"paths": ["**/*.md"]}))),
    ])
}

fn link(target: &str, path: &Path) {
    if fs::symlink_metadata(path).is_err() {
        symlink(target, path).expect("make a link");
    }
}

fn remove(path: &Path) {
    let is_directory = fs::symlink_metadata(path).is_ok_and(|kind| kind.is_dir());
    let removed = if is_directory {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    removed.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
