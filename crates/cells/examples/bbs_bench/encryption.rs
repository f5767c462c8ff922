//! What encryption costs: the same calls to a BBS without keys and to one with them, by turns.

use super::{Failure, Server, desire_lrp, run};

/// A BBS that is measured.
struct Side {
    name: &'static str,
    server: Server,
    next: usize,
    /// Server CPU time of a call, in µs, of each round.
    costs: Vec<f64>,
}

/// Desires `calls` LRPs in each of `rounds` rounds on either side, which begins in turn.
pub(super) async fn compare(auctioneer: &str, calls: usize, rounds: usize) -> Result<(), Failure> {
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
    let keys = folders[1].path().join("keys.json");
    let file = r#"{"active_key_label":"bench","encryption_keys":{"bench":"of no use elsewhere"}}"#;
    std::fs::write(&keys, file)?;
    let side = async |name, at: usize, keys| {
        Ok::<_, Failure>(Side {
            name,
            server: Server::start(folders[at].path(), auctioneer, keys).await?,
            next: 0,
            costs: Vec::new(),
        })
    };
    let mut sides = [
        side("in clear", 0, None).await?,
        side("encrypted", 1, Some(&*keys)).await?,
    ];
    for round in 0..rounds {
        for turn in 0..2 {
            let Side {
                name,
                server,
                next,
                costs,
            } = &mut sides[(round + turn) % 2];
            let first = std::mem::replace(next, *next + calls);
            let before = server.cpu()?;
            run(server, name, calls, move |number| {
                desire_lrp(first + number)
            })
            .await?;
            costs.push((server.cpu()? - before) * 1e6 / calls as f64);
        }
    }
    let [clear, encrypted] = sides.each_ref().map(|side| &side.costs);
    let mut ratios: Vec<f64> = encrypted
        .iter()
        .zip(clear)
        .map(|(encrypted, clear)| encrypted / clear)
        .collect();
    ratios.sort_by(f64::total_cmp);
    let quarter = |of: usize| ratios[(ratios.len() - 1) * of / 4];
    println!(
        "DesireLRP      {:.1} µs in clear, {:.1} µs encrypted (medians of {rounds} rounds); of a pair {:.3}, middle half {:.3} to {:.3}",
        median(clear),
        median(encrypted),
        quarter(2),
        quarter(1),
        quarter(3),
    );
    for (side, folder) in sides.iter().zip(&folders) {
        let bytes = std::fs::metadata(folder.path().join("bbs.sqlite"))?.len();
        println!("{:14} {} MB on the disk", side.name, bytes >> 20);
    }
    Ok(())
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
