//! Contents and offsets from a seed, the same for ever. Layer 2.
//!
//! The generator is ChaCha with 8 rounds (`rand_chacha::ChaCha8Rng`, seeded by `seed_from_u64`), whose output is fixed by
//! its specification; a test holds its first values. Nothing here is called between two readings of a clock.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Fills a buffer with bytes that no filesystem can compress.
pub fn fill_incompressible(buffer: &mut [u8], seed: u64) {
    ChaCha8Rng::seed_from_u64(seed).fill_bytes(buffer);
}

/// A buffer of `bytes` incompressible bytes.
pub fn incompressible(bytes: usize, seed: u64) -> Vec<u8> {
    let mut buffer = vec![0; bytes];
    fill_incompressible(&mut buffer, seed);
    buffer
}

/// Draws `count` offsets into a file, each a multiple of `io_bytes` at which a whole I/O fits.
///
/// Empty where the file is shorter than one I/O (or `io_bytes` is zero). As published, an offset may come more than once.
pub fn random_offsets(count: u64, file_bytes: u64, io_bytes: u64, seed: u64) -> Vec<u64> {
    let places = file_bytes.checked_div(io_bytes).unwrap_or(0);
    if places == 0 {
        return Vec::new();
    }
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| generator.next_u64() % places * io_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_bytes_for_ever() {
        assert_eq!(incompressible(8, 1), [177, 13, 164, 140, 234, 76, 9, 103]);
        assert_eq!(random_offsets(3, 512 << 20, 1024, 1), [272_024_576, 439_987_200, 471_438_336]);
        assert_ne!(incompressible(64, 1), incompressible(64, 2));
    }

    #[test]
    fn offsets_are_aligned_and_inside_the_file() {
        for offset in random_offsets(10_000, 10 * 1024 + 1023, 1024, 7) {
            assert!(offset.is_multiple_of(1024) && offset <= 9 * 1024, "{offset}");
        }
        assert!(random_offsets(5, 1023, 1024, 7).is_empty());
        assert!(random_offsets(5, 1023, 0, 7).is_empty());
        assert!(random_offsets(0, 4096, 1024, 7).is_empty());
        assert_eq!(random_offsets(3, u64::MAX, 1024, 7).len(), 3);
    }
}
