//! Taking apart what `Block::write_extents` is given.

use crate::{BlockError, Extent};

/// Bytes in a sector.
const SECTOR: u64 = 512;

/// The parts of `data` with their sectors.
///
/// # Errors
/// [`BlockError::OutOfRange`] if an extent is not a whole number of sectors, or they have more or
/// fewer bytes together than `data`.
pub fn parts<'a>(
    extents: &'a [Extent],
    data: &'a [u8],
) -> Result<impl Iterator<Item = (u64, &'a [u8])>, BlockError> {
    let sum = extents.iter().try_fold(0u64, |sum, extent| {
        let whole = extent.bytes.is_multiple_of(SECTOR);
        sum.checked_add(extent.bytes).filter(|_| whole)
    });
    if sum != Some(data.len() as u64) {
        return Err(BlockError::OutOfRange);
    }
    let mut rest = data;
    Ok(extents.iter().map(move |extent| {
        let (part, later) = rest.split_at(extent.bytes as usize);
        rest = later;
        (extent.sector, part)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn extent(sector: u64, bytes: u64) -> Extent {
        Extent { sector, bytes }
    }

    #[test]
    fn data_is_cut_along_the_extents() {
        let data = [7; 1536];
        let extents = [extent(9, 1024), extent(3, 512)];
        let cut = parts(&extents, &data).expect("they fit");
        let cut = cut.map(|(sector, part)| (sector, part.len()));
        assert!(cut.eq([(9, 1024), (3, 512)]));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for extents in [
            &[][..],
            &[extent(0, 512), extent(1, u64::MAX - 511)],
            &[extent(0, 100), extent(1, 1436)],
            &[extent(0, 1024)],
            &[extent(0, 2048)],
        ] {
            assert!(parts(extents, &[0; 1536]).is_err());
        }
    }
}
