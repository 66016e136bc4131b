//! One comparison: a tool call of ours beside the program that does the same, run in turn.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::goals::{Goals, Ratios};
use crate::measure::{self, Cost, Costs, Line};
use crate::server::{Durability, Own, Server};

/// A comparison is repeated until it has the most rounds, or the fewest and its time is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    pub(crate) fewest: usize,
    pub(crate) most: usize,
    pub(crate) time: Duration,
}

/// Runs one side once; `round` counts from 0, the warm-up.
pub(crate) type Subject = Box<dyn FnMut(&mut Servers, usize) -> Result<Cost>>;
/// Runs the other side once.
pub(crate) type Peer = Box<dyn FnMut(usize) -> Result<Cost>>;

/// Two sides that do the same work.
pub(crate) struct Pair {
    /// The part of the report it belongs to.
    pub(crate) part: &'static str,
    pub(crate) name: String,
    pub(crate) peer_name: String,
    /// The ratios that are wanted at most.
    pub(crate) goals: Goals,
    pub(crate) subject: Subject,
    pub(crate) peer: Peer,
}

/// The result of a comparison.
pub(crate) struct Compared {
    pub(crate) part: &'static str,
    pub(crate) name: String,
    pub(crate) peer_name: String,
    pub(crate) goals: Goals,
    pub(crate) subject: Costs,
    pub(crate) peer: Costs,
}

impl Compared {
    /// What ours took in parts of what the peer took.
    #[expect(clippy::cast_precision_loss, reason = "kibibytes of memory")]
    pub(crate) fn ratios(&self) -> Ratios {
        let over = |own: f64, peer: f64| own / peer.max(f64::MIN_POSITIVE);
        Ratios {
            wall: over(self.subject.wall(), self.peer.wall()),
            cpu: over(self.subject.cpu(), self.peer.cpu()),
            peak: over(self.subject.peak() as f64, self.peer.peak() as f64),
        }
    }

    /// Tells whether all goals are met.
    pub(crate) fn is_met(&self) -> bool {
        self.goals.are_met(self.ratios())
    }
}

impl Pair {
    /// Runs both sides in turn, the first round uncounted; who begins changes from round to round.
    pub(crate) fn run(mut self, servers: &mut Servers, patience: Patience) -> Result<Compared> {
        servers.stop();
        let (mut subject, mut peer) = (Costs::default(), Costs::default());
        let begun = Instant::now();
        for round in 0..=patience.most {
            let (own, other) = self.round(servers, round)?;
            if round > 0 {
                subject.push(own);
                peer.push(other);
            }
            if round >= patience.fewest && begun.elapsed() > patience.time {
                break;
            }
        }
        Ok(Compared {
            part: self.part,
            name: self.name,
            peer_name: self.peer_name,
            goals: self.goals,
            subject,
            peer,
        })
    }

    fn round(&mut self, servers: &mut Servers, round: usize) -> Result<(Cost, Cost)> {
        if round.is_multiple_of(2) {
            let own = (self.subject)(servers, round)?;
            return Ok((own, (self.peer)(round)?));
        }
        let other = (self.peer)(round)?;
        Ok(((self.subject)(servers, round)?, other))
    }
}

/// Our servers, each started when it is first needed and warm from then on.
pub(crate) struct Servers {
    own: Own,
    running: Vec<((&'static str, Durability), Server)>,
    /// Those with a setting of their own, by its word.
    configured: Vec<(&'static str, Server)>,
}

impl Servers {
    pub(crate) fn new(own: Own) -> Servers {
        Servers {
            own,
            running: Vec::new(),
            configured: Vec::new(),
        }
    }

    /// How they are started.
    pub(crate) fn own(&self) -> &Own {
        &self.own
    }

    /// Ends them all, so that the memory of the next ones is their own.
    pub(crate) fn stop(&mut self) {
        self.running.clear();
        self.configured.clear();
    }

    /// A server of `workspace` that remembers nothing of earlier searches.
    pub(crate) fn unremembered(&mut self) -> Result<&mut Server> {
        self.configured(
            "unremembered",
            "limits: { search_memory: 0, request_timeout: 600 }\n",
        )
    }

    /// A server of `workspace` with more lines in its config, told from others by a word.
    pub(crate) fn configured(&mut self, word: &'static str, more: &str) -> Result<&mut Server> {
        if !self.configured.iter().any(|(known, _)| *known == word) {
            let server = self.own.start_configured(word, more)?;
            self.configured.push((word, server));
        }
        let found = self.configured.iter_mut().find(|(known, _)| *known == word);
        found
            .map(|(_, server)| server)
            .context("it was just started")
    }

    /// The server of a tool set.
    pub(crate) fn get(
        &mut self,
        toolset: &'static str,
        durability: Durability,
    ) -> Result<&mut Server> {
        let key = (toolset, durability);
        if !self.running.iter().any(|(known, _)| *known == key) {
            let server = self.own.start(toolset, durability)?;
            self.running.push((key, server));
        }
        let found = self.running.iter_mut().find(|(known, _)| *known == key);
        found
            .map(|(_, server)| server)
            .context("it was just started")
    }
}

/// A tool call that is the same in each round; the first time its reply is checked.
pub(crate) fn call(
    toolset: &'static str,
    tool: &'static str,
    arguments: Value,
    check: impl Fn(&Value) -> Result<()> + 'static,
) -> Subject {
    Box::new(move |servers, round| {
        let server = servers.get(toolset, Durability::Fsync)?;
        let cost = server.call(tool, &arguments)?;
        if round == 0 {
            check(&server.reply()?).with_context(|| format!("{tool} {arguments}"))?;
        }
        Ok(cost)
    })
}

/// A search by a server that remembers nothing of earlier ones, the same in each round; the first time its reply is checked.
pub(crate) fn call_unremembered(
    tool: &'static str,
    arguments: Value,
    check: impl Fn(&Value) -> Result<()> + 'static,
) -> Subject {
    Box::new(move |servers, round| {
        let server = servers.unremembered()?;
        let cost = server.call(tool, &arguments)?;
        if round == 0 {
            check(&server.reply()?).with_context(|| format!("{tool} {arguments}"))?;
        }
        Ok(cost)
    })
}

/// A program that is run the same in each round.
pub(crate) fn program(line: Line) -> Peer {
    Box::new(move |_| Ok(measure::run(&line)?.0))
}

/// Checks a number of the reply against the lines another program writes for the same question.
pub(crate) fn as_many(pointer: &'static str, line: Line) -> impl Fn(&Value) -> Result<()> {
    move |reply| {
        let own = reply.pointer(pointer).and_then(Value::as_u64);
        let lines = measure::run(&line)?.1.lines;
        if own != Some(lines) {
            bail!(
                "{pointer} is {own:?} where {:?} has {lines}",
                line.arguments
            );
        }
        Ok(())
    }
}
