//! The goals of a comparison, as ratios of ours to the other side's: wall time, processor time and peak memory.

/// The most that each ratio may be; what has no number is not judged.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Goals {
    wall: Option<f64>,
    cpu: Option<f64>,
    peak: Option<f64>,
}

/// The result of a comparison, in the same ratios.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratios {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
    pub(crate) peak: f64,
}

impl Goals {
    /// Nothing is judged.
    pub(crate) fn none() -> Goals {
        Goals::default()
    }

    /// Tells whether nothing is judged.
    pub(crate) fn are_none(&self) -> bool {
        *self == Goals::default()
    }

    /// The wall alone.
    pub(crate) fn wall(most: f64) -> Goals {
        Goals {
            wall: Some(most),
            ..Goals::default()
        }
    }

    /// Peak memory alone.
    pub(crate) fn peak(most: f64) -> Goals {
        Goals {
            peak: Some(most),
            ..Goals::default()
        }
    }

    /// Processor time too.
    pub(crate) fn and_cpu(self, most: f64) -> Goals {
        Goals {
            cpu: Some(most),
            ..self
        }
    }

    /// Tells whether every goal is met.
    pub(crate) fn are_met(&self, ratios: Ratios) -> bool {
        let holds = |(most, ratio): (Option<f64>, f64)| most.is_none_or(|most| ratio <= most);
        let pairs = [
            (self.wall, ratios.wall),
            (self.cpu, ratios.cpu),
            (self.peak, ratios.peak),
        ];
        pairs.into_iter().all(holds)
    }

    /// The goals as a cell of a table.
    pub(crate) fn told(&self) -> String {
        let named = [("", self.wall), ("CPU ", self.cpu), ("memory ", self.peak)];
        let told = named.iter().filter_map(|(name, most)| {
            let most = (*most)?;
            Some(format!("{name}≤ {most}"))
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_goal_counts_and_only_goals() {
        let ratios = Ratios {
            wall: 0.5,
            cpu: 1.2,
            peak: 9.0,
        };
        assert!(Goals::wall(0.5).are_met(ratios));
        assert!(!Goals::wall(0.4).are_met(ratios));
        assert!(!Goals::wall(0.5).and_cpu(1.0).are_met(ratios));
        assert!(Goals::wall(0.5).and_cpu(1.2).are_met(ratios));
        assert!(!Goals::peak(8.0).are_met(ratios));
        assert_eq!(Goals::wall(0.3).and_cpu(0.3).told(), "≤ 0.3, CPU ≤ 0.3");
        assert_eq!(Goals::peak(1.0).told(), "memory ≤ 1");
        assert!(Goals::none().are_none() && !Goals::wall(1.0).are_none());
    }
}
