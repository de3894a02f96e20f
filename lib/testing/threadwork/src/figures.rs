//! What is computed from times and counts.

/// The value that `percent` of the sorted `values` do not exceed; 0 if there are none.
pub fn percentile(values: &[u64], percent: usize) -> u64 {
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied().unwrap_or(0)
}

/// By how much the worst of `shares` differs from the mean, in millionths of the mean. All of it if
/// nobody got anything.
pub fn worst_deviation(shares: &[u64]) -> u64 {
    let count = shares.len().max(1) as u128;
    let sum: u128 = shares.iter().map(|share| u128::from(*share)).sum();
    if sum == 0 {
        return 1_000_000;
    }
    // |share - sum / count| / (sum / count), without a fraction on the way.
    let deviation = |share: &u64| (u128::from(*share) * count).abs_diff(sum);
    let worst = shares.iter().map(deviation).max().unwrap_or(0);
    u64::try_from(worst * 1_000_000 / sum).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: std::vec::Vec<u64> = (1..=200).collect();
        assert_eq!(percentile(&values, 50), 100);
        assert_eq!(percentile(&values, 99), 198);
        assert_eq!(percentile(&values, 100), 200);
        assert_eq!(percentile(&[7], 50), 7);
        assert_eq!(percentile(&[], 99), 0);
    }

    #[test]
    fn the_worst_share_counts() {
        assert_eq!(worst_deviation(&[5, 5, 5]), 0);
        assert_eq!(worst_deviation(&[90, 110, 100]), 100_000);
        assert_eq!(worst_deviation(&[0, 0, 0, 4]), 3_000_000);
        assert_eq!(worst_deviation(&[0, 0]), 1_000_000);
        assert_eq!(worst_deviation(&[u64::MAX, u64::MAX]), 0);
    }
}
