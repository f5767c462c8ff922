//! `load` of a step: which loads run in it, and at what rate.

use document::Problem;

use super::super::fields::{Field, Fields};
use super::super::values::Reader;
use super::{Found, arrivals};
use crate::plan::{LoadModel, StepLoad, Traffic};
use crate::text::Text;
use lab_load::arrivals::Process;
use units::UnitError;

/// Largest share of a knee that can be asked for.
const MOST_OF_KNEE: f64 = 10.0;

/// What a step knows of the loads of its file.
pub(in super::super) struct KnownLoads<'a> {
    pub(in super::super) loads: &'a [Found],
    /// Searches of the steps before: name of the step, and of the load that it varies.
    pub(in super::super) searches: Vec<(String, String)>,
    /// Names of all steps that search.
    pub(in super::super) searching: Vec<String>,
}

/// Reads `load = { traffic = "500/s" }`.
pub(in super::super) fn loads(
    reader: &mut Reader<'_>,
    step: &Fields<'_>,
    under: &KnownLoads<'_>,
) -> Option<Vec<StepLoad>> {
    let Some(field) = step.get("load") else {
        return Some(Vec::new());
    };
    if field.value.get_ref().as_table().is_none() {
        return reader.mismatch(field, "a table such as { traffic = \"500/s\" }");
    }
    let table = Fields::open_any(field.value, "\"load\"", reader)?;
    let searched = step
        .get("search")
        .and_then(|field| {
            field
                .value
                .get_ref()
                .as_table()?
                .get("vary")?
                .get_ref()
                .as_str()
        })
        .and_then(|vary| vary.strip_suffix(".rate"));
    let mut loads = Vec::new();
    let mut good = true;
    for (span, field) in table.fields() {
        let found = under.loads.iter().find(|load| load.name == field.key);
        let problem = match found {
            None => {
                let known = under.loads.iter().filter(|load| !load.is_probe);
                let known = known.map(|load| load.name.as_str());
                let message = format!("unknown load \"{}\"", field.key);
                Some(Problem::new(span, message).suggest_from(field.key, "loads", known))
            }
            Some(load) if load.is_probe => {
                let message = format!("{} is a probe, which runs by itself", load.name);
                let problem = Problem::new(span, message);
                Some(problem.help("its `from` and `to` say in which steps it runs"))
            }
            Some(load) if searched == Some(load.name.as_str()) => {
                let message = format!("the search of this step sets the rate of {}", load.name);
                Some(Problem::new(span, message))
            }
            Some(_) => None,
        };
        if let Some(problem) = problem {
            reader.problem(problem);
            good = false;
            continue;
        }
        // A load that is wrong itself says nothing about its traffic.
        let Some(load) = found.and_then(|found| found.load.as_ref()) else {
            good = false;
            continue;
        };
        match traffic(reader, field, &load.model, under) {
            Some(None) => {}
            Some(Some(traffic)) => loads.push(StepLoad {
                load: field.key.to_owned(),
                traffic,
            }),
            None => good = false,
        }
    }
    good.then_some(loads)
}

/// Names of the loads that the file has run in a step, right or wrong.
pub(in super::super) fn run_in<'f>(step: &Fields<'f>) -> impl Iterator<Item = &'f str> {
    let table = step
        .get("load")
        .and_then(|field| field.value.get_ref().as_table());
    let loads = table.into_iter().flat_map(|table| table.iter());
    loads
        .filter(|(_, traffic)| traffic.get_ref().as_str() != Some("off"))
        .map(|(name, _)| name.get_ref().as_ref())
}

/// When requests are due; `Some(None)`: never.
fn traffic(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    model: &LoadModel,
    under: &KnownLoads<'_>,
) -> Option<Option<Traffic>> {
    let expected = "a rate such as \"500/s\", \"70% of knee\", \"on\" or \"off\"";
    let text = reader.text_or_number(field, expected)?;
    match (text.as_str(), model) {
        ("off", _) => return Some(None),
        ("on", LoadModel::Open { arrivals: None, .. }) => {
            let message = format!("{} has no rate of its own", field.key);
            let problem = Problem::new(text.whole(), message);
            return reader.refuse(problem.help("write one here, or give the load a `rate`"));
        }
        ("on", _) => return Some(Some(Traffic::Own)),
        _ => {}
    }
    let LoadModel::Open { process, .. } = model else {
        let message = format!("{} is a closed loop: it has users, and no rate", field.key);
        return reader.refuse(Problem::new(text.whole(), message).help("write \"on\" or \"off\""));
    };
    match text.as_str().strip_suffix("knee").map(str::trim_end) {
        Some(before) => of_knee(reader, field, &text, before, under).map(Some),
        None => at_rate(reader, &text, *process, expected).map(Some),
    }
}

fn at_rate(
    reader: &mut Reader<'_>,
    text: &Text,
    process: Process,
    expected: &str,
) -> Option<Traffic> {
    let begins = |c: char| c.is_ascii_digit();
    let words = ["poisson", "constant", "burst", "sine"];
    let first = text.as_str().split_whitespace().next().unwrap_or_default();
    let arrivals = reader.read(text, |text| {
        if text.starts_with(begins) || words.contains(&first) {
            return arrivals::parse(text, &arrivals::word(process));
        }
        Err(UnitError {
            message: format!("expected {}, found \"{text}\"", expected.replace('"', "")),
            at: 0..text.len(),
            suggestion: units::nearest(first, words.into_iter().chain(["on", "off"]))
                .map(str::to_owned),
        })
    });
    arrivals.map(Traffic::Arrivals)
}

/// `70% of knee`: a share of what the last search before the step finds; one that
/// varies the same load comes before others.
fn of_knee(
    reader: &mut Reader<'_>,
    field: Field<'_>,
    text: &Text,
    before: &str,
    under: &KnownLoads<'_>,
) -> Option<Traffic> {
    let number = before
        .strip_suffix("of")
        .map(str::trim_end)
        .and_then(|share| share.strip_suffix('%'))
        .and_then(|percent| units::parse_number(percent.trim_end()).ok())
        .map(|percent| percent / 100.0);
    let problem = match number {
        None => Problem::new(
            text.whole(),
            format!("\"{}\" is no share of a knee", text.as_str()),
        )
        .suggest("70% of knee"),
        Some(share) if !(share > 0.0 && share <= MOST_OF_KNEE) => Problem::new(
            text.whole(),
            "a share of a knee is above 0% and at most 1000%",
        ),
        Some(share) => {
            let searches = &under.searches;
            let same = searches.iter().rfind(|(_, load)| load == field.key);
            if let Some((search, _)) = same.or(searches.last()) {
                return Some(Traffic::ShareOfKnee {
                    share,
                    search: search.clone(),
                });
            }
            Problem::new(text.whole(), "no step before this one searches for a knee")
                .help("add one with search = { vary = \"NAME.rate\", from = \"100/s\" }")
        }
    };
    reader.refuse(problem)
}
