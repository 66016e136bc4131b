//! The programs to compare with: found on the machine, or installed by their package names below `target`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;

/// Packages that cargo installs, and the program each gives.
const CRATES: [(&str, &str); 4] = [
    ("ripgrep", "rg"),
    ("fd-find", "fd"),
    ("rust-mcp-filesystem", "rust-mcp-filesystem"),
    ("mcp-filesystem", "mcp-filesystem"),
];
/// The reference server's package and program.
const REFERENCE: (&str, &str) = (
    "@modelcontextprotocol/server-filesystem",
    "mcp-server-filesystem",
);
/// Programs of the system whose versions are reported.
const SYSTEM: [&str; 10] = [
    "find", "ls", "sed", "wc", "tail", "cp", "openssl", "git", "node", "sort",
];

/// Where the peers are.
#[derive(Debug, Clone)]
pub(crate) struct Peers {
    directory: PathBuf,
    /// Programs that could not be installed, with the reason.
    pub(crate) missing: Vec<String>,
}

impl Peers {
    /// Installs what is not there; what cannot be installed is noted and left out.
    pub(crate) fn ready(base: &Path) -> Result<Peers> {
        let directory = base.join("peers");
        std::fs::create_dir_all(&directory)?;
        let mut peers = Peers {
            directory,
            missing: Vec::new(),
        };
        for (package, program) in CRATES {
            peers.cargo_install(package, program);
        }
        peers.npm_install();
        Ok(peers)
    }

    /// The path of a program that was installed here.
    pub(crate) fn path(&self, program: &str) -> Option<String> {
        let places = ["bin", "node_modules/.bin"];
        let found = places
            .iter()
            .map(|place| self.directory.join(place).join(program))
            .find(|path| path.exists());
        found.map(|path| path.display().to_string())
    }

    /// The reference server's program, if it is installed.
    pub(crate) fn reference(&self) -> Option<String> {
        self.path(REFERENCE.1)
    }

    /// A line for each program with its version.
    pub(crate) fn versions(&self) -> Vec<String> {
        let own = CRATES.iter().filter_map(|(_, program)| self.path(program));
        let all = own.chain(SYSTEM.iter().map(|&program| program.to_owned()));
        let mut versions: Vec<String> = all.filter_map(|program| version(&program)).collect();
        versions.extend(self.reference_version());
        versions
    }

    fn cargo_install(&mut self, package: &str, program: &str) {
        if self.path(program).is_some() || self.failed_before(package) {
            return;
        }
        let root = self.directory.display().to_string();
        let arguments = ["install", "--quiet", "--locked", "--root", &root, package];
        self.install("cargo", &arguments, package);
    }

    fn npm_install(&mut self) {
        if self.reference().is_some() || self.failed_before(REFERENCE.0) {
            return;
        }
        let root = self.directory.display().to_string();
        let arguments = ["install", "--silent", "--prefix", &root, REFERENCE.0];
        self.install("npm", &arguments, REFERENCE.0);
    }

    /// A failed installation is not tried again by every run: remove the note to try again.
    fn failed_before(&mut self, package: &str) -> bool {
        let reason = std::fs::read_to_string(self.note(package));
        if let Ok(reason) = &reason {
            self.missing.push(format!("{package}: {}", reason.trim()));
        }
        reason.is_ok()
    }

    fn install(&mut self, program: &str, arguments: &[&str], package: &str) {
        let output = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .output();
        let reason = match output {
            Ok(output) if output.status.success() => return,
            Ok(output) => fault_line(&String::from_utf8_lossy(&output.stderr)),
            Err(error) => error.to_string(),
        };
        let _ = std::fs::write(self.note(package), &reason);
        self.missing.push(format!("{package}: {reason}"));
    }

    fn note(&self, package: &str) -> PathBuf {
        self.directory
            .join(format!("{}.failed", package.replace(['/', '@'], "_")))
    }

    fn reference_version(&self) -> Option<String> {
        let path = self
            .directory
            .join("node_modules")
            .join(REFERENCE.0)
            .join("package.json");
        let text = std::fs::read_to_string(path).ok()?;
        let package: serde_json::Value = serde_json::from_str(&text).ok()?;
        let version = package.get("version")?.as_str()?;
        Some(format!("{} {version}", REFERENCE.0))
    }
}

/// The line that says most of why an installation failed, without paths or hosts.
fn fault_line(text: &str) -> String {
    let telling = |line: &&str| line.trim_start().starts_with("error");
    let line = text
        .lines()
        .find(telling)
        .unwrap_or("it could not be installed");
    let words = line.split_whitespace().filter(|word| !word.contains('/'));
    words.collect::<Vec<_>>().join(" ")
}

fn version(program: &str) -> Option<String> {
    let argument = if program == "openssl" {
        "version"
    } else {
        "--version"
    };
    let output = Command::new(program)
        .arg(argument)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .next()
        .map(|line| line.trim().to_owned())
        .filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_without_places() {
        let text = "warning: x\nerror: could not compile `a` in /somewhere/else now\nmore";
        assert_eq!(fault_line(text), "error: could not compile `a` in now");
        assert_eq!(fault_line(""), "it could not be installed");
    }
}
