//! The wordings of faults, a file for each vocabulary.

mod files;
mod http;
mod languages;
mod names;
mod packages;
mod programs;
mod tls;
mod transport;
mod units;

use crate::fault::Idiom;

/// Every idiom.
pub(crate) fn all() -> impl Iterator<Item = &'static Idiom> {
    [
        names::IDIOMS,
        transport::IDIOMS,
        tls::IDIOMS,
        http::IDIOMS,
        files::IDIOMS,
        programs::IDIOMS,
        packages::IDIOMS,
        units::IDIOMS,
        languages::IDIOMS,
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::normal;

    #[test]
    fn idioms_are_written_as_they_are_compared() {
        for idiom in all() {
            let sign = &idiom.sign;
            for part in sign.all.iter().chain(sign.none).chain(sign.near) {
                assert_eq!(normal(part), **part, "{:?}", idiom.fault);
                assert!(!part.is_empty());
            }
        }
    }

    #[test]
    fn no_idiom_is_listed_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for idiom in all() {
            assert!(seen.insert((idiom.sign.all, idiom.fault)), "{:?}", idiom.sign.all);
        }
    }
}
