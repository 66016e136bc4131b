//! A tool in its erased form: decodes the arguments, runs the work and encodes the reply.

use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ops::Limits;
use rmcp::model::JsonObject;

use super::change_fields::{Changed, add_schema};
use super::{
    AnyTool, Blocking, BlockingWork, Call, CallWork, Definition, Inline, Prepared, ReplyForm, Tool,
    ToolEffect, Weight,
};
use crate::arguments::{self, BadArgument, Slips};
use crate::contract::Failure;
use crate::deployment::{ReplyHalves, TextForm};
use crate::media::Media;
use crate::reply::{self, EncodedReply};
use crate::schema;

/// Puts a tool into its erased form.
#[must_use]
pub fn tool<T: Tool>() -> Box<dyn AnyTool> {
    erased::<T>(definition_of::<T>())
}

fn erased<T: Tool>(definition: Definition) -> Box<dyn AnyTool> {
    Box::new(Erased::<T> {
        definition,
        tool: PhantomData,
    })
}

/// What is known about a tool before a call.
pub(crate) fn definition_of<T: Tool>() -> Definition {
    Definition {
        name: T::NAME,
        title: T::TITLE,
        description: T::DESCRIPTION,
        content: T::CONTENT,
        effect: T::EFFECT,
        roots: T::ROOTS,
        input: LazyLock::new(|| Arc::new(schema::input::<T::Arguments>())),
        output: LazyLock::new(|| {
            let mut output = schema::output::<T::Reply>();
            add_schema::<T>(&mut output);
            Arc::new(output)
        }),
        large_replies: T::LARGE_REPLIES,
        examples: T::EXAMPLES,
        method_of: None,
        form: ReplyForm::Chosen,
    }
}

/// Erases the type of a tool that imitates another server's: unknown arguments are ignored, and its replies have these
/// halves and nothing else.
pub(crate) fn given_tool<T: Tool>(halves: ReplyHalves) -> Box<dyn AnyTool> {
    erased::<T>(Definition {
        input: LazyLock::new(|| Arc::new(schema::open_input::<T::Arguments>())),
        output: LazyLock::new(|| Arc::new(schema::output::<T::Reply>())),
        large_replies: false,
        form: ReplyForm::Given(halves),
        ..definition_of::<T>()
    })
}

struct Erased<T> {
    definition: Definition,
    tool: PhantomData<fn() -> T>,
}

impl<T: Tool> AnyTool for Erased<T> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn tries_inline(&self) -> bool {
        T::TRY_INLINE
    }

    fn prepare(
        &self,
        arguments: JsonObject,
        request_timeout: Duration,
        limits: &Limits,
    ) -> Result<Prepared, BadArgument> {
        let arguments: T::Arguments =
            arguments::decode(&self.definition.input, arguments, Slips::of(T::EFFECT))?;
        let timeout = T::timeout(&arguments, request_timeout, limits);
        Ok(Prepared {
            timeout,
            work: CallWork::Blocking(Box::new(Decoded::<T>(arguments))),
        })
    }
}

/// A tool's decoded arguments.
struct Decoded<T: Tool>(T::Arguments);

impl<T: Tool> BlockingWork for Decoded<T> {
    fn weight(&self) -> Weight {
        T::weight(&self.0)
    }

    fn try_inline(
        self: Box<Self>,
        call: &Call,
    ) -> Result<Result<EncodedReply, Failure>, (Blocking, Weight)> {
        match T::try_inline(self.0, call) {
            Inline::Done(reply) => Ok(finished::<T>(reply, call)),
            Inline::Later(rest, weight) => {
                let rest = Box::new(|call: &Call| finished::<T>(rest(call), call));
                Err((rest, weight))
            }
        }
    }

    fn run(self: Box<Self>, call: &Call) -> Result<EncodedReply, Failure> {
        finished::<T>(T::run(self.0, call), call)
    }
}

fn finished<T: Tool>(reply: ops::Result<T::Reply>, call: &Call) -> Result<EncodedReply, Failure> {
    // Also for a failed call: its reply may tell what it did before it failed. This thread may wait for the disk.
    let settled = match T::EFFECT {
        ToolEffect::Read => Ok(()),
        ToolEffect::Write { .. } => call.context.change_notes.settle(),
    };
    let mut reply = reply?;
    settled.map_err(ops::Error::from)?;
    let media = T::media(&mut reply);
    let streamed = T::streamed(&mut reply);
    if let ReplyForm::Given(halves) = call.form {
        let given_text = |reply: &T::Reply| T::json_text(reply, halves);
        let encoded = reply::halves(&reply, given_text, halves)?;
        return Ok(encoded.with_media_alone(media));
    }
    let encoded = encoded::<T>(&reply, media, call)?;
    Ok(encoded.with_streamed(streamed))
}

/// A reply in the form that the client chose.
fn encoded<T: Tool>(
    reply: &T::Reply,
    media: Option<Media>,
    call: &Call,
) -> Result<EncodedReply, Failure> {
    let own_text = |reply: &T::Reply| match call.text_form {
        TextForm::Compact => T::json_text(reply, call.replies),
        TextForm::Json => None,
    };
    if let Some(changed) = changed::<T>(reply, call) {
        let own_text = |changed: &Changed<'_, T::Reply>| {
            let mut text = own_text(changed.reply)?;
            changed.notes.add_to(&mut text);
            Some(text)
        };
        return reply::halves(&changed, own_text, call.replies);
    }
    let link = T::cut_short_at(reply).and_then(|path| call.resource_link(path));
    let encoded = reply::halves(reply, own_text, call.replies)?;
    Ok(encoded.with_media(media).with_link(link))
}

/// The reply with the remarks about its change, if there are any.
fn changed<'r, T: Tool>(reply: &'r T::Reply, call: &Call) -> Option<Changed<'r, T::Reply>> {
    let notes = &call.context.change_notes;
    let in_place = T::REPLACES_CONTENT && notes.rewritten_in_place();
    let changes = match T::EFFECT {
        ToolEffect::Read => Vec::new(),
        ToolEffect::Write { .. } => notes.change_ids(),
    };
    let not_kept = notes.cannot_be_undone();
    if !in_place && changes.is_empty() && !not_kept {
        return None;
    }
    // A change's number is valid in its own root only, so a change in several roots shows none.
    let change = <[String; 1]>::try_from(changes).ok().map(|[only]| only);
    Some(Changed::new(reply, in_place, change, not_kept))
}
