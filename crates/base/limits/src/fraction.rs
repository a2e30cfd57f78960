//! The fraction of a limit.

/// Fraction of a limit, in units of 1/65,536, in [0, 1].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fraction(u32);

impl Fraction {
    /// Nothing of it.
    pub const NONE: Self = Self(0);
    /// All of it.
    pub const WHOLE: Self = Self(1 << Self::BITS);
    /// Binary logarithm of the parts of a whole.
    pub const BITS: u32 = 16;

    /// Fraction of `parts`; more than a whole counts as the whole.
    pub const fn from_parts(parts: u32) -> Self {
        if parts < Self::WHOLE.0 { Self(parts) } else { Self::WHOLE }
    }

    /// One of `among` equal parts, rounded down; for 0 the whole.
    pub const fn even(among: u32) -> Self {
        match Self::WHOLE.0.checked_div(among) {
            Some(parts) => Self(parts),
            None => Self::WHOLE,
        }
    }

    /// In 65,536ths.
    pub const fn parts(self) -> u32 {
        self.0
    }

    /// In [0, 1].
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::WHOLE.0)
    }

    /// This fraction of `whole`, rounded down.
    pub fn of_whole(self, whole: u64) -> u64 {
        u64::try_from((u128::from(whole) * u128::from(self.0)) >> Self::BITS).unwrap_or(u64::MAX)
    }

    /// The whole of which `part` is this fraction, rounded up; at most 2^64 - 1, also for [`Self::NONE`].
    pub fn whole_of(self, part: u64) -> u64 {
        if self == Self::NONE {
            return u64::MAX;
        }
        u64::try_from((u128::from(part) << Self::BITS).div_ceil(u128::from(self.0))).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::Fraction;
    use proptest::prelude::*;

    #[test]
    fn even_fractions_are_at_most_the_whole() {
        for among in [1, 2, 3, 7, 100, 65_536, 65_537] {
            assert!(u64::from(Fraction::even(among).parts()) * u64::from(among) <= 65_536, "{among}");
        }
        assert_eq!(
            (Fraction::even(1), Fraction::even(0), Fraction::from_parts(70_000)),
            (Fraction::WHOLE, Fraction::WHOLE, Fraction::WHOLE)
        );
        assert_eq!((Fraction::even(4).as_f64(), Fraction::NONE.whole_of(1)), (0.25, u64::MAX));
    }

    proptest! {
        #[test]
        fn a_part_is_rounded_down_and_a_whole_up(parts in 1_u32..=65_536, number in 0_u64..1 << 47) {
            let fraction = Fraction::from_parts(parts);
            let part = fraction.of_whole(number);
            prop_assert!(u128::from(part) << 16 <= u128::from(number) * u128::from(parts));
            prop_assert!(u128::from(part + 1) << 16 > u128::from(number) * u128::from(parts));
            let whole = fraction.whole_of(number);
            prop_assert!(u128::from(whole) * u128::from(parts) >= u128::from(number) << 16);
            prop_assert!(whole == 0 || u128::from(whole - 1) * u128::from(parts) < u128::from(number) << 16);
            if parts == 65_536 {
                prop_assert_eq!((part, whole), (number, number));
            }
        }
    }
}
