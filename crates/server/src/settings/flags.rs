//! The flags of settings, made from the table. clap words the mistakes made in them.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgMatches, value_parser};

use super::choices::{Toolset, WordValue};
use super::table::{Row, TABLE};
use super::units;
use super::value::{Bounds, Host};

/// The flags of all settings that have one; they go before or after a subcommand.
pub(crate) fn flags() -> impl Iterator<Item = Arg> {
    TABLE.iter().filter_map(flag)
}

fn flag(row: &Row) -> Option<Arg> {
    let flag = row.flag.as_ref()?;
    let meaning = row.meaning.trim_end_matches('.');
    let help = match row.otherwise {
        // The meaning says what holds without it.
        Some(_) => meaning.to_owned(),
        None => {
            let default = (row.default)();
            format!("{meaning} [default: {}]", default.trim_matches(['[', ']']))
        }
    };
    let argument = Arg::new(row.field)
        .long(flag.name)
        .value_name(flag.value_name)
        .help(help)
        .global(true);
    let argument = match row.environment {
        Some(variable) => argument.env(variable),
        None => argument,
    };
    Some((flag.with_parser)(argument, row.bounds.clone()))
}

/// A type that a flag can have.
pub(crate) trait FlagValue: Clone + Send + Sync + 'static {
    /// Adds how the value is parsed.
    fn with_parser(argument: Arg, bounds: Option<Bounds>) -> Arg;

    /// The value that was given.
    fn given(matches: &ArgMatches, id: &str) -> Option<Self> {
        matches.get_one::<Self>(id).cloned()
    }
}

impl FlagValue for Host {
    fn with_parser(argument: Arg, _: Option<Bounds>) -> Arg {
        argument.value_parser(|text: &str| text.parse::<Host>())
    }
}

impl FlagValue for u16 {
    fn with_parser(argument: Arg, _: Option<Bounds>) -> Arg {
        argument.value_parser(value_parser!(u16))
    }
}

impl FlagValue for u64 {
    fn with_parser(argument: Arg, bounds: Option<Bounds>) -> Arg {
        with_unit(argument, bounds, units::bytes, units::SIZE)
    }
}

/// Adds how a number with a unit is parsed.
fn with_unit(
    argument: Arg,
    bounds: Option<Bounds>,
    read: fn(&str) -> Option<u64>,
    expected: &'static str,
) -> Arg {
    let bounds = bounds.unwrap_or(0..=u64::MAX);
    argument.value_parser(move |text: &str| {
        let number = read(text).ok_or_else(|| format!("expected {expected}"))?;
        let (low, high) = (bounds.start(), bounds.end());
        let is_within = bounds.contains(&number);
        let number = is_within.then_some(number);
        number.ok_or_else(|| format!("expected a number from {low} to {high}"))
    })
}

impl FlagValue for Duration {
    fn with_parser(argument: Arg, bounds: Option<Bounds>) -> Arg {
        with_unit(argument, bounds, units::seconds, units::TIME)
    }

    fn given(matches: &ArgMatches, id: &str) -> Option<Duration> {
        u64::given(matches, id).map(Duration::from_secs)
    }
}

impl FlagValue for Option<PathBuf> {
    fn with_parser(argument: Arg, _: Option<Bounds>) -> Arg {
        argument.value_parser(value_parser!(PathBuf))
    }

    fn given(matches: &ArgMatches, id: &str) -> Option<Option<PathBuf>> {
        matches.get_one::<PathBuf>(id).cloned().map(Some)
    }
}

impl<T: WordValue> FlagValue for T {
    fn with_parser(argument: Arg, _: Option<Bounds>) -> Arg {
        let words = T::WORDS.iter();
        let words = words.map(|(word, _, meaning)| PossibleValue::new(*word).help(*meaning));
        let parser = PossibleValuesParser::new(words);
        // Variables like FS_LOG_LEVEL are often written in capitals.
        let parser = parser.try_map(|text| T::named(&text.to_lowercase()).ok_or("unknown word"));
        argument.ignore_case(true).value_parser(parser)
    }
}

impl FlagValue for Vec<Toolset> {
    fn with_parser(argument: Arg, bounds: Option<Bounds>) -> Arg {
        Toolset::with_parser(argument, bounds)
            .value_delimiter(',')
            .action(clap::ArgAction::Append)
    }

    /// Each set counts once.
    fn given(matches: &ArgMatches, id: &str) -> Option<Vec<Toolset>> {
        let mut once: Vec<Toolset> = Vec::new();
        for set in matches.get_many::<Toolset>(id)? {
            if !once.contains(set) {
                once.push(*set);
            }
        }
        Some(once)
    }
}
