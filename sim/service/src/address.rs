//! Loopback addresses of containers.
//!
//! An engine owns one `127.x.0.0/16`, so that engines on one machine do not meet: it holds a UDP socket on the range's last
//! address for as long as it lives. The range is chosen once and kept.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};

/// First and last second octet; low ones are used by others (127.0.0.53, 127.0.1.1).
const FIRST: u8 = 16;
const LAST: u8 = 254;
/// Port of the socket that claims a range.
const CLAIM: u16 = 6443;

/// The addresses of an engine.
pub struct Addresses {
    range: u8,
    used: BTreeSet<u16>,
    _claim: UdpSocket,
}

impl Addresses {
    /// Claims the kept range, or any free one.
    ///
    /// # Errors
    /// When the kept range is used by another engine, or no range is free.
    pub fn claim(kept: Option<u8>) -> io::Result<Addresses> {
        let claim = |range: u8| {
            let socket = UdpSocket::bind((Ipv4Addr::new(127, range, 255, 254), CLAIM))?;
            Ok(Addresses { range, used: BTreeSet::new(), _claim: socket })
        };
        if let Some(range) = kept {
            return claim(range);
        }
        let count = LAST - FIRST + 1;
        let start = rand::random::<u8>() % count;
        let mut outcome = Err(io::ErrorKind::AddrNotAvailable.into());
        for step in 0..count {
            let offset = (u16::from(start) + u16::from(step)) % u16::from(count);
            outcome = claim(FIRST + u8::try_from(offset).unwrap_or(0));
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    /// Second octet of the range.
    pub fn range(&self) -> u8 {
        self.range
    }

    /// Takes the lowest free address; `None` when all are taken.
    pub fn take(&mut self) -> Option<Ipv4Addr> {
        let free = 2..u16::MAX - 1;
        let number = self.used.iter().try_fold(2, |next, used| if *used == next { Ok(next + 1) } else { Err(next) });
        let number = number.unwrap_or_else(|free| free);
        free.contains(&number).then(|| {
            self.used.insert(number);
            self.address(number)
        })
    }

    /// Marks an address as taken.
    pub fn occupy(&mut self, address: Ipv4Addr) {
        self.used.insert(number(address));
    }

    /// Makes an address available again.
    pub fn release(&mut self, address: Ipv4Addr) {
        self.used.remove(&number(address));
    }

    fn address(&self, number: u16) -> Ipv4Addr {
        let [high, low] = number.to_be_bytes();
        Ipv4Addr::new(127, self.range, high, low)
    }
}

fn number(address: Ipv4Addr) -> u16 {
    let [_, _, high, low] = address.octets();
    u16::from_be_bytes([high, low])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
    use super::*;

    #[test]
    fn addresses_are_unique_and_used_again_after_release() {
        let mut addresses = Addresses::claim(None).unwrap();
        let taken: Vec<Ipv4Addr> = (0..300).map(|_| addresses.take().unwrap()).collect();
        assert_eq!(taken.iter().collect::<BTreeSet<_>>().len(), 300);
        addresses.release(taken[7]);
        assert_eq!(addresses.take(), Some(taken[7]));
    }

    #[test]
    fn two_engines_never_share_a_range() {
        let one = Addresses::claim(None).unwrap();
        assert!(Addresses::claim(Some(one.range())).is_err());
        assert_ne!(Addresses::claim(None).unwrap().range(), one.range());
    }
}
