//! Which benchmark that only the candidate has may be a missing one under a new name. Layer 3.

use super::comparison::{BenchmarkComparison, Status};

/// Below this likeness (0 to 1) a name is no suggestion.
const LIKE: f64 = 0.6;
/// Each missing id is compared with each new one; beyond this many a suggestion is no use anyway.
const AT_MOST: usize = 200;

/// Fills in the suggestions of the missing benchmarks.
pub(super) fn suggest(benchmarks: &mut [BenchmarkComparison]) {
    let new: Vec<String> = benchmarks
        .iter()
        .filter(|benchmark| benchmark.status == Status::NotCompared)
        .map(|benchmark| benchmark.id.clone())
        .take(AT_MOST)
        .collect();
    for benchmark in benchmarks.iter_mut().filter(|benchmark| benchmark.candidate.is_empty()).take(AT_MOST) {
        if let Status::Missing { suggestion, .. } = &mut benchmark.status {
            *suggestion = likeliest(&benchmark.id, &new);
        }
    }
}

fn likeliest(missing: &str, new: &[String]) -> Option<String> {
    new.iter()
        .map(|id| (likeness(missing, id), id))
        .filter(|(likeness, _)| *likeness >= LIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, id)| id.clone())
}

/// Spelling; where all parts but one are the same, that alone makes it likely.
fn likeness(a: &str, b: &str) -> f64 {
    let spelling = strsim::normalized_damerau_levenshtein(a, b);
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split('/').collect(), b.split('/').collect());
    let same = a.iter().zip(&b).filter(|(a, b)| a == b).count();
    if a.len() == b.len() && same + 1 == a.len() { LIKE + (1.0 - LIKE) * spelling } else { spelling }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_benchmark_is_suggested_and_an_unlike_one_is_not() {
        let new = ["g/renamed".to_owned(), "preallocation/ext4/write_16k".to_owned()];
        assert_eq!(likeliest("g/a", &new).as_deref(), Some("g/renamed"));
        assert_eq!(likeliest("preallocation/ext4/write_8k", &new).as_deref(), Some("preallocation/ext4/write_16k"));
        assert_eq!(likeliest("operation_latency_lstat/xfs/0", &new), None);
    }
}
