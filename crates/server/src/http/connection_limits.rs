//! Limits connections in total and per address, and decides which one is closed if there are too many.
//!
//! A connection counts as a stranger until a request on it was admitted (its Host, Origin and token were right).
//! Opening strangers costs an attacker nothing, so the oldest of them makes room for a new connection. If there is none, the
//! address that has the most connections makes room for one that has fewer: its oldest ends with the request that it serves, or
//! after a few seconds. A stream that only listens ends at once, because its client can come back for what it missed.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::settings::Network;

/// The limits of open connections.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionLimits {
    /// In all.
    pub(crate) most: usize,
    /// From one address.
    pub(crate) most_of_one: usize,
    /// The proxies, whose connections are those of many clients and are counted only in all.
    pub(crate) proxies: Vec<Network>,
}

/// Holds the connections within their limits.
#[derive(Debug)]
pub(super) struct ConnectionSlots {
    limits: ConnectionLimits,
    held: Mutex<HeldConnections>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct HeldConnections {
    all: usize,
    of_host: HashMap<Arc<str>, usize>,
    /// The connections without an admitted request, the oldest first.
    strangers: BTreeMap<u64, Stranger>,
    /// Those with one that were not asked to leave, the oldest first.
    admitted: BTreeMap<u64, Admitted>,
    next: u64,
}

#[derive(Debug)]
struct Stranger {
    host: Option<Arc<str>>,
    turned_out: CancellationToken,
}

#[derive(Debug)]
struct Admitted {
    host: Arc<str>,
    asked_to_leave: CancellationToken,
}

/// An address has reached its limit, and all of its connections are in use.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyOfOne;

/// The place of an open connection, until this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    number: u64,
    /// The address that it counts for; `None` for a proxy.
    host: Option<Arc<str>>,
    turned_out: CancellationToken,
    asked_to_leave: CancellationToken,
    has_asked: AtomicBool,
    is_let_in: AtomicBool,
}

