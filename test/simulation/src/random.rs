//! Numbers that look random and are the same for one seed: splitmix64.

/// A source of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `most`, which is not 0.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        usize::try_from(self.next() % most).unwrap_or(0)
    }

    /// True so often in a hundred.
    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.next() % 100 < chance
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// One of several, each as often as its weight says.
    pub(crate) fn weighted<T: Copy>(&mut self, of: &[(u32, T)]) -> T {
        let all: u32 = of.iter().map(|(weight, _)| weight).sum();
        let mut at = u32::try_from(self.next() % u64::from(all.max(1))).unwrap_or(0);
        for (weight, what) in of {
            if at < *weight {
                return *what;
            }
            at -= weight;
        }
        of[0].1
    }
}
