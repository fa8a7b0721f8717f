//! Connections that have not shown a certificate yet.
//!
//! A client that connects and sends nothing must not keep others out. So a handshake has little time,
//! and there is room for a few from each address and for some more from all: where there is none, the
//! oldest handshake is ended for the newest. An honest client needs milliseconds, so it is done before
//! its turn to be ended comes, even if it shares its address with others that hold connections open.

use std::collections::VecDeque;
use std::future::Future;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;

use futures::future::{AbortHandle, Abortable};
use futures::stream::{FuturesUnordered, StreamExt as _};

/// How many handshakes there may be at once.
const AT_ONCE: usize = 256;
/// How many of them may be with one address.
const PER_ADDRESS: usize = 16;

/// A handshake, with the number that it was given.
type Numbered<T> = Pin<Box<dyn Future<Output = (u64, T)> + Send>>;

/// Handshakes under way.
pub(super) struct Handshakes<T> {
    running: FuturesUnordered<Abortable<Numbered<T>>>,
    /// The same, the oldest first.
    order: VecDeque<Begun>,
    number: u64,
}

struct Begun {
    number: u64,
    from: IpAddr,
    handle: AbortHandle,
}

impl<T> Handshakes<T> {
    pub(super) fn new() -> Self {
        Self { running: FuturesUnordered::new(), order: VecDeque::new(), number: 0 }
    }

    /// Begins a handshake. Returns the address whose oldest handshake was ended for it, if one was.
    pub(super) fn begin<F>(&mut self, from: IpAddr, handshake: F) -> Option<IpAddr>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let from = network(from);
        let theirs = self.order.iter().filter(|begun| begun.from == from).count();
        let oldest = if theirs >= PER_ADDRESS {
            self.order.iter().position(|begun| begun.from == from)
        } else {
            (self.order.len() >= AT_ONCE).then_some(0)
        };
        let ended = oldest.and_then(|at| self.order.remove(at)).map(|begun| {
            begun.handle.abort();
            begun.from
        });
        self.number = self.number.wrapping_add(1);
        let number = self.number;
        let (handle, registration) = AbortHandle::new_pair();
        self.order.push_back(Begun { number, from, handle });
        let handshake: Numbered<T> = Box::pin(async move { (number, handshake.await) });
        self.running.push(Abortable::new(handshake, registration));
        ended
    }

    /// The result of the next handshake that ends; pending while none is under way.
    pub(super) async fn next(&mut self) -> T {
        loop {
            match self.running.next().await {
                Some(Ok((number, output))) => {
                    self.order.retain(|begun| begun.number != number);
                    return output;
                }
                // Ended for a newer one.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }
}

/// What counts as one address: of IPv6 the first 64 bits, since a host chooses the rest itself.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn one_address_cannot_take_the_room_of_others() {
        let mut handshakes = Handshakes::<&str>::new();
        let idle = address("10.0.0.1");
        for number in 0..1_000 {
            let ended = handshakes.begin(idle, pending());
            assert_eq!(ended, (number >= PER_ADDRESS).then_some(idle), "{number}");
        }
        assert_eq!(handshakes.begin(address("10.0.0.2"), ready("other address")), None);
        assert_eq!(handshakes.next().await, "other address");
        // Nor that of a client with the same address, as behind a proxy.
        assert_eq!(handshakes.begin(idle, ready("same address")), Some(idle));
        assert_eq!(handshakes.next().await, "same address");
        assert_eq!(handshakes.order.len(), PER_ADDRESS - 1);
        // What was ended is not held open any longer.
        assert_eq!(handshakes.running.len(), PER_ADDRESS - 1);
    }

    #[tokio::test]
    async fn many_addresses_cannot_keep_a_new_one_out() {
        let mut handshakes = Handshakes::<&str>::new();
        for number in 0..2_000_u32 {
            handshakes.begin(IpAddr::V4(number.into()), pending());
        }
        assert_eq!(handshakes.order.len(), AT_ONCE);
        handshakes.begin(address("10.0.0.2"), ready("honest"));
        assert_eq!(handshakes.next().await, "honest");
    }

    #[test]
    fn a_host_has_one_address_whatever_it_chooses_within_its_network() {
        assert_eq!(network(address("2001:db8::1")), network(address("2001:db8::ffff:1")));
        assert_ne!(network(address("2001:db8::1")), network(address("2001:db8:0:1::1")));
        assert_eq!(network(address("::ffff:10.0.0.1")), address("10.0.0.1"));
    }
}
