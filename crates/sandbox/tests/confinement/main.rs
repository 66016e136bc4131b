//! What a root promises, shown from outside: by its public calls, with every means of look-up.

#[path = "../support/mod.rs"]
mod support;

mod basics;
mod child;
mod crash;
mod lock;
mod paths;
mod race;
mod special;
