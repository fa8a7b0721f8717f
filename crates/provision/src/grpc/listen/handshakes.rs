//! Connections whose client has not presented a certificate yet.
//!
//! A client that connects and sends nothing must not block others. So a handshake has a short timeout, and
//! the number of handshakes is limited for each address and in total: beyond a limit, the newest handshake
//! ends the oldest one. An honest client needs milliseconds, so it is done before it could become the oldest,
//! even if it shares its address with clients that hold connections open.
//! its turn to be ended comes, even if it shares its address with others that hold connections open.

use std::collections::VecDeque;
use std::future::Future;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;

use futures::future::{AbortHandle, Abortable};
use futures::stream::{FuturesUnordered, StreamExt as _};

/// The most handshakes at once.
const AT_ONCE: usize = 256;
/// The most handshakes at once from one address.
const PER_ADDRESS: usize = 16;

/// A handshake, with its sequence number.
type Numbered<T> = Pin<Box<dyn Future<Output = (u64, T)> + Send>>;

pub(super) struct Handshakes<T> {
    running: FuturesUnordered<Abortable<Numbered<T>>>,
    /// The handshakes' order of arrival, the oldest first.
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

    /// Begins a handshake. Returns the address of the handshake that was ended for it, if any.
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

    /// The result of the next handshake that ends; pending while no handshake is under way.
    pub(super) async fn next(&mut self) -> T {
        loop {
            match self.running.next().await {
                Some(Ok((number, output))) => {
                    self.order.retain(|begun| begun.number != number);
                    return output;
                }
                // The handshake was ended for a newer one.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }
}

/// The part of an address that identifies a client: the first 64 bits of an IPv6 address, because a host
/// chooses the rest itself.
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
        // Nor does it block a client with the same address, as behind a proxy.
        assert_eq!(handshakes.begin(idle, ready("same address")), Some(idle));
        assert_eq!(handshakes.next().await, "same address");
        assert_eq!(handshakes.order.len(), PER_ADDRESS - 1);
        // The ended handshake's connection is closed.
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
