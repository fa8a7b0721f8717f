//! Which of several lists of words occur in a line, all lists at once: lines are asked for hundreds of words,
//! and one pass answers all of them.

use aho_corasick::AhoCorasick;

/// Lists of words, each with what it stands for.
pub(crate) struct Words<T: 'static> {
    automaton: AhoCorasick,
    owners: Vec<T>,
}

impl<T: Copy + Ord> Words<T> {
    /// Prepares lists of words in the form in which lines are compared.
    pub(crate) fn new(lists: &[(T, &'static [&'static str])]) -> Self {
        let words = || {
            lists.iter().flat_map(|(owner, words)| words.iter().map(move |word| (*owner, *word)))
        };
        Self {
            automaton: AhoCorasick::new(words().map(|(_, word)| word))
                .expect("the words are few and short"),
            owners: words().map(|(owner, _)| owner).collect(),
        }
    }

    /// What the words that occur in a line stand for, in no order, each as often as it occurs.
    pub(crate) fn in_line<'w>(&'w self, line: &'w str) -> impl Iterator<Item = T> + 'w {
        self.automaton
            .find_overlapping_iter(line)
            .map(|found| self.owners[found.pattern().as_usize()])
    }

    /// The first list of which a word occurs.
    pub(crate) fn first_in(&self, line: &str) -> Option<T> {
        self.in_line(line).min()
    }
}
