//! Randomness by name: the values for a VM depend only on the seed and on the VM, not on the number of values
//! drawn before. So an additional request in a rerun changes no other value.

use std::time::Duration;

/// The source of all randomness.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seed(u64);

impl Seed {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The random values for one named purpose.
    pub(crate) fn of(self, name: &str) -> Draws {
        // FNV-1a over the seed and the name: stable across platforms and versions of std.
        let hash = self
            .0
            .to_le_bytes()
            .iter()
            .chain(name.as_bytes())
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
        Draws(fastrand::Rng::with_seed(hash))
    }
}

/// A stream of random values for one purpose.
#[derive(Debug)]
pub(crate) struct Draws(fastrand::Rng);

impl Draws {
    /// A number between 0 and 1.
    pub(crate) fn chance(&mut self) -> f64 {
        self.0.f64()
    }

    /// A duration, mostly near the geometric mean of the two bounds and rarely outside them, like durations
    /// in Azure.
    pub(crate) fn around(&mut self, low: f64, high: f64) -> Duration {
        // Twelve uniform draws approximate a normal one, without the platform's logarithm.
        let normal: f64 = (0..12).map(|_| self.0.f64()).sum::<f64>() - 6.0;
        let (low, high) = (low.max(0.001).ln(), high.max(0.001).ln());
        let seconds = f64::midpoint(low, high) + normal * (high - low) / 4.0;
        Duration::from_millis(
            Duration::from_secs_f64(seconds.exp()).as_millis().try_into().unwrap_or(u64::MAX),
        )
    }

    /// An identifier in the shape of a UUID.
    pub(crate) fn uuid(&mut self) -> String {
        let bits = self.0.u128(..);
        let hex = format!("{bits:032x}");
        format!(
            "{}-{}-4{}-8{}-{}",
            &hex[0..8],
            &hex[8..12],
            &hex[13..16],
            &hex[17..20],
            &hex[20..32]
        )
    }

    /// A string of `count` letters and digits.
    pub(crate) fn letters(&mut self, count: usize) -> String {
        (0..count).map(|_| self.0.alphanumeric()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_depends_on_seed_and_name_alone() {
        assert_eq!(Seed::new(1).of("vm/a").uuid(), Seed::new(1).of("vm/a").uuid());
        assert_ne!(Seed::new(1).of("vm/a").uuid(), Seed::new(1).of("vm/b").uuid());
        assert_ne!(Seed::new(1).of("vm/a").uuid(), Seed::new(2).of("vm/a").uuid());
    }

    #[test]
    fn durations_lie_around_their_bounds() {
        let mut inside = 0;
        for nth in 0..1000 {
            let seconds = Seed::new(3).of(&format!("{nth}")).around(20.0, 60.0).as_secs_f64();
            assert!((5.0..240.0).contains(&seconds), "{seconds}");
            inside += i32::from((20.0..60.0).contains(&seconds));
        }
        assert!(inside > 900, "{inside} of 1000");
    }
}