impl ConnectionSlots {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<ConnectionSlots> {
        Arc::new(ConnectionSlots {
            limits,
            held: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// Admits a connection. Waits while all places are taken by admitted clients.
    pub(super) async fn enter(
        self: &Arc<ConnectionSlots>,
        from: IpAddr,
    ) -> Result<ConnectionSlot, TooManyOfOne> {
        let is_proxy = Network::any_has(&self.limits.proxies, from);
        let host: Option<Arc<str>> = (!is_proxy).then(|| mcp::host_of(from).into());
        loop {
            // Registered before the table is checked, so that a place freed in between is not missed.
            let freed = self.freed.notified();
            if let Some(slot) = self.try_enter(host.as_ref())? {
                return Ok(slot);
            }
            freed.await;
        }
    }

    fn try_enter(
        self: &Arc<ConnectionSlots>,
        host: Option<&Arc<str>>,
    ) -> Result<Option<ConnectionSlot>, TooManyOfOne> {
        let mut held = self.held();
        if host.is_some_and(|host| held.count_of(host) >= self.limits.most_of_one)
            && !held.turn_out_oldest(|stranger| stranger.host.as_ref() == host)
        {
            return Err(TooManyOfOne);
        }
        if held.all >= self.limits.most && !held.turn_out_oldest(|_| true) {
            held.ask_largest_to_leave(host);
            return Ok(None);
        }
        let turned_out = CancellationToken::new();
        Ok(Some(ConnectionSlot {
            number: held.add(host.cloned(), turned_out.clone()),
            slots: Arc::clone(self),
            host: host.cloned(),
            turned_out,
            asked_to_leave: CancellationToken::new(),
            has_asked: AtomicBool::new(false),
            is_let_in: AtomicBool::new(false),
        }))
    }

    fn held(&self) -> MutexGuard<'_, HeldConnections> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HeldConnections {
    fn add(&mut self, host: Option<Arc<str>>, turned_out: CancellationToken) -> u64 {
        self.all += 1;
        if let Some(host) = &host {
            *self.of_host.entry(Arc::clone(host)).or_default() += 1;
        }
        let number = self.next;
        self.next += 1;
        self.strangers.insert(number, Stranger { host, turned_out });
        number
    }

    fn count_of(&self, host: &str) -> usize {
        self.of_host.get(host).copied().unwrap_or_default()
    }

    /// Ends the oldest matching connection of a stranger; returns whether there was one. Its place is free at once.
    fn turn_out_oldest(&mut self, fits: impl Fn(&Stranger) -> bool) -> bool {
        let oldest = self.strangers.iter().find(|(_, stranger)| fits(stranger));
        let Some(number) = oldest.map(|(number, _)| *number) else {
            return false;
        };
        if let Some(stranger) = self.strangers.remove(&number) {
            stranger.turned_out.cancel();
            self.leave(stranger.host.as_ref());
        }
        true
    }

    /// Asks the oldest connection of the address that has the most to end, for one of an address that has at least two fewer.
    fn ask_largest_to_leave(&mut self, newcomer: Option<&Arc<str>>) {
        let own = newcomer.map_or(0, |host| self.count_of(host));
        let largest = self.of_host.iter().max_by_key(|(_, count)| **count);
        let Some((largest, _)) = largest.filter(|(_, count)| **count >= own + 2) else {
            return;
        };
        let mut admitted = self.admitted.iter();
        let oldest = admitted.find(|(_, admitted)| admitted.host == *largest);
        if let Some(number) = oldest.map(|(number, _)| *number)
            && let Some(admitted) = self.admitted.remove(&number)
        {
            admitted.asked_to_leave.cancel();
        }
    }

    fn leave(&mut self, host: Option<&Arc<str>>) {
        self.all -= 1;
        let Some(host) = host else { return };
        if let Some(count) = self.of_host.get_mut(host) {
            *count -= 1;
            if *count == 0 {
                self.of_host.remove(host);
            }
        }
    }
}

impl ConnectionSlot {
    /// Notes that a complete request head has arrived.
    pub(super) fn asks(&self) {
        self.has_asked.store(true, Ordering::Relaxed);
    }

    /// Whether a complete request head ever arrived.
    pub(super) fn has_asked(&self) -> bool {
        self.has_asked.load(Ordering::Relaxed)
    }

    /// Notes that a request was admitted: from now on the connection keeps its place.
    pub(super) fn let_in(&self) {
        if self.is_let_in.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut held = self.slots.held();
        let was_stranger = held.strangers.remove(&self.number).is_some();
        if let Some(host) = self.host.clone().filter(|_| was_stranger) {
            let asked_to_leave = self.asked_to_leave.clone();
            held.admitted.insert(
                self.number,
                Admitted {
                    host,
                    asked_to_leave,
                },
            );
        }
    }

    /// Waits until it should end with the request that it serves, because others have fewer connections.
    pub(super) async fn asked_to_leave(&self) {
        self.asked_to_leave.cancelled().await;
    }

    /// Is cancelled once it is asked to leave.
    pub(super) fn leaving(&self) -> CancellationToken {
        self.asked_to_leave.clone()
    }

    /// Waits until another connection takes its place.
    pub(super) async fn turned_out(&self) {
        self.turned_out.cancelled().await;
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut held = self.slots.held();
        held.admitted.remove(&self.number);
        // A connection that was ended has already lost its place to another one.
        let was_stranger = held.strangers.remove(&self.number).is_some();
        if was_stranger || !self.turned_out.is_cancelled() {
            held.leave(self.host.as_ref());
            drop(held);
            self.slots.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn slots(most: usize, most_of_one: usize) -> Arc<ConnectionSlots> {
        ConnectionSlots::new(ConnectionLimits {
            most,
            most_of_one,
            proxies: vec!["10.0.0.0/8".parse().unwrap()],
        })
    }

    fn host(number: u8) -> IpAddr {
        [127, 0, 0, number].into()
    }

    #[tokio::test]
    async fn the_oldest_stranger_makes_room() {
        let slots = slots(2, 2);
        let known = slots.enter(host(1)).await.unwrap();
        known.let_in();
        let stranger = slots.enter(host(2)).await.unwrap();
        let third = slots.enter(host(3)).await.unwrap();
        stranger.turned_out().await;
        third.let_in();
        drop(stranger);
        assert_eq!(slots.held().all, 2, "its place was another's already");
        let waiting = tokio::time::timeout(Duration::from_millis(20), slots.enter(host(4)));
        assert!(waiting.await.is_err(), "both were let in");
        drop(known);
        assert!(slots.enter(host(4)).await.is_ok());
        assert_eq!(slots.held().all, 1);
    }

    #[tokio::test]
    async fn one_address_has_a_share_and_a_proxy_has_none() {
        let slots = slots(10, 2);
        let [first, second] = [host(1), host(1)].map(|host| slots.try_enter_now(host));
        first.let_in();
        let third = slots.enter(host(1)).await.unwrap();
        second.turned_out().await;
        third.let_in();
        assert_eq!(slots.enter(host(1)).await.unwrap_err(), TooManyOfOne);
        let other = slots.enter(host(2)).await;
        assert!(other.is_ok());
        let proxy = IpAddr::from([10, 0, 0, 1]);
        let many = [proxy; 5].map(|proxy| slots.try_enter_now(proxy));
        many.iter().for_each(ConnectionSlot::let_in);
        drop((first, second, third, other, many));
        let held = slots.held();
        assert_eq!(held.all, 0);
        assert_eq!(held.of_host.len(), 0);
    }

    #[tokio::test]
    async fn the_address_with_the_most_makes_room_for_one_with_fewer() {
        let slots = slots(6, 3);
        let held = [1, 1, 1, 2, 2, 2].map(|number| {
            let slot = slots.try_enter_now(host(number));
            slot.let_in();
            slot
        });
        let third = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.enter(host(3)).await }
        });
        let asked = tokio::select! {
            () = held[0].asked_to_leave() => 0,
            () = held[3].asked_to_leave() => 3,
        };
        // It ends with its request; until then its place is its own.
        assert!(!third.is_finished() && slots.held().all == 6);
        let mut held: Vec<ConnectionSlot> = held.into();
        drop(held.remove(asked));
        let third = third.await.unwrap().unwrap();
        third.let_in();
        let of_all_equal = |held: &HeldConnections| held.of_host.values().all(|count| *count <= 3);
        assert!(of_all_equal(&slots.held()));
        // One that has as many as the largest waits like everybody.
        let second: Arc<str> = mcp::host_of(host(2)).into();
        let fourth = slots.try_enter(Some(&second));
        assert!(matches!(fourth, Err(TooManyOfOne) | Ok(None)));
        drop((held, third));
        let held = slots.held();
        assert!(held.all == 0 && held.admitted.is_empty());
    }

    impl ConnectionSlots {
        fn try_enter_now(self: &Arc<ConnectionSlots>, from: IpAddr) -> ConnectionSlot {
            let is_proxy = Network::any_has(&self.limits.proxies, from);
            let host: Option<Arc<str>> = (!is_proxy).then(|| mcp::host_of(from).into());
            self.try_enter(host.as_ref()).unwrap().unwrap()
        }
    }
}
