//! Chance that repeats itself: a function of a seed.

/// The generator splitmix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers that follow from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below the bound, or 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0) % bound.max(1)
    }

    /// Whether something happens that happens so many times in a hundred.
    pub fn happens(&mut self, percent: u8) -> bool {
        self.below(100) < u64::from(percent)
    }

    /// A place among so many, or 0.
    pub fn place(&mut self, among: usize) -> usize {
        let among = u64::try_from(among).unwrap_or(u64::MAX);
        usize::try_from(self.below(among)).unwrap_or_default()
    }

    /// Brings items into an order of chance.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.place(at + 1));
        }
    }
}

/// The finalizer of splitmix64.
pub(crate) fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
