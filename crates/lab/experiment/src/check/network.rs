//! `network` of the file: in which network the run happens.

use std::ops::Range;

use document::Problem;

use super::fields::Field;
use super::loads;
use super::values::Reader;
use crate::plan::Network;

/// Reads `network = "own"`, which is refused where nobody can make one.
pub(super) fn network(reader: &mut Reader<'_>, field: Field<'_>) -> Option<Network> {
    let choices = [("machine", Network::Machine), ("own", Network::Own)];
    let network = reader.choice(field, &choices)?;
    if network == Network::Own
        && let Err(why) = (reader.own_network.0)()
    {
        let message = format!("a run cannot have a network of its own here: {why}");
        let problem = Problem::new(field.span(), message);
        let help = "leave out `network`: faults of connections are then made by the proxy, for \
                    which nothing is needed";
        return reader.refuse(problem.help(help));
    }
    Some(network)
}

/// Refuses loads on what the network does not hold, at the place of each.
pub(super) fn stays_inside(
    reader: &mut Reader<'_>,
    places: &[Range<usize>],
    loads: &[Option<loads::Found>],
) {
    let outside = places.iter().zip(loads).filter_map(|(place, found)| {
        let load = found.as_ref()?.load.as_ref()?;
        let is_outside = load.place().references().next().is_none();
        is_outside.then(|| (place.clone(), load))
    });
    let problems: Vec<Problem> = outside
        .map(|(place, load)| {
            let message = format!(
                "{} is outside of the run's own network, in which there are its systems alone",
                load.place()
            );
            Problem::new(place, message)
                .help("send to a system of this file, as in {NAME.addr}, or leave out `network`")
        })
        .collect();
    for problem in problems {
        reader.problem(problem);
    }
}
