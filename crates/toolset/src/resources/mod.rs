//! Files as resources: what `resources/*` and `completion/complete` do.
//!
//! Each method is a [`Tool`] that is not listed as one. So a resource is handled like every call: the same rate,
//! allowlists, record, metrics, byte budget and deadline. It is allowed if the set's own tool for the same purpose is.

mod complete;
mod directory;
mod listing;
mod read;
mod subscribe;
pub mod uri;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ops::Limits;
use rmcp::model::JsonObject;

use crate::arguments::BadArgument;
use crate::contract::Contract;
use crate::prompts;
use crate::schema;
use crate::tool::{
    AnyTool, Definition, PlaceAccess, Prepared, ReplyForm, RootSource, RootUse, Tool, tool,
};

pub(crate) use subscribe::SubscriptionCounts;
pub use subscribe::{ResourceChange, Subscription};

/// Reads a resource.
pub const READ: &str = "resources/read";
/// Lists a directory.
pub const DIRECTORY_READ: &str = "resources/directory/read";
/// Completes a path.
pub const COMPLETE: &str = "completion/complete";
/// Begins to report changes.
pub const SUBSCRIBE: &str = "resources/subscribe";

const NAMED_ROOT: &[RootUse] = &[RootUse::READ];
const ONE_ROOT: &[RootUse] = &[RootUse {
    root: RootSource::NamedHome("root"),
    path: "path",
    access: PlaceAccess::Read,
    and_others: false,
}];

/// The methods of a set whose files are resources.
pub(crate) fn methods(contract: &'static dyn Contract) -> Vec<Box<dyn AnyTool>> {
    let Some(tools) = contract.resources() else {
        return Vec::new();
    };
    let roots = if tools.one_root { ONE_ROOT } else { NAMED_ROOT };
    vec![
        method::<read::ReadResource>(tools.read, roots),
        method::<directory::ReadDirectory>(tools.list, roots),
        method::<complete::CompletePath>(tools.list, roots),
        subscribe::method(tools.watch, roots),
        method::<prompts::GetPrompt>(prompts::CHANGES, roots),
    ]
}

/// A tool as a method of the protocol.
struct ResourceMethod {
    definition: Definition,
    tool: Box<dyn AnyTool>,
}

fn method<T: Tool>(method_of: &'static str, roots: &'static [RootUse]) -> Box<dyn AnyTool> {
    Box::new(ResourceMethod {
        definition: Definition {
            name: T::NAME,
            title: T::TITLE,
            description: T::DESCRIPTION,
            content: T::CONTENT,
            effect: T::EFFECT,
            roots,
            input: LazyLock::new(|| Arc::new(schema::input::<T::Arguments>())),
            output: LazyLock::new(|| Arc::new(schema::output::<T::Reply>())),
            large_replies: T::LARGE_REPLIES,
            examples: &[],
            form: ReplyForm::Chosen,
            method_of: Some(method_of),
        },
        tool: tool::<T>(),
    })
}

impl AnyTool for ResourceMethod {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn tries_inline(&self) -> bool {
        self.tool.tries_inline()
    }

    fn prepare(
        &self,
        arguments: JsonObject,
        request_timeout: Duration,
        limits: &Limits,
    ) -> Result<Prepared, BadArgument> {
        self.tool.prepare(arguments, request_timeout, limits)
    }
}
