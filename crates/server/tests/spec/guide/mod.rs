//! The `guide` set: every scenario of its two specifications, by their order there.

mod asking;
mod bridge;
mod project;
mod startup;
mod tools;
