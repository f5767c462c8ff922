//! Commands of cells that are being emptied.

use diego::models::desired_lrp::UpdateStrategy;
use diego::models::{ActualLrpKey, Error};

use super::{Evacuate, Evacuation, Reply, Transaction, untraced};
use crate::bbs::model::evacuation::{self, Strategy};
use crate::bbs::model::slot::RUNNING;

impl Transaction<'_> {
    pub(super) fn evacuate(&mut self, request: Evacuate) -> Result<Reply, Error> {
        let Evacuate {
            key,
            instance,
            what,
        } = request;
        let now = self.context.now;
        let before = self.slot(&key.process_guid, key.index)?;
        let mut after = before.clone();
        let done = match what {
            Evacuation::Claimed => evacuation::claimed(&mut after, &instance, now)?,
            Evacuation::Crashed(why) => evacuation::crashed(&mut after, &instance, &why, now)?,
            Evacuation::Stopped => evacuation::stopped(&mut after, &instance)?,
            Evacuation::Running(sent) => {
                let strategy = self.strategy(&key)?;
                let context = &mut self.context;
                evacuation::running(&mut after, &key, &instance, *sent, strategy, context)?
            }
            Evacuation::Done => {
                evacuation::remove_evacuating(&mut after, &instance)?;
                evacuation::Evacuated::default()
            }
        };
        self.put_slot(
            &key.process_guid,
            key.index,
            before,
            after,
            false,
            &untraced(),
        );
        if done.auction {
            self.place(&key.process_guid, vec![key.index], &untraced());
        }
        Ok(Reply::Keep(done.keep_container))
    }

    fn strategy(&self, key: &ActualLrpKey) -> Result<Strategy, Error> {
        let Ok(desired) = self.desired(&key.process_guid) else {
            return Ok(Strategy::NotDesired);
        };
        if desired.update_strategy() != UpdateStrategy::Recreate {
            return Ok(Strategy::Rolling);
        }
        let mut running = 0;
        // One beyond the count serves too, until it has ended.
        for index in self.batch.indices(&key.process_guid, 0) {
            let slot = self.slot(&key.process_guid, index)?;
            running += i32::from(slot.ordinary.is_some_and(|row| row.state == RUNNING));
        }
        let all_running = running >= desired.instances;
        Ok(Strategy::Recreate { all_running })
    }
}
