//! `mcp-filesystem token`: a new token for a client, and the digest that the config file has of it.

use std::io::Write;

use anyhow::{Result, anyhow, bail};

use crate::settings::{digest_of, digest_text, is_client_name};

/// How many random bytes a token has.
const BYTES: usize = 32;

/// Makes a token and prints it with the lines of the config file that let its holder in. The token is not stored.
pub(crate) fn run(name: &str, out: &mut dyn Write) -> Result<()> {
    if !is_client_name(name) {
        bail!(
            "{name:?} cannot be the name of a client; use letters, digits, dots, dashes and underscores, at most 64"
        );
    }
    let token = new_token()?;
    let digest = digest_text(&digest_of(&token));
    writeln!(
        out,
        "Give this token to the client. It is not shown again:\n"
    )?;
    writeln!(out, "  {token}\n")?;
    writeln!(
        out,
        "Put this into the config file, with the roots it may use:\n"
    )?;
    writeln!(
        out,
        "clients:\n  - name: {name}\n    tokens: [\"{digest}\"]"
    )?;
    writeln!(out, "    roots: {{}}")?;
    Ok(())
}

fn new_token() -> Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| anyhow!("the system gives no random bytes: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::config_file;

    #[test]
    fn what_is_printed_is_a_config_that_knows_the_token() {
        let mut out = Vec::new();
        run("ci", &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let (head, yaml) = out.split_at(out.find("clients:").unwrap());
        let token = head
            .lines()
            .find_map(|line| line.strip_prefix("  "))
            .unwrap();
        assert_eq!(token.len(), 2 * BYTES);
        let partial = config_file::parse(yaml, std::path::Path::new("/")).unwrap();
        let clients = partial.clients.unwrap();
        assert_eq!(clients[0].tokens, [digest_of(token)]);
    }

    #[test]
    fn a_name_that_no_client_can_have_is_refused() {
        let fault = run("a b", &mut Vec::new()).unwrap_err().to_string();
        assert!(fault.contains("letters, digits"), "{fault}");
    }
}
