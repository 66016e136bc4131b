//! Prompts: what clients send, and how the outcome is worded for their revision.

use rmcp::model::ErrorData;
use serde_json::{Value, json};
use toolset::prompts::{GET, PROMPT_ARGUMENTS, PromptInfo};
use toolset::shortened;

use crate::message::Params;
use crate::methods::{AgreedRequest, HeldMessage, invalid_params};
use crate::resources::{VALUES_MAX, refuse_cursor};

impl AgreedRequest<'_> {
    /// Whether some root keeps a history that clients may see.
    pub(crate) fn offers_prompts(&self) -> bool {
        let catalogue = self.context.server.service().catalogue();
        catalogue.info().capabilities.prompts.is_some()
    }

    /// `prompts/list`.
    pub(crate) fn list_prompts(self, params: &Params) -> Result<Vec<u8>, ErrorData> {
        refuse_cursor(params, "prompts/list")?;
        let roots = self.prompt_roots();
        let argument = |(name, description): &(&str, &str)| {
            let is_required = *name == "root" && roots.len() > 1;
            json!({ "name": name, "description": description, "required": is_required })
        };
        let arguments: Vec<Value> = PROMPT_ARGUMENTS.iter().map(argument).collect();
        let prompt = |prompt: &PromptInfo| {
            json!({
                "name": prompt.name,
                "title": prompt.title,
                "description": prompt.description,
                "arguments": arguments,
            })
        };
        let prompts: Vec<Value> = self.prompts().iter().map(prompt).collect();
        Ok(self.listed(json!({ "prompts": prompts })))
    }

    /// `prompts/get`.
    pub(crate) async fn get_prompt(self, params: Params) -> Result<HeldMessage, ErrorData> {
        let Some(name) = params.text("name") else {
            return Err(invalid_params(
                "prompts/get takes params with name (string) and arguments (object)",
            ));
        };
        if !self.prompts().iter().any(|prompt| prompt.name == name) {
            return Err(self.unknown_prompt(name));
        }
        let given = arguments(&params)?;
        let given = |name: &str| {
            given
                .iter()
                .find(|(own, _)| own == name)
                .map(|(_, value)| value.clone())
        };
        let root = self.prompt_root(given("root"))?;
        let mut arguments = json!({ "root": root, "name": name });
        if let Some(path) = given("path") {
            arguments["path"] = Value::from(path);
        }
        self.run_method(GET, &root, arguments, None, None, params)
            .await
    }

    /// The root of a prompt, which may be left out if there is one.
    fn prompt_root(&self, given: Option<String>) -> Result<String, ErrorData> {
        let roots = self.prompt_roots();
        match (given, roots.as_slice()) {
            (Some(root), _) => Ok(root),
            (None, [only]) => Ok((*only).to_owned()),
            (None, several) => {
                let fault = format!("root is required; roots: {}", several.join(", "));
                Err(invalid_params(fault))
            }
        }
    }

    /// The root whose paths can complete a prompt's argument.
    pub(crate) fn completed_root(
        &self,
        prompt: &str,
        params: &Params,
    ) -> Result<String, ErrorData> {
        if !self.prompts().iter().any(|own| own.name == prompt) || !self.offers_prompts() {
            return Err(self.unknown_prompt(prompt));
        }
        let context = params
            .get("context")
            .and_then(|context| context.get("arguments"));
        let root = context
            .and_then(|given| given.get("root"))
            .and_then(Value::as_str);
        self.prompt_root(root.map(str::to_owned))
    }

    /// The names of roots that start with what was typed.
    pub(crate) fn completed_roots(
        &self,
        prompt: &str,
        typed: &str,
    ) -> Result<Vec<&str>, ErrorData> {
        if !self.prompts().iter().any(|own| own.name == prompt) || !self.offers_prompts() {
            return Err(self.unknown_prompt(prompt));
        }
        let roots = self.prompt_roots().into_iter();
        let fitting = roots.filter(|root| root.starts_with(typed));
        Ok(fitting.take(VALUES_MAX).collect())
    }

    fn unknown_prompt(&self, name: &str) -> ErrorData {
        let known: Vec<&str> = self.prompts().iter().map(|prompt| prompt.name).collect();
        let known = if !self.offers_prompts() {
            String::new()
        } else {
            format!("; prompts: {}", known.join(", "))
        };
        invalid_params(format!("Unknown prompt: {}{known}", shortened(name)))
    }

    fn prompts(&self) -> Vec<PromptInfo> {
        let catalogue = self.context.server.service().catalogue();
        catalogue.prompts()
    }

    fn prompt_roots(&self) -> Vec<&str> {
        let catalogue = self.context.server.service().catalogue();
        catalogue.prompt_roots()
    }
}

/// The arguments of a prompt, which the protocol defines as texts.
fn arguments(params: &Params) -> Result<Vec<(String, String)>, ErrorData> {
    let given = match params.get("arguments") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(given)) => given,
        Some(_) => return Err(invalid_params("arguments has to be an object of strings")),
    };
    let known: Vec<&str> = PROMPT_ARGUMENTS.iter().map(|(name, _)| *name).collect();
    let mut arguments = Vec::new();
    for (name, value) in given {
        if !known.contains(&name.as_str()) {
            let (name, known) = (shortened(name), known.join(", "));
            return Err(invalid_params(format!(
                "Unknown argument {name}: prompts take {known}"
            )));
        }
        let value = value
            .as_str()
            .ok_or_else(|| invalid_params(format!("{name} has to be a string")))?;
        // Clients send an empty text for an argument that the user left out.
        if !value.is_empty() {
            arguments.push((name.clone(), value.to_owned()));
        }
    }
    Ok(arguments)
}
