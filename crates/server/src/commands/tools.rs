//! `mcp-filesystem tools`: the tool reference, generated from the code.

use std::io::Write;

use anyhow::Result;
use sandbox::Roots;
use serde_json::json;
use toolset::{Admission, Service};

use crate::command_line::Format;
use crate::deployment::{Reopening, deployment};
use crate::settings::{Partial, Settings, Toolset};
use crate::tool_sets::tools_of;

/// Prints the reference of the chosen sets.
pub(crate) fn run(settings: &Settings, format: Format, out: &mut dyn Write) -> Result<()> {
    for set in &settings.toolsets {
        let service = every_tool(*set, settings)?;
        match format {
            Format::Markdown => {
                let title = format!("Tools of the `{}` set", set.name());
                write!(out, "{}", service.catalogue().reference(&title))?;
            }
            Format::Json => {
                let page =
                    json!({ "toolset": set.name(), "tools": service.catalogue().described() });
                writeln!(out, "{}", serde_json::to_string_pretty(&page)?)?;
            }
        }
    }
    Ok(())
}

/// A service that is never called: it only describes its tools.
fn every_tool(set: Toolset, own: &Settings) -> Result<Service> {
    let settings = Partial::default().complete();
    Ok(Service::new(
        vec![tools_of(set, own, None)],
        Admission::new(deployment(
            &settings,
            &Roots::default(),
            std::sync::Arc::default(),
            Reopening::No,
        )),
    )?)
}
