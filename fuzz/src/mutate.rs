//! Mutations of kept inputs: bits, bytes, lengths, cuts, repeats and pieces of other inputs.

/// Numbers at which lengths and counters go wrong.
const EDGES: [u64; 10] = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];

/// A new input made from the kept ones.
pub(crate) fn next(corpus: &[Vec<u8>], rng: &mut fastrand::Rng) -> Vec<u8> {
    if rng.u8(0..32) == 0 {
        let len = rng.usize(0..200);
        return std::iter::repeat_with(|| rng.u8(..)).take(len).collect();
    }
    let mut input = corpus[rng.usize(0..corpus.len())].clone();
    for _ in 0..rng.usize(1..6) {
        change(&mut input, corpus, rng);
    }
    input
}

fn change(input: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut fastrand::Rng) {
    let at = rng.usize(0..=input.len());
    let rest = input.len() - at;
    match rng.u8(0..8) {
        0 if rest > 0 => input[at] ^= 1 << rng.u8(0..8),
        1 if rest > 0 => input[at] = rng.u8(..),
        2 => input.truncate(at),
        3 => {
            let width = [1, 2, 4, 8][rng.usize(0..4)].min(rest);
            let edge = EDGES[rng.usize(0..EDGES.len())].to_le_bytes();
            input[at..at + width].copy_from_slice(&edge[..width]);
        }
        4 => drop(input.drain(at..at + rng.usize(0..=rest.min(64)))),
        5 => {
            let piece = input[at..at + rng.usize(0..=rest.min(256))].to_vec();
            input.splice(at..at, piece);
        }
        6 => {
            let other = &corpus[rng.usize(0..corpus.len())];
            let from = rng.usize(0..=other.len());
            let piece = other[from..from + rng.usize(0..=(other.len() - from).min(512))].to_vec();
            let replaced = rng.usize(0..=rest.min(piece.len()));
            input.splice(at..at + replaced, piece);
        }
        _ => input.insert(at, rng.u8(..)),
    }
}
